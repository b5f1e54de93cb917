#include "inspect/input_gradient.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "trainer/config/net_layers.h"
#include "trainer/inference/predict/image_preprocessor.h"

namespace trainer {
namespace {

// Returns the layers that compute the blob `*output` and the layers that write `input`, with loss
// weights of 0. If a Softmax computes the output, leaves it out and sets `*output` to its bottom.
NetSpec LayersThatCompute(const NetSpec& net, const caffe::NetState& state,
                          const std::string& input, std::string* output) {
  NetSpec part;
  part.proto = net.proto;
  part.file = net.file;
  part.tree = net.tree;
  std::set<std::string> wanted = {input, *output};
  const auto is_wanted = [&](const std::string& top) { return wanted.contains(top); };
  bool is_last = true;  // whether the loop has not yet found a layer that writes the output
  std::vector<LayerSpec> layers = ConnectedLayers(net, state);
  for (LayerSpec& layer : layers | std::views::reverse) {
    caffe::LayerParameter& proto = layer.mutable_proto();
    if (std::ranges::none_of(proto.top(), is_wanted)) continue;
    const bool writes_output = std::ranges::find(proto.top(), *output) != proto.top().end();
    if (writes_output && std::exchange(is_last, false) && layer.type() == "Softmax") {
      *output = proto.bottom(0);
      wanted = {input, *output};
      continue;
    }
    wanted.insert(proto.bottom().begin(), proto.bottom().end());
    for (float& weight : *proto.mutable_loss_weight()) weight = 0;
    part.layers.push_back(layer);
  }
  std::ranges::reverse(part.layers);
  return part;
}

}  // namespace

InputGradient::InputGradient(const NetSpec& spec, const Net& net, const std::string& output) {
  NetOptions options;
  options.state = net.graph().options.state;
  options.training = true;
  options.log = false;
  const std::string input = ImageInput(net).name;
  std::string scores = output;
  spec_ = LayersThatCompute(spec, options.state, input, &scores);
  // The net is compiled as one stage of a pipeline, because a stage receives the gradient of its
  // output, here `scores`, and computes the gradient of its input.
  options.boundary.in = {{.blob = input, .has_gradient = true}};
  options.boundary.out = {{.blob = scores, .has_gradient = true}};
  net_ = std::make_unique<Net>(spec_, options, net.device(), net.store());
}

std::vector<float> InputGradient::Compute(std::span<const float> input, size_t index) {
  const ValueId in = net_->graph().boundary_in[0], out = net_->graph().boundary_out[0];
  net_->WriteNchw(input, net_->Value(in));
  net_->Forward();
  const Tensor seed = net_->Gradient(out), gradient = net_->Gradient(in);
  if (seed.data == nullptr || gradient.data == nullptr) return {};
  std::vector<float> one(static_cast<size_t>(seed.Count()), 0.0f);
  one.at(index) = 1;
  net_->WriteNchw(one, seed);
  net_->Backward();
  std::vector<float> result(static_cast<size_t>(gradient.Count()));
  net_->ReadNchw(gradient, result);
  return result;
}

}  // namespace trainer
