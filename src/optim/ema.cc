#include "trainer/optim/ema.h"

#include <algorithm>

#include "ema_blend.h"
#include "trainer/backend/loops/multi_tensor.h"

namespace trainer {
namespace {

// Sets the average to the weight.
struct StartAverage {
  HD void operator()(float& average, float& weight) const { average = weight; }
};

// Exchanges the average and the weight.
struct SwapAverage {
  HD void operator()(float& average, float& weight) const {
    const float old = average;
    average = weight;
    weight = old;
  }
};

// Gives every parameter the same functor.
template <class F>
struct SameForAll {
  F f;
  HD F operator()(int) const { return f; }
};

// Calls f(average, weight) for all elements of all parameters, in one launch on a GPU.
template <class F>
void ForAllAverages(const Device& device, const TensorList& averages, F f) {
  MultiTensorApply<2>(device, averages, 0, averages.size(), SameForAll<F>{f});
}

}  // namespace

float EmaKeep(float decay, int updates) {
  return std::min(decay, static_cast<float>(1 + updates) / static_cast<float>(10 + updates));
}

void UpdateEma(const Device& device, float keep, const TensorList& averages) {
  ForAllAverages(device, averages, EmaBlend{keep});
}

void StartEma(const Device& device, const TensorList& averages) {
  ForAllAverages(device, averages, StartAverage());
}

void SwapEma(const Device& device, const TensorList& averages) {
  ForAllAverages(device, averages, SwapAverage());
}

}  // namespace trainer
