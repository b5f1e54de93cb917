#pragma once
// The fork launcher: ranks on one node without MPI. The program starts itself several times.

namespace trainer {

// Runs this process's own command line `ranks` times, each with its own cores if there are enough,
// and waits for all processes. Signals are forwarded to each of them, and they inherit this
// process's output. If a rank dies, all end. Returns the exit code of the first rank that failed,
// or 82 if one died; if a signal ended the ranks, it ends this process, too. Throws kResource if
// processes cannot be started.
int LaunchRanks(int ranks);

}  // namespace trainer
