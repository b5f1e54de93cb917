#include "trainer/rules/average.h"

#include "trainer/backend/map.h"

namespace trainer {
namespace {

struct Blend {
  float keep;
  HD void operator()(float& average, float& weight) const {
    average = keep * average + (1 - keep) * weight;
  }
};

struct Start {
  HD void operator()(float& average, float& weight) const { average = weight; }
};

struct Swap {
  HD void operator()(float& average, float& weight) const {
    const float old = average;
    average = weight;
    weight = old;
  }
};

}  // namespace

void BlendAverage(const Device& device, float keep, int64_t count, float* average, float* weight) {
  Update(device, Blend{keep}, count, average, weight);
}

void StartAverage(const Device& device, int64_t count, float* average, float* weight) {
  Update(device, Start{}, count, average, weight);
}

void SwapAverage(const Device& device, int64_t count, float* average, float* weight) {
  Update(device, Swap{}, count, average, weight);
}

}  // namespace trainer
