#include "inspect/input_gradient.h"

#include <algorithm>

#include "trainer/config/net_layers.h"
#include "trainer/inference/predict/image_preprocessor.h"

namespace trainer {
namespace {

// Returns the layers that compute the blob `*output`. If the last one is a Softmax, leaves it out
// and sets `*output` to its bottom.
NetSpec LayersUpTo(const NetSpec& net, const caffe::NetState& state, std::string* output) {
  NetSpec part;
  part.proto = net.proto;
  part.file = net.file;
  part.tree = net.tree;
  part.layers = ConnectedLayers(net, state);
  const auto writes = [&](const LayerSpec& layer) {
    return std::ranges::find(layer.proto().top(), *output) != layer.proto().top().end();
  };
  while (!part.layers.empty() && !writes(part.layers.back())) part.layers.pop_back();
  if (part.layers.empty() || part.layers.back().type() != "Softmax") return part;
  *output = part.layers.back().proto().bottom(0);
  part.layers.pop_back();
  return part;
}

}  // namespace

InputGradient::InputGradient(const NetSpec& spec, const Net& net, const std::string& output) {
  NetOptions options;
  options.state = net.graph().options.state;
  options.training = true;
  options.log = false;
  std::string scores = output;
  spec_ = LayersUpTo(spec, options.state, &scores);
  // The net is compiled as a stage of a pipeline: the next stage would send the gradient of
  // `scores`, and the previous one would get that of the input.
  options.boundary.in = {{.blob = ImageInput(net).name, .has_gradient = true}};
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
