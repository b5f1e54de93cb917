#pragma once

#include <string>

namespace trainer {

// Returns whether a file has the name of an image that DecodeImage reads: .jpg, .jpeg, .png, .tif,
// .tiff, .pgm or .ppm, whatever their case.
bool IsImageName(const std::string& name);

}  // namespace trainer
