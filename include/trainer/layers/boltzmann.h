#pragma once
// A restricted Boltzmann machine: the two conditional distributions of its units, for batches of
// them on a device. Source: Hinton, "A practical guide to training restricted Boltzmann machines",
// 2010.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trainer/backend/device/device.h"
#include "trainer/base/random/philox.h"

namespace trainer {

// Hidden units are 0 or 1; visible ones too or, with gaussian, any number with variance 1.
//   energy(v, h) = -b v - c h - h W v            (gaussian: |v - b|^2 / 2 - c h - h W v)
struct BoltzmannUnits {
  int64_t visible = 0, hidden = 0;
  bool gaussian = false;
};

// Of one machine, on the device: W (hidden, visible), c (hidden), b (visible).
struct BoltzmannWeights {
  const float* w = nullptr;
  const float* hidden_bias = nullptr;
  const float* visible_bias = nullptr;
};

// Where random numbers come from: draw number `draw` of pass *pass, which is on the device.
struct UnitDraw {
  PhiloxKey key;
  const uint32_t* pass = nullptr;
  uint32_t draw = 0;
};

// Products for batches of `rows` records of one machine. Used by one thread; its calls allocate
// nothing. All arrays are on the device: (rows, visible) or (rows, hidden), row-major.
class BoltzmannProducts {
 public:
  BoltzmannProducts(const Device& device, const BoltzmannUnits& units, int64_t rows);

  // Of any of the calls.
  size_t ScratchBytes() const;
  // hidden = visible W^T + c: what the hidden units' means are the logistic function of.
  void HiddenInputs(const BoltzmannWeights& weights, const float* visible, float* hidden,
                    std::span<std::byte> scratch) const;
  // visible = hidden W + b.
  void VisibleInputs(const BoltzmannWeights& weights, const float* hidden, float* visible,
                     std::span<std::byte> scratch) const;

  GemmPrimitive& up() const { return *up_; }

 private:
  std::unique_ptr<GemmPrimitive> up_, down_;
};

// From inputs to means, in place: the logistic function; of gaussian units the input itself.
void UnitMeans(const Device& device, bool gaussian, float* values, int64_t count);
// Draws units from their means: 1 with the mean as the probability, else 0; of gaussian ones the
// mean and a normal number. `drawn` may be `means`.
void DrawUnits(const Device& device, bool gaussian, const UnitDraw& draw, const float* means,
               float* drawn, int64_t count);

// *out = the mean over `rows` records of the free energy -log sum_h exp(-energy(v, h)):
//   -b v - sum_j log(1 + exp(input_j))           (gaussian: |v - b|^2 / 2 in place of -b v)
// from the inputs of the hidden units. `out` is on the device.
void MeanFreeEnergy(const Device& device, const BoltzmannUnits& units, int64_t rows,
                    const float* visible, const float* visible_bias, const float* hidden_inputs,
                    float* out);

}  // namespace trainer
