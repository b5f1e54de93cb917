#pragma once
// Text files that people write: lists, names of classes.

#include <cstdint>
#include <string>

namespace trainer {

// Returns the file's content without a leading UTF-8 byte order mark; throws as ReadFile does.
std::string ReadListFile(const std::string& path, uint64_t max_bytes);

}  // namespace trainer
