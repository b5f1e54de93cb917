// A net that is a part of a larger one: several batches under way, and its outer values.

#include "run_state.h"
#include "trainer/base/text/text.h"

namespace trainer {

void ConnectEdges(const NetEdges& edges, Graph& graph) {
  for (const NetEdges::Edge& edge : edges.in) {
    for (const ValueId id : graph.values.Ids()) {
      ValueInfo& value = graph.values[id];
      const StepInfo& writer = graph.steps[value.writer];
      if (value.name != edge.blob || writer.spec.type() != "Input") continue;
      value.gives_gradient = edge.has_gradient;
      graph.edges_in.push_back(id);
      break;
    }
  }
  for (const NetEdges::Edge& edge : edges.out) {
    const auto found = graph.newest.find(edge.blob);
    if (found == graph.newest.end()) continue;
    ValueInfo& value = graph.values[found->second];
    value.goes_on = true;
    value.gets_gradient = edge.has_gradient;
    graph.edges_out.push_back(found->second);
  }
  if (graph.edges_in.size() == edges.in.size() && graph.edges_out.size() == edges.out.size()) {
    return;
  }
  throw Error(ErrorCode::kInternal, "a part of a net lacks a value at its edge");
}

void Net::MakeSlots(const BuildEnv& env) {
  for (int slot = 0; slot < options_.slots; ++slot) {
    programs_.push_back(std::make_unique<const Program>(*graph_, options_, device_));
    states_.push_back(std::make_unique<RunState>(*graph_, *programs_.back(), env));
  }
  SetSlot(0);
}

void Net::SetSlot(int slot) {
  program_ = programs_.at(static_cast<size_t>(slot)).get();
  state_ = states_.at(static_cast<size_t>(slot)).get();
}

namespace {

// Which of its writer's outputs a value is.
size_t IndexOf(const Graph& graph, ValueId id) {
  const std::vector<ValueId>& out = graph.steps[graph.values[id].writer].out;
  return static_cast<size_t>(std::ranges::find(out, id) - out.begin());
}

const Tensor& ValueAt(const Graph& graph, const RunState& state, ValueId id) {
  return state.Of(graph.values[id].writer).forward.Out(static_cast<int>(IndexOf(graph, id)));
}

Tensor GradientAt(const Graph& graph, const Program& program, ValueId id) {
  const ValueInfo& value = graph.values[id];
  return {program.At(value.grad_block), value.shape, value.dtype};
}

}  // namespace

const Tensor& Net::EdgeIn(size_t i) const { return ValueAt(*graph_, *state_, graph_->edges_in[i]); }
const Tensor& Net::EdgeOut(size_t i) const {
  return ValueAt(*graph_, *state_, graph_->edges_out[i]);
}
Tensor Net::EdgeInGradient(size_t i) const {
  return GradientAt(*graph_, *program_, graph_->edges_in[i]);
}
Tensor Net::EdgeOutGradient(size_t i) const {
  return GradientAt(*graph_, *program_, graph_->edges_out[i]);
}

}  // namespace trainer
