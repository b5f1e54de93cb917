#include "scaling/iteration_profile.h"

#include <algorithm>
#include <functional>
#include <map>

#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/net/cost.h"

namespace trainer {
namespace {

// The fraction of the roofline's speed that MLPerf's ResNet-50 reaches on an H200.
constexpr double kReached = 0.66;

// The time of one layer in a pass.
struct LayerSeconds {
  double forward = 0, backward = 0;
};

// Returns the longer of a layer's multiplications and its memory traffic at the GPU's peak, but at
// least a kernel's launch. A layer that is fused into another one moves no bytes of its own, so its
// forward time is 0.
LayerSeconds RooflineSeconds(const Graph& graph, int i, const GpuSpec& gpu) {
  const Node& node = graph.nodes[NodeId(i)];
  const caffe::LayerParameter& layer = node.spec.proto();
  const bool half = layer.top_size() > 0 && graph.Find(layer.top(0)).dtype != DType::kF32;
  const double flops = half ? gpu.bf16_flops : gpu.f32_flops;
  const double work = 2.0 * static_cast<double>(node.layer->Macs()) / flops;
  const NodeBytes traffic = BytesMoved(graph, i);
  LayerSeconds seconds;
  if (traffic.forward > 0) {
    seconds.forward =
        std::max({work, static_cast<double>(traffic.forward) / gpu.bytes, gpu.launch});
  }
  if (node.has_backward) {
    const double both = layer.bottom_size() > 0 && i > 1 ? 2 : 1;  // of weights and of inputs
    seconds.backward = std::max(
        {both * work, static_cast<double>(traffic.backward) / gpu.bytes, both * gpu.launch});
  }
  return seconds;
}

// Returns an iteration with `passes` passes of these layers and no update. Groups gradients by the
// layer whose backward step finishes them, from the last layer to the first. They are ready once
// the backward steps of the last pass down to that layer have run.
IterationProfile ProfileFromLayers(const Graph& graph, const std::vector<LayerSeconds>& layers,
                                   int passes) {
  std::map<int, double, std::greater<>> bytes;
  for (const Param* param : graph.params) {
    if (param->lr_mult == 0) continue;
    bytes[param->final_grad_node] += static_cast<double>(ParamStore::PaddedCount(param->count())) *
                                     static_cast<double>(sizeof(float));
  }
  IterationProfile profile;
  double forward = 0;
  const auto& nodes = graph.nodes;
  for (int i = nodes.size(); i >= 0; --i) {
    if (i < nodes.size()) {
      forward += layers[static_cast<size_t>(i)].forward;
      profile.backward += layers[static_cast<size_t>(i)].backward;
    }
    const auto found = bytes.find(i);
    if (found == bytes.end()) continue;
    const std::string name = i < nodes.size() ? nodes[NodeId(i)].spec.name() : "nobody";
    profile.gradients.push_back({name, found->second, profile.backward});
  }
  profile.forward = forward * passes + profile.backward * (passes - 1);
  profile.images = static_cast<double>(BatchSizeOf(graph) * passes);
  return profile;
}

// Returns the time of the update's memory traffic: each weight, its gradient and its states are
// read, the weight and the states written.
double UpdateSeconds(const Graph& graph, const GpuSpec& gpu, int states_per_weight) {
  double weights = 0;
  for (const Param* param : graph.params) weights += static_cast<double>(param->count());
  constexpr int kFixed = 3;  // reads weight and gradient, writes the weight
  return weights * sizeof(float) * (kFixed + 2 * states_per_weight) / gpu.bytes;
}

// Returns the iteration at the speed of the roofline, without anything that keeps a real GPU below
// it.
IterationProfile RooflineProfile(const Graph& graph, const GpuSpec& gpu, int passes,
                                 int states_per_weight) {
  std::vector<LayerSeconds> layers;
  for (int i = 0; i < graph.nodes.size(); ++i) {
    layers.push_back(RooflineSeconds(graph, i, gpu));
  }
  IterationProfile profile = ProfileFromLayers(graph, layers, passes);
  profile.update = UpdateSeconds(graph, gpu, states_per_weight);
  return profile;
}

}  // namespace

double IterationProfile::GradientBytes() const {
  double bytes = 0;
  for (const GradientReady& ready : gradients) bytes += ready.bytes;
  return bytes;
}

IterationProfile Scaled(const IterationProfile& work, double factor) {
  IterationProfile scaled = work;
  scaled.forward *= factor;
  scaled.backward *= factor;
  scaled.update *= factor;
  for (GradientReady& ready : scaled.gradients) ready.ready *= factor;
  return scaled;
}

// Takes the total from passes without a clock, because reading the clock around each layer takes
// time, and divides it among the layers in proportion to their medians.
IterationProfile MeasuredIteration(const Graph& graph, const NetProfile& measured, int passes) {
  constexpr double kMs = 1e-3;
  const double clocked = measured.forward.Median() + measured.backward.Median();
  const double factor = clocked > 0 ? kMs * measured.pass.Median() / clocked : 0;
  std::vector<LayerSeconds> layers;
  for (const LayerProfile& layer : measured.layers) {
    layers.push_back({layer.forward.Median(), layer.backward.Median()});
  }
  double sum = 0;
  for (const LayerSeconds& layer : layers) sum += layer.forward + layer.backward;
  const double whole = sum > 0 ? factor * clocked / sum : 0;
  for (LayerSeconds& layer : layers) {
    layer = {layer.forward * whole, layer.backward * whole};
  }
  IterationProfile profile = ProfileFromLayers(graph, layers, passes);
  const double update = measured.step.Median() - passes * measured.pass.Median();
  profile.update = measured.step.empty() ? 0 : std::max(0.0, kMs * update);
  const TimingSamples& whole_step = measured.Iteration();
  return Scaled(profile, whole_step.Mean() / whole_step.Median());
}

IterationProfile EstimatedIteration(const Graph& graph, const GpuSpec& gpu, int passes,
                                    int states_per_weight) {
  return Scaled(RooflineProfile(graph, gpu, passes, states_per_weight), 1 / kReached);
}

IterationProfile GivenIteration(const Graph& graph, double seconds, int passes,
                                int states_per_weight) {
  const IterationProfile profile =
      RooflineProfile(graph, {"any", 20e9, 40e9, 1e9, 0, ""}, passes, states_per_weight);
  return Scaled(profile, seconds / profile.Seconds());
}

}  // namespace trainer
