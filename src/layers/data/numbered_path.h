#pragma once

#include <string>

namespace trainer {

// Inserts a number into a file name: "out.h5" becomes "out_2.h5".
std::string NumberedPath(const std::string& path, int number);

}  // namespace trainer
