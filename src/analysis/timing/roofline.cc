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

// Returns the longer of the times for the products and for the memory traffic; 0 without a peak.
double RooflineMs(const OpCost& cost, const MachinePeak& peak) {
  if (peak.gflops <= 0 || peak.gbytes <= 0) return 0;
  return 1e-6 * std::max(cost.flops / peak.gflops, cost.bytes / peak.gbytes);
}

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
  const auto add = [&](const OpCost& cost, double measured_ms) {
    least.cost.flops += cost.flops;
    least.cost.bytes += cost.bytes;
    least.ms += std::min(RooflineMs(cost, profile.peak), measured_ms);
  };
  for (const LayerProfile& layer : profile.layers) {
    add(layer.forward_cost, layer.forward.Min());
    if (!layer.backward.empty()) add(layer.backward_cost, layer.backward.Min());
  }
  const auto bytes = static_cast<double>(profile.update_bytes);
  add({0, bytes}, RooflineMs({0, bytes}, profile.peak));
  return least;
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
