#include "execute/bindings.h"

#include <algorithm>

namespace trainer {
namespace {

int64_t CountLosses(const Graph& graph) {
  int64_t count = 0;
  for (const Value& value : graph.values) {
    if (value.loss_weight != 0) count += value.shape.Count();
  }
  return count;
}

}  // namespace

Bindings::Bindings(const Graph& graph, const NetOptions& options, const Device& device)
    : graph_(graph),
      device_(device),
      results_(std::make_unique<PassResults>(device, graph.nodes.size(), CountLosses(graph))) {
  results_->SetRank(options.rank.rank, 0);
  arena_ = static_cast<std::byte*>(device_.Allocate(graph.memory.arena_bytes));
  device_.Zero(arena_, graph.memory.arena_bytes);
  contexts_.Resize(graph.nodes.size());
  for (const NodeId id : graph.nodes.Ids()) Bind(id, options);
  for (const ValueId id : graph.values.Ids()) {
    if (graph.values[id].recompute_at) BindRecompute(id);
  }
  WriteConstants();
  ListOutputs();
}

Bindings::~Bindings() { device_.Free(arena_); }

std::byte* Bindings::At(BufferId buffer) const {
  return buffer ? arena_ + graph_.memory.buffers[buffer].offset : nullptr;
}

void Bindings::Bind(NodeId id, const NetOptions& options) {
  const Node& node = graph_.nodes[id];
  RunContext& forward = contexts_[id].forward;
  forward.device_ = &device_;
  forward.fault_ = results_->InputErrorFlagOf(id);
  forward.pass_ = results_->pass();
  forward.phase_ = node.spec.proto().phase();
  forward.key_ = {options.seed, RngStreamOf(node.key, forward.phase_)};
  for (const ValueId in : node.in) {
    const Value& value = graph_.values[in];
    forward.in_.emplace_back(At(value.buffer), value.shape, value.dtype);
  }
  for (const ValueId out : node.out) {
    const Value& value = graph_.values[out];
    forward.out_.push_back({At(value.buffer), value.shape, value.dtype});
  }
  for (Param* param : node.params) {
    forward.param_.push_back(param->weight);
    forward.grad_param_.push_back(options.training ? param->grad : nullptr);
  }
  if (node.workspace) forward.workspace_ = {At(node.workspace), node.needs.workspace};
  if (node.state) forward.state_ = {At(node.state), node.signature.state_bytes};
  if (node.upload) forward.upload_memory_ = {At(node.upload), node.needs.upload};
  forward.constants_ = reinterpret_cast<const float*>(At(node.constants));
  if (node.scratch) forward.scratch_ = {At(node.scratch), node.needs.scratch};
  for (const NodeId fused : node.epilogue) forward.fused_.push_back(&contexts_[fused].forward);
  if (options.training) BindBackward(node, contexts_[id].backward = forward);
}

// `backward` is a copy of the forward context.
void Bindings::BindBackward(const Node& node, RunContext& backward) {
  backward.scratch_ = {};
  if (node.backward_scratch) backward.scratch_ = {At(node.backward_scratch), node.needs.scratch};
  for (size_t i = 0; i < node.in.size(); ++i) {
    const Value& value = graph_.values[node.in[i]];
    backward.in_[i].data = At(value.backward_buffer);
    backward.grad_in_.push_back(
        {node.input_needs_grad[i] ? At(value.grad_buffer) : nullptr, value.shape, value.dtype});
  }
  for (size_t i = 0; i < node.out.size(); ++i) {
    const Value& value = graph_.values[node.out[i]];
    backward.out_[i].data = At(value.backward_buffer);
    backward.grad_out_.emplace_back(At(value.grad_buffer), value.shape, value.dtype);
  }
}

// Binds the producer's forward to the addresses that backward nodes use for its inputs and output.
void Bindings::BindRecompute(ValueId id) {
  const Node& node = graph_.nodes[graph_.values[id].producer];
  RunContext& again = recompute_[id] = contexts_[graph_.values[id].producer].forward;
  for (size_t i = 0; i < node.in.size(); ++i) {
    again.in_[i].data = At(graph_.values[node.in[i]].backward_buffer);
  }
  again.out_[0].data = At(graph_.values[id].backward_buffer);
  again.scratch_ = {};
  if (node.recompute_scratch) again.scratch_ = {At(node.recompute_scratch), node.needs.scratch};
}

void Bindings::WriteConstants() {
  const auto write = [&](const std::vector<float>& numbers, BufferId to) {
    if (to) device_.CopyToDevice(At(to), numbers.data(), numbers.size() * sizeof(float));
  };
  for (const Node& node : graph_.nodes) write(node.signature.constants, node.constants);
  for (const Value& value : graph_.values) {
    if (value.loss_weight == 0) continue;
    write(std::vector<float>(static_cast<size_t>(value.shape.Count()), value.loss_weight),
          value.grad_buffer);
  }
}

void Bindings::ListOutputs() {
  for (const Node& node : graph_.nodes) {
    for (const ValueId out : node.out) {
      const Value& value = graph_.values[out];
      const NetOutput output{
          value.name, {At(value.buffer), value.shape, value.dtype}, value.loss_weight};
      if (value.is_output && !value.leaves_stage && !value.name.starts_with('('))
        outputs_.push_back(output);
      if (value.loss_weight != 0) losses_.push_back(output);
    }
  }
  std::ranges::stable_sort(outputs_, {}, &NetOutput::name);
}

void Bindings::SetOutputShape(const Value& value, const Shape& shape) {
  for (std::vector<NetOutput>* list : {&outputs_, &losses_}) {
    for (NetOutput& output : *list) {
      if (output.name == value.name && output.value.data == At(value.buffer))
        output.value.shape = shape;
    }
  }
}

void Bindings::Poison(int time) const {
  for (const BufferId id : graph_.memory.buffers.Ids()) {
    if (graph_.memory.buffers[id].last_use == time)
      device_.Memset(At(id), 0xff, graph_.memory.buffers[id].bytes);
  }
}

}  // namespace trainer
