#pragma once
// CRC32C (Castagnoli polynomial 0x1EDC6F41, reflected), the checksum of RFC 3720, section 12.1.
// It finds every error burst of up to 32 bits, so every single flipped bit.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trainer {

// Returns the checksum of `bytes` bytes at `data`. For data in several pieces, pass the result for
// the pieces before as `previous`. Uses SSE4.2 if the CPU has it.
uint32_t Crc32c(const void* data, size_t bytes, uint32_t previous = 0);

// Returns the checksum of a text in hexadecimal digits, without leading zeros.
std::string Crc32cDigits(std::string_view text);

// Returns what Crc32c returns, computed by tables, for CPUs without SSE4.2.
uint32_t Crc32cPortable(const void* data, size_t bytes, uint32_t previous = 0);

}  // namespace trainer
