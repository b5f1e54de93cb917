#include "time_work.h"

#include <algorithm>

#include "trainer/net/traffic.h"

namespace trainer {

std::optional<double> Rate(double work, double ms) {
  if (work <= 0 || ms <= 0) return std::nullopt;
  return 1e-6 * work / ms;
}

std::optional<double> OfPeak(const Work& work, double ms, const MachinePeak& peak) {
  if (work.flops + work.bytes <= 0 || ms <= 0) return std::nullopt;
  const double products = 1e-4 * work.flops / peak.gflops / ms;
  const double memory = 1e-4 * work.bytes / peak.gbytes / ms;
  if (memory > 100 && memory > products) return std::nullopt;
  return std::min(100.0, std::max(products, memory));
}

Work ForwardWork(const Net& net, int i) {
  return {2.0 * static_cast<double>(net.GetLayer(i).Macs()),
          static_cast<double>(TrafficOf(net, i).forward)};
}

// Backward computes the gradient of the weights and, if something before learns, that of the input.
Work BackwardWork(const Net& net, int i) {
  if (!net.RunsBackward(i)) return {};
  const caffe::LayerParameter& layer = net.LayerAt(i).proto();
  const bool input = layer.bottom_size() > 0 && net.Gradient(layer.bottom(0)).data != nullptr;
  return {2.0 * static_cast<double>(net.GetLayer(i).Macs()) * (input ? 2 : 1),
          static_cast<double>(TrafficOf(net, i).backward)};
}

namespace {

double LeastMs(const Work& work, const MachinePeak& peak) {
  if (peak.gflops <= 0 || peak.gbytes <= 0) return 0;
  return 1e-6 * std::max(work.flops / peak.gflops, work.bytes / peak.gbytes);
}

}  // namespace

LeastTime LeastTimeOf(const Net& net, const Times& times) {
  LeastTime least;
  const auto add = [&](const Work& work) {
    least.work.flops += work.flops;
    least.work.bytes += work.bytes;
    least.ms += LeastMs(work, times.peak);
  };
  for (int i = 0; i < net.NumLayers(); ++i) {
    add(ForwardWork(net, i));
    if (!times.backward.empty()) add(BackwardWork(net, i));
  }
  add({0, static_cast<double>(times.update_bytes)});
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
