#pragma once
// Which elements a Dropout drops: a function of (seed, layer, pass, element), so that nothing is
// stored and a ReLU in front can apply it in its own pass.

#include <cmath>

#include "trainer/backend/loops/map_random.h"
#include "trainer/layers/layer.h"

namespace trainer {

struct DropoutMask {
  PhiloxKey key;
  const uint32_t* pass;  // on the device
  uint32_t threshold;    // an element stays where its random word reaches `threshold`
  float scale;           // of what stays

  // `run` is the Dropout's own context.
  DropoutMask(const caffe::DropoutParameter& param, const RunContext& run)
      : key(run.rng_key()),
        pass(run.pass_counter()),
        threshold(static_cast<uint32_t>(std::lround(param.dropout_ratio() * 0x1p31) * 2)),
        scale(1 / (1 - param.dropout_ratio())) {
    if (param.random_seed() >= 0) key.seed = static_cast<uint64_t>(param.random_seed());
  }
};

// What a Dropout makes of f(x), which draws a random word per element.
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

// y = f(x) * scale where the element stays, else 0.
template <class F>
void ApplyDropout(const Device& device, const DropoutMask& mask, F f, const ConstTensor& x,
                  const Tensor& y) {
  MapRandom(device, mask.key, mask.pass, KeepOrDrop<F>{f, mask.threshold, mask.scale}, y, x);
}

}  // namespace trainer
