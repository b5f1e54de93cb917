#pragma once
// A generated set of handwritten digits, which replaces MNIST for a first try without a download.

#include <array>
#include <cstdint>
#include <string>

namespace trainer {

// One grey image, white on black as in MNIST.
struct DigitImage {
  static constexpr int kSide = 28;
  int label = 0;                                // 0 to 9
  std::array<uint8_t, kSide * kSide> pixels{};  // (H, W), 0 to 255
};

// Draws digit `index` of set `set` (0 train, 1 test, ...): a random figure, bent, slanted, rotated,
// scaled, moved, with a random pen, and noise. The same bytes on every machine, since arithmetic is
// + - * / and square roots of doubles, which IEEE 754 defines to the last bit. Any thread.
DigitImage DrawDigit(uint64_t seed, uint32_t set, uint64_t index);

struct DigitsOptions {
  std::string folder;  // made if it does not exist
  std::string backend = "LMDB";
  int64_t train = 20000, test = 4000;  // records, each 1x28x28
  uint64_t seed = 1;
};

struct DigitsPaths {
  std::string train, test;  // folder/train_lmdb, folder/test_lmdb; or ..._leveldb
};

// Writes both sets with keys %08d. Errors: as DatabaseWriter and CheckRecordCount throw.
DigitsPaths WriteDigits(const DigitsOptions& options);

}  // namespace trainer
