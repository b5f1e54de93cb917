#pragma once
// Helpers for the checksums of both file formats.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/base/file/file.h"

namespace trainer {

// Numbers as bytes and back.
std::string LittleEndian(uint64_t value, size_t bytes);
uint64_t FromLittleEndian(std::string_view bytes);

// `bytes` bytes of a file from `offset` on, fewer at its end. Throws kIo.
std::string ReadPiece(const FileHandle& file, const std::string& path, uint64_t offset,
                      size_t bytes);
// The CRC32C of such a piece after others whose checksum is `crc`.
uint32_t ChecksumOf(const FileHandle& file, const std::string& path, uint64_t offset,
                    uint64_t bytes, uint32_t crc = 0);

// Throws kBadSnapshot.
[[noreturn]] void ThrowDamaged(const std::string& path, const std::string& why);

}  // namespace trainer
