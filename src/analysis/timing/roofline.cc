#include "timing/roofline.h"

#include <algorithm>
#include <string>

namespace trainer {
namespace {

// Returns whether a layer may use Winograd's algorithm. cuDNN does not report whether the algorithm
// that it chose is Winograd's.
bool MayComputeFewerProducts(const LayerProfile& layer) {
  return layer.implementation.find("Winograd") != std::string::npos ||
         layer.implementation.find("cuDNN") != std::string::npos;
}

bool IsKnown(const MachinePeak& peak) { return peak.gflops > 0 && peak.gbytes > 0; }

}  // namespace

std::optional<double> Rate(double work, double ms) {
  if (work <= 0 || ms <= 0) return std::nullopt;
  return 1e-6 * work / ms;
}

RooflineFraction FractionOfPeak(const OpCost& cost, double ms, const MachinePeak& peak) {
  if (cost.flops + cost.bytes <= 0 || ms <= 0) return {};
  const double products = 1e-4 * cost.flops / peak.gflops / ms;
  const double memory = 1e-4 * cost.bytes / peak.gbytes / ms;
  const bool fewer = products > 100 || (cost.computes_fewer && products > memory);
  if (fewer) return {RooflineFraction::Kind::kFewerProducts, 0};
  if (memory > 100) return {RooflineFraction::Kind::kCached, 0};
  return {RooflineFraction::Kind::kPercent, std::max(products, memory)};
}

void RaisePeak(NetProfile* profile) {
  const auto raise = [&](const OpCost& cost, const TimingSamples& samples) {
    if (samples.empty()) return;
    const double rate = Rate(cost.flops, samples.Min()).value_or(0);
    profile->peak.gflops = std::max(profile->peak.gflops, rate);
  };
  for (const LayerProfile& layer : profile->layers) {
    if (MayComputeFewerProducts(layer)) continue;
    raise(layer.forward_cost, layer.forward);
    raise(layer.backward_cost, layer.backward);
  }
}

RooflineTime RooflineTimeOf(const NetProfile& profile) {
  RooflineTime least;
  const MachinePeak& peak = profile.peak;
  const double passes = profile.passes_per_step;
  const auto add = [&](const OpCost& cost, double measured_ms) {
    least.cost.flops += passes * cost.flops;
    least.cost.bytes += passes * cost.bytes;
    if (!IsKnown(peak)) return;
    const double products = 1e-6 * cost.flops / peak.gflops;
    const double traffic = 1e-6 * cost.bytes / peak.gbytes;
    double& sum = products > traffic ? least.arithmetic_ms : least.memory_ms;
    sum += passes * std::min(std::max(products, traffic), measured_ms);
  };
  for (const LayerProfile& layer : profile.layers) {
    add(layer.forward_cost, layer.forward.Min());
    if (!layer.backward.empty()) add(layer.backward_cost, layer.backward.Min());
  }
  const auto bytes = static_cast<double>(profile.update_bytes);
  least.cost.bytes += bytes;
  if (IsKnown(peak)) least.memory_ms += 1e-6 * bytes / peak.gbytes;
  return least;
}

std::optional<StepShares> StepSharesOf(const NetProfile& profile) {
  const double measured = profile.Iteration().Median();
  if (!IsKnown(profile.peak) || measured <= 0) return std::nullopt;
  const RooflineTime least = RooflineTimeOf(profile);
  const double whole = std::max(measured, least.Ms());
  const double arithmetic = 100 * least.arithmetic_ms / whole;
  const double memory = 100 * least.memory_ms / whole;
  return StepShares{arithmetic, memory, std::max(0.0, 100 - arithmetic - memory)};
}

std::optional<int> CountOperations(const NetProfile& profile) {
  std::optional<int> sum;
  for (const LayerProfile& layer : profile.layers) {
    for (const std::optional<int>& count : {layer.forward_operations, layer.backward_operations}) {
      if (count) sum = sum.value_or(0) + *count;
    }
  }
  return sum;
}

}  // namespace trainer
