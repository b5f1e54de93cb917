#pragma once
// Compression of gradients to 16 bits, with error feedback.
//
// Error feedback keeps the rounding error of each element and adds it to the element's next
// gradient. After any number of steps, the sum of the sent values therefore differs from the sum of
// the gradients by one rounding error only:
// F. Seide et al., "1-bit stochastic gradient descent and its application to data-parallel
// distributed training of speech DNNs", Interspeech 2014; S. P. Karimireddy et al., "Error feedback
// fixes SignSGD and other gradient compression schemes", ICML 2019.
//
// bf16 is the upper half of a float, rounded to nearest even. f16 has three more bits of fraction
// but a small range, so each block of 16 numbers has its own scale, a power of two that brings its
// largest finite magnitude to [2^14, 2^15): nothing overflows, and the rounding error is small
// relative to the block's largest number. Infinities and NaN are sent as they are and leave no
// error.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "trainer/parallel/compression_type.h"

namespace trainer {

// The numbers of a block, which share one scale. Each message begins at a block of the gradient
// array, so rounding does not depend on how gradients are divided into messages.
inline constexpr size_t kScaleBlock = 16;

// Returns the size of `count` numbers as a message: 4 bytes each for kF32, 2 for kBF16, and 2 for
// kF16 plus one scale byte for each block of 16.
size_t CompressedBytes(CompressionType type, size_t count);

// Writes values[i] + rest[i], rounded to 16 bits, to `to`, which has CompressedBytes bytes, and the
// rounding error to rest[i]. With kF32 copies the values and ignores `rest`.
void Encode(CompressionType type, std::span<const float> values, float* rest, std::byte* to);
// Converts what Encode wrote to floats. `values` has as many numbers as were encoded.
void Decode(CompressionType type, const std::byte* from, std::span<float> values);

// Holds the rounding errors of gradients, by memory block and position.
class ErrorFeedback {
 public:
  // Returns the errors of the numbers from `at` on in `block`, a whole allocated block of
  // gradients. They are zero at first, and again if the block at this address gets another size.
  float* Of(std::span<const float> block, const float* at);
  // Sets all errors to zero.
  void Clear() { blocks_.clear(); }

 private:
  struct Block {
    size_t count = 0;
    // Allocated with calloc, because a rank sends only some of the numbers, and pages that are
    // never written take no memory.
    std::unique_ptr<float, void (*)(void*)> rest{nullptr, nullptr};
  };
  std::map<const float*, Block> blocks_;
};

}  // namespace trainer
