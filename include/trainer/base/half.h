#pragma once
// Half-precision numbers: 1 sign, 5 exponent and 10 fraction bits (IEEE 754-2008, binary16).

#include <bit>
#include <cstdint>

namespace trainer {

// The number that the bits stand for; a NaN keeps its payload. Without branches, and inlined into
// functions that are compiled for several processors, so that a loop over it is vectorised.
__attribute__((always_inline)) inline float FromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, size = half & 0x7fffu;
  const uint32_t normal = (size << 13) + (size >= 0x7c00u ? 0x70000000u : 0x38000000u);
  // Subnormal: a multiple of 2^-24.
  const float multiple = static_cast<float>(static_cast<int32_t>(size)) * 0x1p-24f;
  const auto small = std::bit_cast<uint32_t>(multiple);
  return std::bit_cast<float>(sign | (size < 0x400u ? small : normal));
}

}  // namespace trainer
