#include "import/names.h"

#include <algorithm>

#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the word that represents an operator in names: "conv" for Conv, "pool" for all poolings.
std::string WordOf(const std::string& op) {
  static const std::map<std::string, std::string> words = {{"BatchNormalization", "bn"},
                                                           {"LayerNormalization", "ln"},
                                                           {"InstanceNormalization", "norm"},
                                                           {"GroupNormalization", "gn"},
                                                           {"Gemm", "fc"},
                                                           {"Linear", "fc"},
                                                           {"MaxPool", "pool"},
                                                           {"AveragePool", "pool"},
                                                           {"GlobalAveragePool", "pool"},
                                                           {"GlobalMaxPool", "pool"},
                                                           {"ReduceMean", "mean"},
                                                           {"ConvTranspose", "deconv"},
                                                           {"MultiHeadAttention", "attention"}};
  const auto found = words.find(op);
  return found == words.end() ? LowerCase(op) : found->second;
}

bool HasTrainedWeights(const std::string& op) {
  for (const char* one :
       {"Conv", "ConvTranspose", "Gemm", "Linear", "BatchNormalization", "LayerNormalization",
        "InstanceNormalization", "GroupNormalization", "PRelu", "LSTM", "MultiHeadAttention"}) {
    if (op == one) return true;
  }
  return false;
}

// Returns the module whose weight the node reads, e.g. "layer1.0.conv1" for a weight of the name
// "layer1.0.conv1.weight". Returns "" if the weight's name does not have this form.
std::string ModuleOfWeight(const ImportGraph& graph, const ImportNode& node) {
  if (!HasTrainedWeights(node.op)) return "";
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i] < 0) continue;
    const std::string& name = graph.value(node.inputs[i]).name;
    for (const char* end : {".weight", ".in_proj_weight"}) {
      if (name.ends_with(end) && name.find("::") == std::string::npos) {
        return name.substr(0, name.size() - std::string_view(end).size());
      }
    }
  }
  return "";
}

// Returns whether PyTorch has a module for the operator, e.g. an activation.
bool IsModule(const std::string& op) {
  for (const char* one :
       {"Relu",       "LeakyRelu", "Clip",        "Sigmoid",           "Tanh",
        "Elu",        "Selu",      "Celu",        "HardSigmoid",       "HardSwish",
        "SiLU",       "Mish",      "Gelu",        "Softplus",          "Softmax",
        "LogSoftmax", "MaxPool",   "AveragePool", "GlobalAveragePool", "Dropout",
        "Upsample",   "Resize"}) {
    if (op == one) return true;
  }
  return false;
}

// Returns whether the module's name suffices as the node's name, because it says what the node does
// or gives its place in a sequence ("features.0.2").
bool NamesNode(const std::string& module, const std::string& op) {
  const std::string last = LowerCase(module.substr(module.rfind('.') + 1));
  if (last.starts_with(WordOf(op))) return true;
  if (!IsModule(op)) return false;
  if (!last.empty() && std::ranges::all_of(last, [](char c) { return c >= '0' && c <= '9'; })) {
    return module.find('.') != std::string::npos;
  }
  for (const char* part : {"act", "drop", "pool", "relu", "gelu", "silu", "up"}) {
    if (last.find(part) != std::string::npos) return true;
  }
  return false;
}

// Returns the name of a module from the scopes that PyTorch's exporter writes. There, each module
// repeats the last part of its parent: "/layer1/layer1.0/conv1/Conv".
std::string ModuleOfScopes(const ImportNode& node) {
  const std::vector<std::string> scopes = SplitList(node.name, '/');
  std::string module, last;
  for (size_t i = 0; i + 1 < scopes.size(); ++i) {
    if (!last.empty() && scopes[i].starts_with(last + ".")) {
      module.resize(module.size() - last.size());
    } else if (!module.empty()) {
      module += ".";
    }
    module += scopes[i];
    last = scopes[i];
  }
  if (!module.empty() && (HasTrainedWeights(node.op) || NamesNode(module, node.op))) return module;
  // The number that PyTorch appends to the operator is kept, so Add_1 becomes add_1.
  std::string word = WordOf(node.op);
  const std::string& call = scopes.empty() ? node.op : scopes.back();
  const size_t number = call.rfind('_');
  if (number != std::string::npos && number + 1 < call.size() && call[number + 1] >= '0' &&
      call[number + 1] <= '9') {
    word += call.substr(number);
  }
  return module.empty() ? word : module + "." + word;
}

}  // namespace

std::string LayerNames::Unique(const std::string& name) {
  std::string unique = name;
  // The search continues at the last number tried, because many nodes may want the same name.
  for (int& number = numbers_[name]; !used_.insert(unique).second; ++number) {
    unique = Join(name, "_", number + 2);
  }
  return unique;
}

std::string LayerNames::Choose(const ImportGraph& graph, const ImportNode& node,
                               const std::string& suffix) {
  std::string name = ModuleOfWeight(graph, node);
  if (name.empty() && node.name.starts_with("/")) name = ModuleOfScopes(node);
  if (name.empty()) name = node.name.starts_with("node_") ? node.name.substr(5) : node.name;
  if (name.empty()) {
    const std::string word = WordOf(node.op);
    name = Join(word, suffix.empty() ? ++counts_[word] : std::max(counts_[word], 1));
  }
  return Unique(EscapeControl(suffix.empty() ? name : name + "_" + suffix));
}

}  // namespace trainer
