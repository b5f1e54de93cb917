#pragma once
// Detects whether the server process of mpirun or srun, by which ranks find each other, has ended.

#include <functional>
#include <string>

namespace trainer {

// Returns whether the environment has a launcher's variables although the launcher has ended, for
// example in a shell that it had started. MPI would then end this process. `get` returns the value
// of a variable, or null.
bool IsMpiServerGone(const std::function<const char*(const char*)>& get);

}  // namespace trainer
