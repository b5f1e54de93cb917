#include "program.h"

namespace trainer {
namespace {

int64_t CountLosses(const Graph& graph) {
  int64_t count = 0;
  for (const ValueInfo& value : graph.values) {
    if (value.loss_weight != 0) count += value.shape.Count();
  }
  return count;
}

}  // namespace

Program::Program(const Graph& graph, const NetOptions& options, const Device& device)
    : graph_(graph),
      device_(device),
      exchange_(std::make_unique<PassExchange>(device, graph.steps.size(), CountLosses(graph))) {
  exchange_->SetReplica(options.replica.rank, 0);
  arena_ = static_cast<std::byte*>(device_.Allocate(graph.plan.arena_bytes));
  device_.Zero(arena_, graph.plan.arena_bytes);
  contexts_.Resize(graph.steps.size());
  for (const StepId id : graph.steps.Ids()) Bind(id, options);
  for (const ValueId id : graph.values.Ids()) {
    if (graph.values[id].recomputed_at) BindRecompute(id);
  }
  WriteConstants();
}

Program::~Program() { device_.Free(arena_); }

std::byte* Program::At(BlockId block) const {
  return block ? arena_ + graph_.blocks[block].offset : nullptr;
}

void Program::Bind(StepId id, const NetOptions& options) {
  const StepInfo& step = graph_.steps[id];
  RunContext& forward = contexts_[id].forward;
  forward.device_ = &device_;
  forward.fault_ = exchange_->FaultWordOf(id);
  forward.pass_ = exchange_->pass();
  forward.phase_ = step.spec.proto().phase();
  forward.key_ = {options.seed, StreamOf(step.key, forward.phase_)};
  for (const ValueId in : step.in) {
    const ValueInfo& value = graph_.values[in];
    forward.in_.emplace_back(At(value.block), value.shape, value.dtype);
  }
  for (const ValueId out : step.out) {
    const ValueInfo& value = graph_.values[out];
    forward.out_.push_back({At(value.block), value.shape, value.dtype});
  }
  for (Param* param : step.params()) {
    forward.param_.push_back(param->weight);
    forward.grad_param_.push_back(options.training ? param->grad : nullptr);
  }
  if (step.workspace) forward.workspace_ = {At(step.workspace), step.needs.workspace};
  if (step.state) forward.state_ = {At(step.state), step.said.state_bytes};
  if (step.staging) forward.staging_ = {At(step.staging), step.needs.staging};
  forward.constants_ = reinterpret_cast<const float*>(At(step.constants));
  if (step.scratch) forward.scratch_ = {At(step.scratch), step.needs.scratch};
  for (const StepId fused : step.fused) forward.fused_.push_back(&contexts_[fused].forward);
  if (options.training) BindBackward(step, contexts_[id].backward = forward);
}

// `backward` is a copy of the forward context.
void Program::BindBackward(const StepInfo& step, RunContext& backward) {
  backward.scratch_ = {};
  if (step.backward_scratch) backward.scratch_ = {At(step.backward_scratch), step.needs.scratch};
  for (size_t i = 0; i < step.in.size(); ++i) {
    const ValueInfo& value = graph_.values[step.in[i]];
    backward.in_[i].data = At(value.backward_block);
    backward.grad_in_.push_back(
        {step.wants_grad[i] ? At(value.grad_block) : nullptr, value.shape, value.dtype});
  }
  for (size_t i = 0; i < step.out.size(); ++i) {
    const ValueInfo& value = graph_.values[step.out[i]];
    backward.out_[i].data = At(value.backward_block);
    backward.grad_out_.emplace_back(At(value.grad_block), value.shape, value.dtype);
  }
}

// The writer's forward, from and to where backward steps find the values.
void Program::BindRecompute(ValueId id) {
  const StepInfo& step = graph_.steps[graph_.values[id].writer];
  RunContext& again = recompute_[id] = contexts_[graph_.values[id].writer].forward;
  for (size_t i = 0; i < step.in.size(); ++i) {
    again.in_[i].data = At(graph_.values[step.in[i]].backward_block);
  }
  again.out_[0].data = At(graph_.values[id].backward_block);
  again.scratch_ = {};
  if (step.recompute_scratch) again.scratch_ = {At(step.recompute_scratch), step.needs.scratch};
}

void Program::WriteConstants() {
  const auto write = [&](const std::vector<float>& numbers, BlockId to) {
    if (to) device_.CopyToDevice(At(to), numbers.data(), numbers.size() * sizeof(float));
  };
  for (const StepInfo& step : graph_.steps) write(step.said.constants, step.constants);
  for (const ValueInfo& value : graph_.values) {
    if (value.loss_weight == 0) continue;
    write(std::vector<float>(static_cast<size_t>(value.shape.Count()), value.loss_weight),
          value.grad_block);
  }
}

void Program::Poison(int time) const {
  for (const BlockId id : graph_.blocks.Ids()) {
    if (graph_.blocks[id].last == time) device_.Fill(At(id), 0xff, graph_.blocks[id].bytes);
  }
}

}  // namespace trainer
