#pragma once
// A checksum for each record of a set, in a separate file. Databases have none, so a flipped bit
// would read as a different image.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

// records.crc32c in a database's folder; NAME.crc32c next to any other set.
std::string ChecksumPath(const std::string& set);

// CRC32C of key and value.
uint32_t RecordCrc(std::string_view key, std::string_view value);

// Format: "trainer crc32c\n", the number of records (64 bits, little-endian, as all numbers), the
// checksum of each (32 bits) in the order of reading, the checksum of all that (32 bits).
void WriteChecksums(const std::string& path, const std::vector<uint32_t>& checksums);

// Throws as ReadFile does; kData for anything else.
std::vector<uint32_t> ReadChecksums(const std::string& path);

}  // namespace trainer
