#pragma once
// Ranks on one machine without MPI: the program starts itself several times.

namespace trainer {

// Runs this process's own command line `ranks` times, each with cores of its own where there are
// enough, and waits for all. Signals are handed on to each; their output goes where this process's
// goes. A rank that dies ends all. Returns the exit code of all: that of the first that failed, 82
// when one died; ends this process by the signal that ended them. Throws kResource where processes
// cannot be started.
int LaunchRanks(int ranks);

}  // namespace trainer
