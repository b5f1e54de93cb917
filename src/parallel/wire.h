#pragma once
// Gradients in 16 bits, with error feedback.
//
// What rounding takes from a number is kept and added to that number when it is sent the next time,
// so that the sum of what was sent over many steps is that of the gradients within one rounding:
// F. Seide et al., "1-bit stochastic gradient descent and its application to data-parallel
// distributed training of speech DNNs", Interspeech 2014; S. P. Karimireddy et al., "Error feedback
// fixes SignSGD and other gradient compression schemes", ICML 2019.
//
// bf16 is the upper half of a float, rounded to nearest even. f16 has three bits more of fraction
// and a small range; so each line of 16 numbers has a scale of its own, a power of two that brings
// its largest finite magnitude to [2^14, 2^15): nothing overflows, and what is lost is small beside
// the line's largest number. Infinities and NaN stay what they are, and nothing is kept of them.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "trainer/parallel/wire_type.h"

namespace trainer {

// Numbers that have one scale. Where a message begins in a line of the gradients no rounding
// depends: each begins where a line begins.
inline constexpr size_t kWireLine = 16;

// Of `count` numbers.
size_t WireBytes(WireType type, size_t count);

// Writes values[i] + rest[i], rounded to 16 bits, to `to`, WireBytes of it; what is lost goes to
// rest[i].
void Encode(WireType type, std::span<const float> values, float* rest, std::byte* to);
// What Encode wrote, as floats.
void Decode(WireType type, const std::byte* from, std::span<float> values);

// What rounding took from the numbers of blocks of gradients, by number.
class Residuals {
 public:
  // For numbers `at` and behind it in `block`; zero at first.
  float* Of(std::span<const float> block, const float* at);
  // From now on nothing was lost.
  void Clear() { blocks_.clear(); }

 private:
  struct Block {
    size_t count = 0;
    // From calloc: pages that nobody writes take no memory, and a rank sends a part of all.
    std::unique_ptr<float, void (*)(void*)> rest{nullptr, nullptr};
  };
  std::map<const float*, Block> blocks_;
};

}  // namespace trainer
