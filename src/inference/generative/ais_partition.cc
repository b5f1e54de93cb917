#include "trainer/inference/generative/ais_partition.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainer/backend/loops/map_random.h"
#include "trainer/backend/loops/map_rows.h"
#include "trainer/backend/loops/math.h"
#include "trainer/backend/memory/device_array.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer {
namespace {

// Converts the inputs of visible units, in place, to their means at inverse temperature `beta`,
// between the base distribution (0) and the RBM (1).
struct TemperVisible {
  float* inputs;
  const float* base_bias;
  int64_t visible;
  float beta;
  bool gaussian;
  HD void operator()(int64_t i) const {
    const float input = beta * inputs[i] + (1 - beta) * base_bias[i % visible];
    inputs[i] = gaussian ? input : Logistic(input);
  }
};

// Returns the mean of a hidden unit at inverse temperature `beta`.
struct TemperHidden {
  float beta;
  HD float operator()(float input) const { return Logistic(beta * input); }
};

// Returns log(1 + exp(x)) without overflow: the log of the sum over both states of a hidden unit.
HD float AnnealedSoftplus(float x) { return (x > 0 ? x : 0.0f) + log1pf(Exp(-fabsf(x))); }

// Adds log p(v at beta) - log p(v at before), unnormalized, of each chain to its weight. A weight
// is two floats, the sum and its rounding error (Kahan summation), because thousands of small terms
// are added.
struct WeighRow {
  const float *visible, *inputs, *bias, *base_bias;
  float* weights;
  BoltzmannUnits units;
  float before, beta;

  // Returns the difference that a visible unit's bias makes between the RBM and the base
  // distribution.
  HD float VisibleTerm(float v, int64_t i) const {
    const float b = bias[i], base = base_bias[i];
    if (!units.gaussian) return (b - base) * v;
    return 0.5f * ((v - base) * (v - base) - (v - b) * (v - b));
  }
  template <class Row>
  HD void operator()(const Row& row) const {
    const float* const z = inputs + row.index * units.hidden;
    const float* const v = visible + row.index * units.visible;
    const float sum = row.Sum([&](int64_t i) {
      if (i < units.hidden) return AnnealedSoftplus(beta * z[i]) - AnnealedSoftplus(before * z[i]);
      const int64_t k = i - units.hidden;
      return (beta - before) * VisibleTerm(v[k], k);
    });
    row.Once([&] {
      float* const weight = weights + 2 * row.index;
      const float add = sum - weight[1], total = weight[0] + add;
      weight[1] = (total - weight[0]) - add;
      weight[0] = total;
    });
  }
};

// Returns the inverse temperature after `step` of `steps` steps; see EstimatePartitionAis.
double Beta(int step, int steps) {
  const double at = 29.0 * step / steps;
  if (at < 1) return 0.5 * at;
  if (at < 9) return 0.5 + 0.4 * (at - 1) / 8;
  return std::min(1.0, 0.9 + 0.1 * (at - 9) / 20);
}

// One estimate: all chains in one matrix per side of the RBM, in device memory.
class Annealing {
 public:
  Annealing(const Device& device, const RbmModel& rbm, std::span<const float> means,
            const AisOptions& options)
      : device_(device),
        rbm_(rbm),
        options_(options),
        products_(device, rbm.units, options.chains),
        base_(device, Size(rbm.units.visible)),
        visible_(device, Size(options.chains * rbm.units.visible)),
        hidden_(device, Size(options.chains * rbm.units.hidden)),
        weights_(device, Size(2 * options.chains)),
        pass_(device, 1),
        scratch_(device, products_.ScratchBytes() / sizeof(float) + 1) {
    std::vector<float> bias;
    for (const float mean : means) bias.push_back(BaseBias(mean));
    device.CopyToDevice(base_.data(), bias.data(), bias.size() * sizeof(float));
    log_z_base_ = static_cast<double>(rbm.units.hidden) * std::numbers::ln2;
    for (const float b : bias) {
      log_z_base_ += rbm.units.gaussian ? 0.5 * std::log(2 * std::numbers::pi)
                                        : std::max(b, 0.0f) + std::log1p(std::exp(-std::fabs(b)));
    }
  }

