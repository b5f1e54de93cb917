#include "time_work.h"

#include <algorithm>

#include "trainer/net/traffic.h"

namespace trainer {
namespace {

bool IsWinograd(const Layer& layer) {
  return layer.Implementation().find("Winograd") != std::string::npos;
}

}  // namespace

std::optional<double> Rate(double work, double ms) {
  if (work <= 0 || ms <= 0) return std::nullopt;
  return 1e-6 * work / ms;
}

PeakShare OfPeak(const Work& work, double ms, const MachinePeak& peak) {
  if (work.flops + work.bytes <= 0 || ms <= 0) return {};
  const double products = 1e-4 * work.flops / peak.gflops / ms;
  const double memory = 1e-4 * work.bytes / peak.gbytes / ms;
  const bool fewer = products > 100 || (work.computes_fewer && products > memory);
  if (fewer) return {PeakShare::Kind::kFewerProducts, 0};
  if (memory > 100) return {PeakShare::Kind::kCached, 0};
  return {PeakShare::Kind::kPercent, std::max(products, memory)};
}

Work ForwardWork(const Net& net, int i) {
  return {2.0 * static_cast<double>(net.GetLayer(i).Macs()),
          static_cast<double>(TrafficOf(net, i).forward), IsWinograd(net.GetLayer(i))};
}

// Backward computes the gradient of the weights and, if something before learns, that of the input.
Work BackwardWork(const Net& net, int i) {
  if (!net.RunsBackward(i)) return {};
  const caffe::LayerParameter& layer = net.LayerAt(i).proto();
  const bool input = layer.bottom_size() > 0 && net.Gradient(layer.bottom(0)).data != nullptr;
  return {2.0 * static_cast<double>(net.GetLayer(i).Macs()) * (input ? 2 : 1),
          static_cast<double>(TrafficOf(net, i).backward), IsWinograd(net.GetLayer(i))};
}

namespace {

// cuDNN does not say whether the algorithm that it chose is Winograd's.
bool MayComputeFewerProducts(const Layer& layer) {
  return IsWinograd(layer) || layer.Implementation().find("cuDNN") != std::string::npos;
}

double LeastMs(const Work& work, const MachinePeak& peak) {
  if (peak.gflops <= 0 || peak.gbytes <= 0) return 0;
  return 1e-6 * std::max(work.flops / peak.gflops, work.bytes / peak.gbytes);
}

}  // namespace

void RaisePeak(const Net& net, Times* times) {
  const auto raise = [&](const Work& work, const Samples& samples) {
    if (samples.empty()) return;
    const double rate = Rate(work.flops, samples.Min()).value_or(0);
    times->peak.gflops = std::max(times->peak.gflops, rate);
  };
  for (int i = 0; i < net.NumLayers(); ++i) {
    if (MayComputeFewerProducts(net.GetLayer(i))) continue;
    const LayerTimes& layer = times->layers[static_cast<size_t>(i)];
    raise(ForwardWork(net, i), layer.forward);
    raise(BackwardWork(net, i), layer.backward);
  }
}

LeastTime LeastTimeOf(const Net& net, const Times& times) {
  LeastTime least;
  const auto add = [&](const Work& work, double took) {
    least.work.flops += work.flops;
    least.work.bytes += work.bytes;
    least.ms += std::min(LeastMs(work, times.peak), took);
  };
  for (int i = 0; i < net.NumLayers(); ++i) {
    const LayerTimes& layer = times.layers[static_cast<size_t>(i)];
    add(ForwardWork(net, i), layer.forward.Min());
    if (!layer.backward.empty()) add(BackwardWork(net, i), layer.backward.Min());
  }
  const auto bytes = static_cast<double>(times.update_bytes);
  add({0, bytes}, LeastMs({0, bytes}, times.peak));
  return least;
}

std::optional<int> OperationsOf(const Times& times) {
  std::optional<int> sum;
  for (const LayerTimes& layer : times.layers) {
    for (const std::optional<int>& count : {layer.forward_operations, layer.backward_operations}) {
      if (count) sum = sum.value_or(0) + *count;
    }
  }
  return sum;
}

}  // namespace trainer
