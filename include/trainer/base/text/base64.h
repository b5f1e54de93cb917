#pragma once

#include <string>

namespace trainer {

// Encodes bytes in base 64, for an image in a page or in JSON.
std::string Base64(const std::string& bytes);

}  // namespace trainer
