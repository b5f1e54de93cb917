#pragma once
// Helpers for the checksums of both file formats.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/base/file/file.h"

namespace trainer {

// Returns the lowest `bytes` bytes of a number, the lowest one first.
std::string LittleEndian(uint64_t value, size_t bytes);
// Returns the number that LittleEndian wrote; at most 8 bytes.
uint64_t FromLittleEndian(std::string_view bytes);

// Reads `bytes` bytes of a file from `offset` on, or fewer at its end. Throws kIo.
std::string ReadPiece(const FileHandle& file, const std::string& path, uint64_t offset,
                      size_t bytes);
// Returns the CRC32C of `bytes` bytes of a file from `offset` on, or of fewer at its end, continued
// from the checksum `crc` of the bytes before them.
uint32_t ChecksumOf(const FileHandle& file, const std::string& path, uint64_t offset,
                    uint64_t bytes, uint32_t crc = 0);

// Throws kBadSnapshot with the reason `why`.
[[noreturn]] void ThrowDamaged(const std::string& path, const std::string& why);

}  // namespace trainer
