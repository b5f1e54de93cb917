#include "step_work.h"

#include <algorithm>
#include <functional>
#include <map>

#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/net/traffic.h"

namespace trainer {
namespace {

constexpr double kLaunch = 4e-6;  // of a kernel, an order of magnitude

// NVIDIA's data sheets (SXM variants, without sparsity): f32 through TF32 where there is TF32.
constexpr GpuSpec kGpus[] = {
    {"V100", 15.7e12, 125e12, 0.9e12, kLaunch, "NVLink3"},
    {"A100", 156e12, 312e12, 2.04e12, kLaunch, "NVLink3"},
    {"H100", 494e12, 989e12, 3.35e12, kLaunch, "NVLink4"},
    {"H200", 494e12, 989e12, 4.8e12, kLaunch, "NVLink4"},
};

// Of the time that products or memory need at least: what MLPerf's ResNet-50 reaches on an H200.
constexpr double kReached = 0.66;

struct LayerSeconds {
  double forward = 0, backward = 0;
};

// A layer that another one computes moves nothing of its own.
LayerSeconds LeastLayerTime(const Net& net, int i, const GpuSpec& peak) {
  const caffe::LayerParameter& layer = net.LayerAt(i).proto();
  const bool half = layer.top_size() > 0 && net.Value(layer.top(0)).dtype != DType::kF32;
  const double flops = half ? peak.bf16_flops : peak.f32_flops;
  const double work = 2.0 * static_cast<double>(net.GetLayer(i).Macs()) / flops;
  const LayerTraffic traffic = TrafficOf(net, i);
  LayerSeconds seconds;
  if (traffic.forward > 0) {
    seconds.forward =
        std::max({work, static_cast<double>(traffic.forward) / peak.bytes, peak.launch});
  }
  if (net.RunsBackward(i)) {
    const double both = layer.bottom_size() > 0 && i > 1 ? 2 : 1;  // of weights and of inputs
    seconds.backward = std::max(
        {both * work, static_cast<double>(traffic.backward) / peak.bytes, both * peak.launch});
  }
  return seconds;
}

// Gradients by the layer with which backward finishes them, from the last layer to the first; the
// sum of `layers` until then is when they are ready.
StepWork WorkOf(const Net& net, const std::vector<LayerSeconds>& layers, int passes) {
  std::map<int, double, std::greater<>> bytes;
  for (const Param* param : net.params()) {
    if (param->lr_mult == 0) continue;
    bytes[param->last_adder] += static_cast<double>(ParamStore::Padded(param->count())) *
                                static_cast<double>(sizeof(float));
  }
  StepWork work;
  double forward = 0;
  for (int i = net.NumLayers(); i >= 0; --i) {
    if (i < net.NumLayers()) {
      forward += layers[static_cast<size_t>(i)].forward;
      work.backward += layers[static_cast<size_t>(i)].backward;
    }
    const auto found = bytes.find(i);
    if (found == bytes.end()) continue;
    const std::string name = i < net.NumLayers() ? net.LayerAt(i).name() : "nobody";
    work.slices.push_back({name, found->second, work.backward});
  }
  work.forward = forward * passes + work.backward * (passes - 1);
  work.images = static_cast<double>(BatchSizeOf(net) * passes);
  return work;
}

double UpdateSeconds(const Net& net, const GpuSpec& peak, int states_per_weight) {
  double weights = 0;
  for (const Param* param : net.params()) weights += static_cast<double>(param->count());
  constexpr int kFixed = 3;  // reads weight and gradient, writes the weight
  return weights * sizeof(float) * (kFixed + 2 * states_per_weight) / peak.bytes;
}

StepWork LeastWork(const Net& net, const GpuSpec& peak, int passes, int states_per_weight) {
  std::vector<LayerSeconds> layers;
  for (int i = 0; i < net.NumLayers(); ++i) layers.push_back(LeastLayerTime(net, i, peak));
  StepWork work = WorkOf(net, layers, passes);
  work.update = UpdateSeconds(net, peak, states_per_weight);
  return work;
}

}  // namespace

const GpuSpec* FindGpu(const std::string& name) {
  const auto found = std::ranges::find_if(kGpus, [&](const GpuSpec& gpu) {
    return LowerCase(std::string(gpu.name)) == LowerCase(name);
  });
  return found == std::end(kGpus) ? nullptr : found;
}

std::string GpuNames() {
  std::string names;
  for (const GpuSpec& gpu : kGpus) names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  return names;
}

// The clock around each layer takes time of its own: the pass without it counts. Layers have their
// usual share (medians) of the average.
StepWork MeasuredWork(const Net& net, const Times& times, int passes) {
  constexpr double kMs = 1e-3;
  const double clocked = times.forward.Median() + times.backward.Median();
  const double factor = clocked > 0 ? kMs * times.pass.Median() / clocked : 0;
  std::vector<LayerSeconds> layers;
  for (const LayerTimes& layer : times.layers) {
    layers.push_back({layer.forward.Median(), layer.backward.Median()});
  }
  double sum = 0;
  for (const LayerSeconds& layer : layers) sum += layer.forward + layer.backward;
  const double whole = sum > 0 ? factor * clocked / sum : 0;
  for (LayerSeconds& layer : layers) {
    layer = {layer.forward * whole, layer.backward * whole};
  }
  StepWork work = WorkOf(net, layers, passes);
  const double update = times.step.Median() - passes * times.pass.Median();
  work.update = times.step.empty() ? 0 : std::max(0.0, kMs * update);
  const Samples& whole_step = times.Iteration();
  return Scaled(work, whole_step.Mean() / whole_step.Median());
}

StepWork EstimatedWork(const Net& net, const GpuSpec& gpu, int passes, int states_per_weight) {
  return Scaled(LeastWork(net, gpu, passes, states_per_weight), 1 / kReached);
}

StepWork GivenWork(const Net& net, double seconds, int passes, int states_per_weight) {
  const StepWork work = LeastWork(net, {"any", 20e9, 40e9, 1e9, 0, ""}, passes, states_per_weight);
  return Scaled(work, seconds / work.Seconds());
}

}  // namespace trainer
