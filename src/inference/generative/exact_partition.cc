#include "generative/exact_partition.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int kMaxEnumeratedUnits = 22;  // 4 million states

// An RBM seen from the side with fewer units, whose states are enumerated. Each enumerated unit
// that is on adds its row to the inputs of the other units.
struct SumSide {
  std::vector<double> bias, other_bias;
  std::vector<std::vector<double>> rows;  // one per unit that is enumerated over
  bool others_gaussian = false;
};

// Returns log(1 + exp(x)) without overflow.
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

// Returns log of the sum over the states of the other units, which has a closed form.
double LogOthers(const SumSide& side, const std::vector<double>& inputs) {
  double sum = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const double x = inputs[k], b = side.other_bias[k];
    sum +=
        side.others_gaussian ? 0.5 * (x * x - b * b + std::log(2 * std::numbers::pi)) : Softplus(x);
  }
  return sum;
}

// Returns log Z. Enumerates the states in the order of a Gray code, so that one unit changes from
// state to state and the inputs are updated with one row.
double LogSum(const SumSide& side) {
  std::vector<double> inputs = side.other_bias;
  double bias = 0, largest = -INFINITY, sum = 0;
  uint64_t state = 0;
  const uint64_t states = uint64_t{1} << side.bias.size();
  for (uint64_t i = 0; i < states; ++i) {
    if (i > 0) {
      const auto unit = static_cast<size_t>(std::countr_zero(i));
      state ^= uint64_t{1} << unit;
      const double sign = state >> unit & 1 ? 1 : -1;
      bias += sign * side.bias[unit];
      for (size_t k = 0; k < inputs.size(); ++k) inputs[k] += sign * side.rows[unit][k];
    }
    const double log_p = bias + LogOthers(side, inputs);
    if (log_p > largest) {
      sum *= std::exp(largest - log_p);
      largest = log_p;
    }
    sum += std::exp(log_p - largest);
  }
  return largest + std::log(sum);
}

// Copies numbers from the device as doubles.
std::vector<double> Read(const Device& device, const float* from, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  device.CopyToHost(values.data(), from, values.size() * sizeof(float));
  return {values.begin(), values.end()};
}

}  // namespace

double ExactPartition(const Device& device, const RbmModel& rbm) {
  const BoltzmannUnits& units = rbm.units;
  const bool over_hidden = units.gaussian || units.hidden <= units.visible;
  const int64_t enumerated = over_hidden ? units.hidden : units.visible;
  if (enumerated > kMaxEnumeratedUnits) {
    throw Error(ErrorCode::kUsage, Join("the exact sum needs 2^", enumerated, " states of the ",
                                        over_hidden ? "hidden" : "visible", " units of '", rbm.name,
                                        "', but at most ", kMaxEnumeratedUnits,
                                        " units can be summed over; leave --exact out to "
                                        "estimate it"));
  }
  const std::vector<double> w = Read(device, rbm.weights.w, units.hidden * units.visible);
  SumSide side;
  side.bias = Read(device, rbm.weights.hidden_bias, units.hidden);
  side.other_bias = Read(device, rbm.weights.visible_bias, units.visible);
  if (!over_hidden) std::swap(side.bias, side.other_bias);
  side.others_gaussian = over_hidden && units.gaussian;
  const auto visible = static_cast<size_t>(units.visible);
  for (size_t unit = 0; unit < side.bias.size(); ++unit) {
    std::vector<double>& row = side.rows.emplace_back();
    for (size_t k = 0; k < side.other_bias.size(); ++k) {
      row.push_back(over_hidden ? w[unit * visible + k] : w[k * visible + unit]);
    }
  }
  return LogSum(side);
}

}  // namespace trainer
