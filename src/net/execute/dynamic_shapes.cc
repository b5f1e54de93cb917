#include "execute/dynamic_shapes.h"

#include <algorithm>

#include "compile/build.h"
#include "compile/node_signature.h"
#include "trainer/base/text/text.h"

namespace trainer {

DynamicShapes::DynamicShapes(const Graph& graph, Bindings& bindings, const CompileEnv& env)
    : graph_(graph), bindings_(bindings), env_(env) {
  for (const ValueId id : graph.values.Ids()) {
    if (graph.values[id].is_dynamic) values_[id].shape = graph.values[id].shape;
  }
  for (const NodeId id : graph.nodes.Ids()) {
    const Node& node = graph.nodes[id];
    if (!node.has_dynamic_shape) continue;
    DynamicNode& varying = nodes_[id];
    for (const ValueId in : node.in) varying.described_for.push_back(graph.values[in].shape);
    if (std::ranges::any_of(node.signature.out, &NodeSignature::Output::is_dynamic)) {
      RunContext& forward = bindings.Of(id).forward;
      forward.resizable_ = &forward;
    }
  }
}

DynamicShapes::~DynamicShapes() {
  for (void* spare : spares_) env_.device.Free(spare);
}

const Shape& DynamicShapes::CurrentShape(ValueId value) const {
  const Value& info = graph_.values[value];
  return info.is_dynamic ? ShapeOf(value) : info.shape;
}

bool DynamicShapes::BeforeForward(NodeId id) {
  const Node& node = graph_.nodes[id];
  DynamicNode& varying = nodes_.at(id);
  bool same = true;
  varying.skipped = false;
  for (size_t k = 0; k < node.in.size(); ++k) {
    const auto value = values_.find(node.in[k]);
    if (value == values_.end()) continue;
    varying.skipped = varying.skipped || value->second.empty;
    same = same && value->second.shape == varying.described_for[k];
  }
  for (const ValueId out : node.out) {
    if (graph_.values[out].is_dynamic) values_.at(out).empty = varying.skipped;
  }
  if (varying.skipped) {
    for (const Tensor& out : bindings_.Of(id).forward.out_) env_.device.Zero(out.data, out.Bytes());
  } else if (!same) {
    SetupAgain(id, varying);
  }
  return !varying.skipped;
}

void DynamicShapes::SetupAgain(NodeId id, DynamicNode& varying) {
  const Node& node = graph_.nodes[id];
  InputShapes shapes;
  std::vector<DType> types;
  for (const ValueId in : node.in) {
    shapes.push_back(&CurrentShape(in));
    types.push_back(graph_.values[in].dtype);
  }
  const NodeSignature signature = SetupNode(node, shapes, types, env_.options);
  const std::vector<Param*> params =
      ParamsOf(node, signature, env_.options, env_.params, nullptr, id.number);
  if (!signature.AgreesWith(node.signature) || params != node.params) {
    throw Error(ErrorCode::kInternal, node.spec.Where(),
                Join("layer '", node.spec.name(), "' (", node.spec.type(),
                     ") planned for another shape wants other memory than before"));
  }
  auto& [forward, backward] = bindings_.Of(id);
  for (size_t k = 0; k < node.in.size(); ++k) {
    varying.described_for[k] = forward.in_[k].shape = *shapes[k];
    if (!env_.options.training) continue;
    backward.in_[k].shape = backward.grad_in_[k].shape = *shapes[k];
  }
  for (size_t k = 0; k < node.out.size(); ++k) {
    const Value& value = graph_.values[node.out[k]];
    if (signature.out[k].shape.Count() > value.shape.Count()) {
      node.spec.Fail(Join("output '", value.name, "' grows to ", signature.out[k].shape.ToString(),
                          ", although its inputs became smaller"));
    }
    forward.out_[k].shape = signature.out[k].shape;
  }
  TakeShapes(id);
  // For another shape the layer may choose another kernel, which may need more memory even if the
  // shape is smaller.
  const MemoryNeeds needs = PrepareNode(node, signature, env_.options, env_.device);
  forward.workspace_ = backward.workspace_ = Grown(forward.workspace_, needs.workspace);
  if (needs.scratch <= forward.scratch_.size()) return;
  forward.scratch_ = backward.scratch_ = Grown(forward.scratch_, needs.scratch);
}

// Returns `held` if it is large enough, else new memory of twice the size.
std::span<std::byte> DynamicShapes::Grown(std::span<std::byte> held, size_t bytes) {
  if (bytes <= held.size()) return held;
  spares_.push_back(env_.device.Allocate(2 * bytes));
  return {static_cast<std::byte*>(spares_.back()), 2 * bytes};
}

void DynamicShapes::TakeShapes(NodeId id) {
  const Node& node = graph_.nodes[id];
  auto& [forward, backward] = bindings_.Of(id);
  for (size_t k = 0; k < node.out.size(); ++k) {
    const Value& info = graph_.values[node.out[k]];
    if (!info.is_dynamic) continue;
    const Tensor& out = forward.out_[k];
    if (env_.options.training) backward.out_[k].shape = backward.grad_out_[k].shape = out.shape;
    DynamicValue& value = values_.at(node.out[k]);
    value.shape = out.shape;
    value.empty = out.Count() == 0;
    bindings_.SetOutputShape(info, out.shape);
  }
}

bool DynamicShapes::BeforeBackward(NodeId id) const {
  if (!nodes_.at(id).skipped) return true;
  const Node& node = graph_.nodes[id];
  const RunContext& run = bindings_.Of(id).backward;
  for (size_t k = 0; k < node.in.size(); ++k) {
    const Tensor& grad = run.grad_in_[k];
    // The input of a view may share the gradient of a weighted output, which is written only once.
    bool is_loss_weight = false;
    for (size_t o = 0; o < node.out.size(); ++o) {
      const bool weighted = graph_.values[node.out[o]].loss_weight != 0;
      is_loss_weight = is_loss_weight || (weighted && run.grad_out_[o].data == grad.data);
    }
    const Tensor whole{grad.data, CurrentShape(node.in[k]), grad.dtype};
    if (grad.data != nullptr && !is_loss_weight) env_.device.Zero(whole.data, whole.Bytes());
  }
  return false;
}

}  // namespace trainer
