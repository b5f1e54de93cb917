#pragma once
// The fork launcher: ranks on one node without MPI. The program starts itself several times.

namespace trainer {

// Runs this process's own command line `ranks` times, each with cores of its own if there are
// enough, and waits for all. It forwards signals to each; their output goes where this process's
// goes. A rank that dies ends all. Returns the exit code of the first rank that failed, or 82 if
// one died; ends this process by the signal that ended the ranks. Throws kResource if processes
// cannot be started.
int LaunchRanks(int ranks);

}  // namespace trainer
