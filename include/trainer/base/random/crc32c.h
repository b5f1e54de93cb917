#pragma once
// CRC32C (Castagnoli polynomial 0x1EDC6F41, reflected), the checksum of RFC 3720, section 12.1.
// It finds every error burst of up to 32 bits, so every single flipped bit.

#include <cstddef>
#include <cstdint>

namespace trainer {

// The checksum of `bytes` bytes at `data`, which may be in pieces: pass the result for what came
// before as `previous`. Uses SSE4.2 when the CPU has it.
uint32_t Crc32c(const void* data, size_t bytes, uint32_t previous = 0);

// The same by tables, for CPUs without SSE4.2.
uint32_t Crc32cPortable(const void* data, size_t bytes, uint32_t previous = 0);

}  // namespace trainer
