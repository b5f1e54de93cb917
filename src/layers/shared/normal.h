#pragma once
// Normal random numbers for each element. They depend only on key, pass and element, on every
// device.

#include <cmath>

#include "trainer/backend/loops/map.h"
#include "trainer/base/random/philox.h"

namespace trainer {

// Sets to[i] = f(z_i, from[i]) for four elements. z_i is normal by the method of Box and Muller:
// two uniform numbers give two normal numbers. The first is from (0, 1], which keeps the logarithm
// finite.
template <class F>
struct NormalBlock {
  PhiloxKey key;
  const uint32_t* pass;
  F f;
  const float* from;
  float* to;
  int64_t count;

  HD void operator()(int64_t block) const {
    const Philox4 words = PhiloxBlock(key, *pass, static_cast<uint64_t>(block));
    const int64_t first = 4 * block;
    for (int pair = 0; pair < 4; pair += 2) {
      constexpr float kTurn = 6.28318531f;
      const float radius = sqrtf(-2 * logf(1 - UniformFloat(words.x[pair])));
      const float angle = kTurn * UniformFloat(words.x[pair + 1]);
      const int64_t i = first + pair;
      if (i < count) to[i] = f(radius * cosf(angle), from[i]);
      if (i + 1 < count) to[i + 1] = f(radius * sinf(angle), from[i + 1]);
    }
  }
};

// Sets to[i] = f(z_i, from[i]) for all i, with independent standard normal z_i. `to` may be `from`.
template <class F>
void MapNormal(const Device& device, const PhiloxKey& key, const uint32_t* pass, F f,
               const float* from, float* to, int64_t count) {
  ForEach(device, (count + 3) / 4, NormalBlock<F>{key, pass, f, from, to, count});
}

}  // namespace trainer
