#pragma once
// Selects the elements that a Dropout drops, as a function of (seed, layer, pass, element), so that
// nothing is stored and a preceding ReLU can apply the mask in its own pass.

#include <cmath>

#include "trainer/backend/loops/map_random.h"
#include "trainer/layers/layer.h"

namespace trainer {

struct DropoutMask {
  PhiloxKey key;
  const uint32_t* pass;  // on the device
  uint32_t threshold;    // an element is kept if its random word is at least `threshold`
  float scale;           // factor of the elements that are kept

  // `run` is the Dropout's own context, also if it is fused into another layer: it has the random
  // stream. A random_seed in `param` replaces the run's seed.
  DropoutMask(const caffe::DropoutParameter& param, const RunContext& run)
      : key(run.rng_key()),
        pass(run.pass_counter()),
        threshold(static_cast<uint32_t>(std::lround(param.dropout_ratio() * 0x1p31) * 2)),
        scale(1 / (1 - param.dropout_ratio())) {
    if (param.random_seed() >= 0) key.seed = static_cast<uint64_t>(param.random_seed());
  }
};

// Computes a Dropout's output for f(x), given a random word per element.
template <class F>
struct KeepOrDrop {
  F f;
  uint32_t threshold;
  float scale;
  HD float operator()(uint32_t word, float x) const {
    const float kept = f(x) * scale;
    return word >= threshold ? kept : 0.0f;
  }
};

// y = f(x) * scale if the element is kept, else 0.
template <class F>
void ApplyDropout(const Device& device, const DropoutMask& mask, F f, const ConstTensor& x,
                  const Tensor& y) {
  MapRandom(device, mask.key, mask.pass, KeepOrDrop<F>{f, mask.threshold, mask.scale}, y, x);
}

}  // namespace trainer