  // Runs the chains. Each step adds to the weights the change of log p between two temperatures,
  // and then moves the chains by one Gibbs step at the new one. The last step only weighs.
  PartitionEstimate Run() {
    const std::span<std::byte> scratch(reinterpret_cast<std::byte*>(scratch_.data()),
                                       scratch_.size() * sizeof(float));
    Draw(0, 0);  // from the RBM without weights
    for (int step = 1; step <= options_.steps; ++step) {
      const double before = Beta(step - 1, options_.steps), beta = Beta(step, options_.steps);
      products_.HiddenInputs(rbm_.weights, visible_.data(), hidden_.data(), scratch);
      MapRows(device_, options_.chains, rbm_.units.hidden + rbm_.units.visible,
              WeighRow{visible_.data(), hidden_.data(), rbm_.weights.visible_bias, base_.data(),
                       weights_.data(), rbm_.units, static_cast<float>(before),
                       static_cast<float>(beta)});
      if (step == options_.steps) break;
      const Tensor hidden(hidden_.data(), {options_.chains, rbm_.units.hidden});
      Map(device_, TemperHidden{static_cast<float>(beta)}, hidden, hidden);
      const uint32_t draw = 2 * static_cast<uint32_t>(step);
      DrawUnits(device_, false, DrawOf(draw), hidden_.data(), hidden_.data(), hidden.Count());
      products_.VisibleInputs(rbm_.weights, hidden_.data(), visible_.data(), scratch);
      Draw(beta, draw + 1);
      if (options_.progress) options_.progress(step);
    }
    return Estimate();
  }

 private:
  static size_t Size(int64_t count) { return static_cast<size_t>(count); }

  // Returns the bias of a visible unit in the base distribution. Keeps the probability away from 0
  // and 1, so that every state can occur.
  float BaseBias(float mean) const {
    if (rbm_.units.gaussian) return mean;
    const double p = std::clamp(0.95 * mean + 0.025, 1e-3, 1 - 1e-3);
    return static_cast<float>(std::log(p / (1 - p)));
  }

  // Returns the random numbers of draw number `draw`.
  UnitDraw DrawOf(uint32_t draw) const {
    constexpr uint32_t kStream = 0x414953;
    return {{options_.seed, kStream}, reinterpret_cast<const uint32_t*>(pass_.data()), draw};
  }

  // Turns the inputs in visible_ into means at `beta`, and samples the units from them.
  void Draw(double beta, uint32_t draw) {
    const auto count = static_cast<int64_t>(visible_.size());
    ForEach(device_, count,
            TemperVisible{visible_.data(), base_.data(), rbm_.units.visible,
                          static_cast<float>(beta), rbm_.units.gaussian});
    DrawUnits(device_, rbm_.units.gaussian, DrawOf(draw), visible_.data(), visible_.data(), count);
  }

  // Returns the mean of the chains' weights, relative to the largest to avoid overflow, and its
  // error.
  PartitionEstimate Estimate() const {
    std::vector<float> pairs(weights_.size());
    device_.CopyToHost(pairs.data(), weights_.data(), pairs.size() * sizeof(float));
    double largest = -INFINITY, sum = 0, squares = 0;
    const auto chains = static_cast<double>(options_.chains);
    for (size_t i = 0; i < pairs.size(); i += 2) largest = std::max<double>(largest, pairs[i]);
    for (size_t i = 0; i < pairs.size(); i += 2) sum += std::exp(pairs[i] - largest);
    const double mean = sum / chains;
    for (size_t i = 0; i < pairs.size(); i += 2) {
      const double distance = std::exp(pairs[i] - largest) / mean - 1;
      squares += distance * distance;
    }
    PartitionEstimate estimate;
    estimate.log_z = log_z_base_ + largest + std::log(mean);
    estimate.error = std::sqrt(squares / std::max(1.0, chains - 1) / chains);
    estimate.low = estimate.log_z + std::log(std::max(0.0, 1 - 3 * estimate.error));
    estimate.high = estimate.log_z + std::log(1 + 3 * estimate.error);
    return estimate;
  }

  const Device& device_;
  const RbmModel& rbm_;
  const AisOptions& options_;
  BoltzmannProducts products_;
  DeviceFloats base_, visible_, hidden_, weights_;
  DeviceFloats pass_;  // zero, because the draw index alone distinguishes the draws
  DeviceFloats scratch_;
  double log_z_base_ = 0;
};

}  // namespace

PartitionEstimate EstimatePartitionAis(const Device& device, const RbmModel& rbm,
                                       std::span<const float> base_means,
                                       const AisOptions& options) {
  return Annealing(device, rbm, base_means, options).Run();
}

}  // namespace trainer
