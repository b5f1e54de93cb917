#pragma once
// The process of mpirun or srun that tells ranks of each other.

#include <functional>
#include <string>

namespace trainer {

// Whether the variables of a launcher are still there and it is not: handed down by a shell that it
// had started, for example. MPI would end this process. `get` gives the value of a variable, or
// null.
bool IsMpiServerGone(const std::function<const char*(const char*)>& get);

}  // namespace trainer
