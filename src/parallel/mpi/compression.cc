#include "mpi/compression.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "trainer/base/each_cpu.h"
#include "trainer/base/random/half.h"
#include "trainer/tensor/dtype.h"

namespace trainer {
namespace {

#define TRAINER_ROUNDS TRAINER_FOR_EACH_CPU("avx512f", "avx2")
#define TRAINER_INLINE __attribute__((always_inline)) inline

constexpr uint32_t kInf = 0x7f800000;
constexpr int kTop = 14;         // the exponent of a block's largest number in f16
constexpr int kMostScale = 120;  // the largest exponent of a scale: a float holds 2^120 and 2^-120
constexpr int kBias = 127;       // the bias of a float's exponent
constexpr int kFractionBits = 23;

TRAINER_INLINE uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }
TRAINER_INLINE float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }
TRAINER_INLINE bool IsFinite(float value) { return (BitsOf(value) & kInf) != kInf; }

// Returns 2^exponent, which must be a normal number.
TRAINER_INLINE float PowerOf2(int exponent) {
  return FloatOf(static_cast<uint32_t>(exponent + kBias) << kFractionBits);
}

// Returns the exponent of the power of two that scales the largest finite number to [2^14, 2^15);
// at most 120, also if all numbers are 0.
TRAINER_INLINE int ScaleOf(const float* values, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t size = BitsOf(values[i]) & 0x7fffffffu;
    largest = std::max(largest, size < kInf ? size : 0u);
  }
  return std::min(kTop + kBias - static_cast<int>(largest >> kFractionBits), kMostScale);
}

// Encodes one block of at most 16 numbers as f16 with error feedback: writes the rounded values[i]
// + rest[i] to `to`, their common exponent to `scale` and the rounding errors to `rest`.
TRAINER_INLINE void EncodeF16Block(const float* values, float* rest, size_t count, uint16_t* to,
                                   int8_t* scale) {
  float sum[kScaleBlock] = {};
  for (size_t i = 0; i < count; ++i) sum[i] = values[i] + rest[i];
  const int exponent = ScaleOf(sum, count);
  *scale = static_cast<int8_t>(exponent);
  const float up = PowerOf2(exponent), down = PowerOf2(-exponent);
  for (size_t i = 0; i < count; ++i) {
    to[i] = ToHalf(sum[i] * up);
    rest[i] = IsFinite(sum[i]) ? sum[i] - FromHalf(to[i]) * down : 0.0f;
  }
}

// Encodes numbers as f16 with error feedback, in blocks of 16 with one scale each.
TRAINER_ROUNDS
void EncodeF16(const float* values, float* rest, size_t count, uint16_t* to, int8_t* scales) {
  size_t i = 0;
  for (; i + kScaleBlock <= count; i += kScaleBlock) {
    EncodeF16Block(values + i, rest + i, kScaleBlock, to + i, scales++);
  }
  if (i < count) EncodeF16Block(values + i, rest + i, count - i, to + i, scales);
}

// Converts what EncodeF16 wrote to floats: each half times 2^-exponent of its block.
TRAINER_ROUNDS
void DecodeF16(const uint16_t* from, const int8_t* scales, size_t count, float* values) {
  for (size_t line = 0; line < count; line += kScaleBlock) {
    const float down = PowerOf2(-scales[line / kScaleBlock]);
    const size_t end = std::min(count, line + kScaleBlock);
    for (size_t i = line; i < end; ++i) values[i] = FromHalf(from[i]) * down;
  }
}

// Encodes numbers as bf16 with error feedback.
TRAINER_ROUNDS
void EncodeBf16(const float* values, float* rest, size_t count, BFloat16* to) {
  for (size_t i = 0; i < count; ++i) {
    const float sum = values[i] + rest[i];
    Store(to[i], sum);
    const float sent = Load(to[i]);
    rest[i] = IsFinite(sent) ? sum - sent : 0.0f;
  }
}

// Converts bf16 to floats.
TRAINER_ROUNDS
void DecodeBf16(const BFloat16* from, size_t count, float* values) {
  for (size_t i = 0; i < count; ++i) values[i] = Load(from[i]);
}

}  // namespace

size_t CompressedBytes(CompressionType type, size_t count) {
  if (type == CompressionType::kF32) return count * sizeof(float);
  const size_t scales = type == CompressionType::kF16 ? (count + kScaleBlock - 1) / kScaleBlock : 0;
  return count * sizeof(uint16_t) + scales;
}

void Encode(CompressionType type, std::span<const float> values, float* rest, std::byte* to) {
  const size_t count = values.size();
  if (type == CompressionType::kF16) {
    auto* const halves = reinterpret_cast<uint16_t*>(to);
    EncodeF16(values.data(), rest, count, halves, reinterpret_cast<int8_t*>(halves + count));
  } else if (type == CompressionType::kBF16) {
    EncodeBf16(values.data(), rest, count, reinterpret_cast<BFloat16*>(to));
  } else {
    std::memcpy(to, values.data(), values.size_bytes());
  }
}

void Decode(CompressionType type, const std::byte* from, std::span<float> values) {
  const size_t count = values.size();
  if (type == CompressionType::kF16) {
    const auto* const halves = reinterpret_cast<const uint16_t*>(from);
    DecodeF16(halves, reinterpret_cast<const int8_t*>(halves + count), count, values.data());
  } else if (type == CompressionType::kBF16) {
    DecodeBf16(reinterpret_cast<const BFloat16*>(from), count, values.data());
  } else {
    std::memcpy(values.data(), from, values.size_bytes());
  }
}

float* ErrorFeedback::Of(std::span<const float> block, const float* at) {
  Block& found = blocks_[block.data()];
  if (found.count != block.size()) {
    void* const memory = std::calloc(block.size(), sizeof(float));
    if (memory == nullptr) throw std::bad_alloc();
    found = {block.size(), {static_cast<float*>(memory), std::free}};
  }
  return found.rest.get() + (at - block.data());
}

}  // namespace trainer
