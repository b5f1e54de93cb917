#include <algorithm>

#include "import/import_graph.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The longest list of axes or outputs. Nodes may share one list in the file but each node copies
// it.
constexpr size_t kMaxIntegers = 4096;

}  // namespace

ImportNode* ImportGraph::ProducerOf(int value) {
  if (value < 0 || this->value(value).producer < 0) return nullptr;
  return &node(this->value(value).producer);
}

ImportNode* ImportGraph::SoleConsumerOf(int value) {
  const ImportValue& from = this->value(value);
  if (from.is_output || from.consumers.size() != 1) return nullptr;
  return &node(from.consumers[0]);
}

bool ImportGraph::IsUsed(const ImportNode& node, size_t output) const {
  if (output >= node.outputs.size() || node.outputs[output] < 0) return false;
  const ImportValue& used = value(node.outputs[output]);
  return used.is_output || !used.consumers.empty();
}

int ImportGraph::AddConstant(const ImportNode& node, Constant constant) {
  CountFolded(node, constant.Count());
  const int index = AddValue(node.name, constant.dims);
  SetConstant(index, std::move(constant));
  return index;
}

int ImportGraph::AddValue(const std::string& name, const Dims& dims) {
  values_.emplace_back();
  values_.back().name = name;
  values_.back().dims = dims;
  values_.back().has_dims = true;
  return static_cast<int>(values_.size()) - 1;
}

int ImportGraph::AddNode(ImportNode node) {
  const int index = static_cast<int>(nodes_.size());
  for (const int input : node.inputs) {
    if (input >= 0) values_[static_cast<size_t>(input)].consumers.push_back(index);
  }
  for (const int output : node.outputs) {
    if (output >= 0) values_[static_cast<size_t>(output)].producer = index;
  }
  nodes_.push_back(std::move(node));
  return index;
}

void ImportGraph::Sort() {
  // Walks depth-first from the outputs and emits a node after the nodes that compute its inputs.
  // The walk keeps its own stack, because a model may be a chain of any length.
  std::vector<int> state(nodes_.size(), 0);  // 1: its inputs are being visited, 2: in `order`
  std::vector<int> order, stack;
  const auto push = [&](int value) {
    const int producer = value < 0 ? -1 : this->value(value).producer;
    if (producer >= 0 && state[static_cast<size_t>(producer)] == 0) stack.push_back(producer);
  };
  for (const int output : outputs_) {
    push(output);
    while (!stack.empty()) {
      const int top = stack.back();
      int& visited = state[static_cast<size_t>(top)];
      if (visited == 0) {
        visited = 1;
        const std::vector<int>& inputs = node(top).inputs;
        for (size_t i = inputs.size(); i-- > 0;) push(inputs[i]);
      } else {
        stack.pop_back();
        if (visited == 1) order.push_back(top);
        visited = 2;
      }
    }
  }
  std::vector<ImportNode> sorted;
  for (const int index : order) sorted.push_back(std::move(node(index)));
  // Keeps the file's order where possible, because the author of the net chose it.
  std::ranges::stable_sort(sorted, {}, &ImportNode::index);
  nodes_.clear();
  for (ImportValue& value : values_) {
    value.producer = -1;
    value.consumers.clear();
  }
  for (ImportNode& node : sorted) AddNode(std::move(node));
}

int AxisOf(const ImportGraph& graph, const ImportNode& node, int64_t axis, size_t rank) {
  const auto axes = static_cast<int64_t>(rank);
  if (axis < -axes || axis >= axes) {
    graph.Refuse(node, Join("axis ", axis, " does not exist; its input has ", axes, " axes"));
  }
  return static_cast<int>(axis < 0 ? axis + axes : axis);
}

std::optional<Dims> IntsOf(const ImportGraph& graph, const ImportNode& node,
                           const std::string& attribute, size_t input) {
  if (node.Has(attribute)) return node.Ints(attribute);
  const int value = node.Input(input);
  if (value < 0) return std::nullopt;
  const Constant* const constant = graph.ConstantOf(value);
  if (constant == nullptr || constant->is_float || constant->Count() > kMaxIntegers) {
    graph.Refuse(node, Join("its ", attribute, " (input ", input,
                            ") are not a few constant integers; a net has fixed shapes: export "
                            "the model with fixed sizes"));
  }
  return constant->ints;
}

}  // namespace trainer
