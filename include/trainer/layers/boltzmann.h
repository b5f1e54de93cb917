#pragma once
// A restricted Boltzmann machine: the two conditional distributions of its units, for batches on a
// device. Source: Hinton, "A practical guide to training restricted Boltzmann machines", 2010.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trainer/backend/device/device.h"
#include "trainer/base/random/philox.h"

namespace trainer {

// Hidden units are 0 or 1. Visible units are 0 or 1 too or, with gaussian, real numbers with
// variance 1.
//   energy(v, h) = -b v - c h - h W v            (gaussian: |v - b|^2 / 2 - c h - h W v)
struct BoltzmannUnits {
  int64_t visible = 0, hidden = 0;
  bool gaussian = false;
};

// Weights of one machine, on the device: W (hidden, visible), c (hidden), b (visible).
struct BoltzmannWeights {
  const float* w = nullptr;
  const float* hidden_bias = nullptr;
  const float* visible_bias = nullptr;
};

// Selects random numbers: draw number `draw` of pass *pass, which is on the device.
struct UnitDraw {
  PhiloxKey key;
  const uint32_t* pass = nullptr;
  uint32_t draw = 0;
};

// Matrix products for batches of `rows` records of one machine. Used by one thread; its calls
// allocate nothing. All arrays are on the device: (rows, visible) or (rows, hidden), row-major.
class BoltzmannProducts {
 public:
  BoltzmannProducts(const Device& device, const BoltzmannUnits& units, int64_t rows);

  // Returns the bytes that each call below needs as `scratch`.
  size_t ScratchBytes() const;
  // hidden = visible W^T + c. The logistic function of it gives the hidden units' means.
  void HiddenInputs(const BoltzmannWeights& weights, const float* visible, float* hidden,
                    std::span<std::byte> scratch) const;
  // visible = hidden W + b.
  void VisibleInputs(const BoltzmannWeights& weights, const float* hidden, float* visible,
                     std::span<std::byte> scratch) const;

  // Returns the product that HiddenInputs runs, e.g. for the name of its kernel.
  GemmPrimitive& up() const { return *up_; }
  // Returns the product that VisibleInputs runs.
  GemmPrimitive& down() const { return *down_; }

 private:
  std::unique_ptr<GemmPrimitive> up_, down_;
};

// Converts inputs to means, in place: applies the logistic function; leaves gaussian units
// unchanged.
void UnitMeans(const Device& device, bool gaussian, float* values, int64_t count);
// Draws units from their means: 1 with the mean as the probability, else 0; a gaussian unit is its
// mean plus a normal number. `drawn` may be `means`.
void DrawUnits(const Device& device, bool gaussian, const UnitDraw& draw, const float* means,
               float* drawn, int64_t count);

// *out = the mean over `rows` records of the free energy -log sum_h exp(-energy(v, h)):
//   -b v - sum_j log(1 + exp(input_j))           (gaussian: |v - b|^2 / 2 in place of -b v)
// computed from the inputs of the hidden units. `out` is on the device.
void MeanFreeEnergy(const Device& device, const BoltzmannUnits& units, int64_t rows,
                    const float* visible, const float* visible_bias, const float* hidden_inputs,
                    float* out);

}  // namespace trainer
