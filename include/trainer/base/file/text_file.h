#pragma once
// Text files that people write: lists, names of classes.

#include <cstdint>
#include <string>

namespace trainer {

// As ReadFile, without the byte order mark that some editors put before UTF-8.
std::string ReadListFile(const std::string& path, uint64_t max_bytes);

}  // namespace trainer
