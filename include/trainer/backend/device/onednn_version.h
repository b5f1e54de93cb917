#pragma once

#include <string>

namespace trainer {

// Returns the version and the threads of the library: "3.0.0, OpenMP threads".
std::string OneDnnVersion();

}  // namespace trainer
