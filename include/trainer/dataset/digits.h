#pragma once
// A made-up set of handwritten digits: what MNIST is for a first try, without a download.

#include <array>
#include <cstdint>

namespace trainer {

// One grey image, white on black as in MNIST.
struct DigitImage {
  static constexpr int kSide = 28;
  int label = 0;                                // 0 to 9
  std::array<uint8_t, kSide * kSide> pixels{};  // (H, W), 0 to 255
};

// Draws digit `index` of set `set` (0 train, 1 test, ...): a random figure in one of several ways
// of writing it, bent, slanted, rotated, scaled, moved, with another pen, and noise. A function of
// its arguments only: the same bytes on every machine (arithmetic is + - * / and square roots of
// doubles, which IEEE 754 defines to the last bit). Any thread.
DigitImage DrawDigit(uint64_t seed, uint32_t set, uint64_t index);

}  // namespace trainer
