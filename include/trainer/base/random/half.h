#pragma once
// Half-precision numbers: 1 sign, 5 exponent and 10 fraction bits (IEEE 754-2008, binary16).
//
// On the host the conversions have no branches and are inlined into functions that are compiled for
// several processors, so that loops over them are vectorised. On a GPU they use its own
// instructions.

#include <bit>
#include <cstdint>

#include "trainer/base/host_device.h"

namespace trainer {

// Returns the number that the bits encode; on the host a NaN keeps its payload.
HD float FromHalf(uint16_t half) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
#else
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, size = half & 0x7fffu;
  const uint32_t normal = (size << 13) + (size >= 0x7c00u ? 0x70000000u : 0x38000000u);
  // Subnormal: a multiple of 2^-24.
  const float multiple = static_cast<float>(static_cast<int32_t>(size)) * 0x1p-24f;
  const auto small = std::bit_cast<uint32_t>(multiple);
  return std::bit_cast<float>(sign | (size < 0x400u ? small : normal));
#endif
}

// Returns the nearest half, the even one if two are equally near, and infinity from 65520 on.
HD uint16_t ToHalf(float value) {
#ifdef __CUDA_ARCH__
  uint16_t half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
#else
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
  const uint32_t rounded = (size + 0xfffu + ((size >> 13) & 1u) - 0x38000000u) >> 13;
  const uint32_t normal = rounded < 0x7c00u ? rounded : 0x7c00u;
  // Below 2^-14 the last place is 2^-24, as for floats in [0.5, 1).
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
  const uint32_t number = size < 0x38800000u ? small : normal;
  return static_cast<uint16_t>(sign | (size > 0x7f800000u ? 0x7e00u : number));
#endif
}

}  // namespace trainer
