#include "trainer/layers/boltzmann.h"

#include <algorithm>

#include "shared/normal.h"
#include "trainer/backend/loops/map_random.h"
#include "trainer/backend/loops/math.h"
#include "trainer/backend/loops/reduce.h"

namespace trainer {
namespace {

// Returns 1 / (1 + exp(-x)).
struct LogisticOf {
  HD float operator()(float x) const { return Logistic(x); }
};

// Draws 1 with probability `mean`, else 0.
struct DrawBit {
  HD float operator()(uint32_t word, float mean) const {
    return UniformFloat(word) < mean ? 1.0f : 0.0f;
  }
};

// Draws a gaussian unit: its mean plus a standard normal number.
struct AddNoise {
  HD float operator()(float normal, float mean) const { return mean + normal; }
};

// Returns a key that gives every draw of a pass its own random numbers.
PhiloxKey KeyOfDraw(const UnitDraw& draw) {
  constexpr uint64_t kApart = 0x9E3779B97F4A7C15;
  return {draw.key.seed ^ draw.draw * kApart, draw.key.stream};
}

// Returns term i of the free energy of all records: first -log(1 + exp(input)) of each hidden unit,
// then the term of each visible unit. See MeanFreeEnergy.
struct FreeEnergyTerm {
  const float *visible, *visible_bias, *inputs;
  int64_t hidden_terms, units;
  bool gaussian;
  HD float operator()(int64_t i) const {
    if (i < hidden_terms) {
      const float x = inputs[i];
      return -((x > 0 ? x : 0.0f) + log1pf(Exp(-fabsf(x))));
    }
    const float v = visible[i - hidden_terms], b = visible_bias[(i - hidden_terms) % units];
    return gaussian ? 0.5f * (v - b) * (v - b) : -b * v;
  }
};

}  // namespace

BoltzmannProducts::BoltzmannProducts(const Device& device, const BoltzmannUnits& units,
                                     int64_t rows)
    : up_(device.NewGemm(
          {.m = rows, .n = units.hidden, .k = units.visible, .trans_b = true, .bias = true})),
      down_(device.NewGemm({.m = rows, .n = units.visible, .k = units.hidden, .bias = true})) {}

size_t BoltzmannProducts::ScratchBytes() const {
  return std::max(up_->ScratchBytes(), down_->ScratchBytes());
}

void BoltzmannProducts::HiddenInputs(const BoltzmannWeights& weights, const float* visible,
                                     float* hidden, std::span<std::byte> scratch) const {
  up_->Run(visible, weights.w, weights.hidden_bias, hidden, scratch);
}

void BoltzmannProducts::VisibleInputs(const BoltzmannWeights& weights, const float* hidden,
                                      float* visible, std::span<std::byte> scratch) const {
  down_->Run(hidden, weights.w, weights.visible_bias, visible, scratch);
}

void UnitMeans(const Device& device, bool gaussian, float* values, int64_t count) {
  if (gaussian) return;
  const Tensor all(values, {count});
  Map(device, LogisticOf{}, all, all);
}

void DrawUnits(const Device& device, bool gaussian, const UnitDraw& draw, const float* means,
               float* drawn, int64_t count) {
  if (gaussian) {
    return MapNormal(device, KeyOfDraw(draw), draw.pass, AddNoise{}, means, drawn, count);
  }
  MapRandom(device, KeyOfDraw(draw), draw.pass, DrawBit{}, Tensor(drawn, {count}),
            ConstTensor(means, {count}));
}

void MeanFreeEnergy(const Device& device, const BoltzmannUnits& units, int64_t rows,
                    const float* visible, const float* visible_bias, const float* hidden_inputs,
                    float* out) {
  const int64_t hidden_terms = rows * units.hidden;
  ReduceSum(device, hidden_terms + rows * units.visible,
            FreeEnergyTerm{visible, visible_bias, hidden_inputs, hidden_terms, units.visible,
                           units.gaussian},
            1 / static_cast<float>(rows), out);
}

}  // namespace trainer
