#pragma once

#include <string>

namespace trainer {

// "3.0.0, OpenMP threads"
std::string OneDnnVersion();

}  // namespace trainer
