#pragma once
// The libraries that decode images.

#include <string>
#include <utility>
#include <vector>

namespace trainer {

// Returns names and versions: {"libjpeg-turbo", "2.1.5"}, {"libpng", "1.6.39"}. Another JPEG
// decoder can give other pixels.
std::vector<std::pair<std::string, std::string>> ImageLibraryVersions();

}  // namespace trainer
