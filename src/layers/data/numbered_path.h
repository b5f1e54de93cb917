#pragma once

#include <string>

namespace trainer {

// Inserts a number before the extension of a file name: "out.h5" becomes "out_2.h5". A name without
// an extension gets it at the end.
std::string NumberedPath(const std::string& path, int number);

}  // namespace trainer
