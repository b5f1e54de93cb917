#pragma once

#include <string>

namespace trainer {

// "out.h5" as "out_2.h5"
std::string NumberedPath(const std::string& path, int number);

}  // namespace trainer
