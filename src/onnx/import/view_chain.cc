#include "import/view_chain.h"

#include <algorithm>
#include <numeric>

#include "import/fold.h"
#include "import/fuse.h"

namespace trainer {
namespace {

constexpr int64_t kMaxElementsTraced = int64_t{1} << 25;

// Returns whether the node only moves the numbers of its first input.
bool IsView(const ImportGraph& graph, const ImportNode& node) {
  for (const char* op : {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Gather", "Slice", "Split",
                         "Flatten", "Identity"}) {
    if (node.op != op) continue;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.inputs[i] >= 0 && graph.ConstantOf(node.inputs[i]) == nullptr) return false;
    }
    return graph.ConstantOf(node.inputs[0]) == nullptr;
  }
  return false;
}

}  // namespace

std::optional<ViewChain> ExtendUp(ImportGraph& graph, const ViewChain& chain) {
  const ImportNode* const node = graph.ProducerOf(chain.source);
  if (node == nullptr) return std::nullopt;
  ViewChain longer = chain;
  if (const auto product = ReadWithNumber(graph, node, "Mul")) {
    longer.source = product->value;
    longer.factor *= product->number;
    return longer;
  }
  if (const auto quotient = ReadWithNumber(graph, node, "Div")) {
    longer.source = quotient->value;
    longer.factor /= quotient->number;
    return longer;
  }
  if (!IsView(graph, *node)) return std::nullopt;
  const auto output = std::ranges::find(node->outputs, chain.source);
  const ViewStep step = {graph.value(chain.source).producer,
                         static_cast<size_t>(output - node->outputs.begin())};
  longer.steps.insert(longer.steps.begin(), step);
  longer.source = node->inputs[0];
  return longer;
}

std::optional<ViewStep> NextView(ImportGraph& graph, int value) {
  const ImportNode* const node = graph.SoleConsumerOf(value);
  if (node == nullptr || node->op == "Split" || !IsView(graph, *node)) return std::nullopt;
  return ViewStep{graph.value(value).consumers[0], 0};
}

std::optional<Constant> TraceElements(ImportGraph& graph, const Dims& source,
                                      const std::vector<ViewStep>& steps) {
  const int64_t count = CountOf(source);
  if (count > kMaxElementsTraced) return std::nullopt;
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  Constant elements = MakeInts(source, std::move(all));
  for (const ViewStep& step : steps) {
    if (!graph.CountTraced(elements.Count())) return std::nullopt;
    const ImportNode& node = graph.node(step.node);
    std::vector<const Constant*> inputs = {&elements};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      inputs.push_back(graph.ConstantOf(node.inputs[i]));
    }
    std::optional<std::vector<Constant>> moved = FoldNode(graph, node, inputs);
    if (!moved || step.output >= moved->size()) return std::nullopt;
    elements = std::move((*moved)[step.output]);
  }
  return elements;
}

}  // namespace trainer
