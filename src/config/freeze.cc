#include "trainer/config/freeze.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/config/name_pattern.h"

namespace trainer {
namespace {

constexpr std::array<std::string_view, 17> kTypesWithWeights = {"BatchNorm",
                                                                "Bias",
                                                                "Convolution",
                                                                "ConvolutionDepthwise",
                                                                "Deconvolution",
                                                                "Embed",
                                                                "GroupNorm",
                                                                "InnerProduct",
                                                                "DepthwiseConvolution",
                                                                "LSTM",
                                                                "LayerNorm",
                                                                "MultiHeadAttention",
                                                                "Normalize",
                                                                "PReLU",
                                                                "Parameter",
                                                                "RBM",
                                                                "RNN"};

[[noreturn]] void FailFreeze(const std::string& which, const std::string& message) {
  throw Error(ErrorCode::kUsage, EscapeControl(Join("--freeze=", which, ": ", message)));
}

// Returns the layers, among the ones with weights, that `which` selects.
std::set<std::string> Selected(const std::string& which, const std::vector<std::string>& names) {
  if (which == "all-but-last") return {names.begin(), names.end() - 1};
  if (const std::optional<int> count = ParseNumber<int>(which)) {
    const auto most = static_cast<int>(names.size());
    if (*count < 1 || *count >= most) {
      FailFreeze(which, Join("the net has ", most,
                             " layers with weights, and at least one must learn; give a number "
                             "from 1 to ",
                             most - 1));
    }
    return {names.begin(), names.begin() + *count};
  }
  if (!IsPattern(which)) {
    FailFreeze(which, Join("it must be all-but-last, a number of layers, or a pattern of names "
                           "between slashes, such as /",
                           which.empty() ? "conv.*" : which, "/"));
  }
  const NamePattern pattern(which, Join("--freeze=", which));
  std::set<std::string> selected;
  for (const std::string& name : names) {
    if (pattern.Matches(name)) selected.insert(name);
  }
  if (selected.empty()) {
    FailFreeze(which,
               Join(NoMatch(which, names), "; the layers with weights are ", JoinList(names)));
  }
  if (selected.size() == names.size()) {
    FailFreeze(which, "it selects every layer with weights, so nothing would learn");
  }
  return selected;
}

}  // namespace

bool HasWeights(const LayerSpec& layer) {
  const bool two = layer.proto().bottom_size() > 1;
  if (layer.type() == "Scale") return !two || layer.proto().scale_param().bias_term();
  if (layer.type() == "Bias" && two) return false;
  return std::ranges::find(kTypesWithWeights, layer.type()) != kTypesWithWeights.end();
}

std::vector<LayerSpec> LayersWithWeights(const SolverSpec& spec) {
  std::vector<LayerSpec> layers = FilterLayers(*spec.train.net, spec.train.state);
  std::erase_if(layers, [](const LayerSpec& layer) { return !HasWeights(layer); });
  return layers;
}

void FreezeLayers(const std::string& which, SolverSpec* spec) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : LayersWithWeights(*spec)) names.push_back(layer.name());
  if (names.size() < 2) {
    FailFreeze(which, Join("the net has ", names.size(), names.size() == 1 ? " layer" : " layers",
                           " with weights, so freezing would leave nothing to learn"));
  }
  const std::set<std::string> selected = Selected(which, names);
  for (NetSpec& net : spec->nets) {
    if (&net != spec->train.net) continue;
    for (LayerSpec& layer : net.layers) {
      if (selected.contains(layer.name())) layer.mutable_proto().set_freeze(true);
    }
  }
}

}  // namespace trainer
