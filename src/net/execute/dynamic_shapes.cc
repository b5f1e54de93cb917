#include "execute/dynamic_shapes.h"

#include <algorithm>

#include "compile/build.h"
#include "compile/node_signature.h"
#include "trainer/base/text/text.h"
#include "trainer/net/output_counts.h"

namespace trainer {

void RequireEqualCounts(size_t before, size_t now) {
  if (before == now) return;
  throw Error(ErrorCode::kConfig,
              Join("the outputs of the net have ", now, " values in this batch, but had ", before,
                   " in the batch before, so they cannot be averaged: connect each output that a "
                   "Filter layer resizes to a Silence layer"));
}

DynamicShapes::DynamicShapes(const Graph& graph, const Bindings& bindings, const CompileEnv& env)
    : graph_(graph), bindings_(bindings), env_(env) {
  for (const ValueId id : graph.values.Ids()) {
    if (graph.values[id].is_dynamic) values_[id].shape = graph.values[id].shape;
  }
  for (const NodeId id : graph.nodes.Ids()) {
    if (graph.nodes[id].has_dynamic_shape) AddStep(id);
  }
  CollectOutputs();
}

DynamicShapes::~DynamicShapes() {
  for (void* spare : spares_) env_.device.Free(spare);
}

void DynamicShapes::AddStep(NodeId id) {
  const Node& node = graph_.nodes[id];
  DynamicNode& varying = nodes_[id];
  varying.contexts = bindings_.Of(id);
  for (const ValueId in : node.in) varying.described_for.push_back(graph_.values[in].shape);
  if (std::ranges::any_of(node.signature.out, &NodeSignature::Output::is_dynamic)) {
    varying.contexts.forward.resizable_ = &varying.contexts.forward;
  }
}

void DynamicShapes::CollectOutputs() {
  for (const NodeId id : graph_.nodes.Ids()) {
    for (const ValueId out : graph_.nodes[id].out) {
      const Value& value = graph_.values[out];
      const NetOutput output{
          value.name, {bindings_.At(value.buffer), value.shape, value.dtype}, value.loss_weight};
      if (value.is_output && !value.leaves_stage && !value.name.starts_with('('))
        outputs_.push_back(output);
      if (value.loss_weight != 0) losses_.push_back(output);
    }
  }
  std::ranges::stable_sort(outputs_, {}, &NetOutput::name);
}

const Bindings::NodeContexts& DynamicShapes::Of(NodeId node) const {
  return graph_.nodes[node].has_dynamic_shape ? nodes_.at(node).contexts : bindings_.Of(node);
}

bool DynamicShapes::IsSkipped(NodeId node) const {
  return graph_.nodes[node].has_dynamic_shape && nodes_.at(node).skipped;
}

const Shape& DynamicShapes::ShapeOf(ValueId value) const {
  const Value& info = graph_.values[value];
  return info.is_dynamic ? values_.at(value).shape : info.shape;
}

void DynamicShapes::BeforeForward(NodeId id) {
  const Node& node = graph_.nodes[id];
  if (!node.has_dynamic_shape) return;
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
  if (!same && !varying.skipped) SetupAgain(id, varying);
}

void DynamicShapes::SetupAgain(NodeId id, DynamicNode& varying) {
  const Node& node = graph_.nodes[id];
  InputShapes shapes;
  std::vector<DType> types;
  for (const ValueId in : node.in) {
    shapes.push_back(&ShapeOf(in));
    types.push_back(graph_.values[in].dtype);
  }
  const NodeSignature signature = SetupNode(node, shapes, types, env_.options);
  const std::vector<Param*> params = ParamsOf(node, signature, env_.params, nullptr, id.number);
  if (!signature.AgreesWith(node.signature) || params != node.params) {
    throw Error(ErrorCode::kInternal, node.spec.Where(),
                Join("layer '", node.spec.name(), "' (", node.spec.type(),
                     ") planned for another shape wants other memory than before"));
  }
  auto& [forward, backward] = varying.contexts;
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
  TakeShapes(id, varying);
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

void DynamicShapes::AfterForward(NodeId id) {
  if (!graph_.nodes[id].has_dynamic_shape) return;
  DynamicNode& varying = nodes_.at(id);
  if (!varying.skipped) TakeShapes(id, varying);
}

void DynamicShapes::TakeShapes(NodeId id, DynamicNode& varying) {
  const Node& node = graph_.nodes[id];
  auto& [forward, backward] = varying.contexts;
  for (size_t k = 0; k < node.out.size(); ++k) {
    const Value& info = graph_.values[node.out[k]];
    if (!info.is_dynamic) continue;
    const Tensor& out = forward.out_[k];
    if (env_.options.training) backward.out_[k].shape = backward.grad_out_[k].shape = out.shape;
    DynamicValue& value = values_.at(node.out[k]);
    value.shape = out.shape;
    value.empty = out.Count() == 0;
    for (std::vector<NetOutput>* list : {&outputs_, &losses_}) {
      for (NetOutput& output : *list) {
        if (output.name == info.name && output.value.data == out.data) {
          output.value.shape = out.shape;
        }
      }
    }
  }
}

void DynamicShapes::SkipForward(NodeId node) const {
  for (const Tensor& out : Of(node).forward.out_) env_.device.Zero(out.data, out.Bytes());
}

void DynamicShapes::SkipBackward(NodeId id) const {
  const Node& node = graph_.nodes[id];
  const RunContext& run = Of(id).backward;
  for (size_t k = 0; k < node.in.size(); ++k) {
    const Tensor& grad = run.grad_in_[k];
    // The input of a view may share the gradient of a weighted output, which is written only once.
    bool is_loss_weight = false;
    for (size_t o = 0; o < node.out.size(); ++o) {
      const bool weighted = graph_.values[node.out[o]].loss_weight != 0;
      is_loss_weight = is_loss_weight || (weighted && run.grad_out_[o].data == grad.data);
    }
    const Tensor whole{grad.data, ShapeOf(node.in[k]), grad.dtype};
    if (grad.data != nullptr && !is_loss_weight) env_.device.Zero(whole.data, whole.Bytes());
  }
}

}  // namespace trainer
