#include "run_state.h"

#include <algorithm>

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

RunState::RunState(const Graph& graph, const Program& program, const BuildEnv& env)
    : graph_(graph), program_(program), env_(env) {
  for (const ValueId id : graph.values.Ids()) {
    if (graph.values[id].may_shrink) values_[id].shape = graph.values[id].shape;
  }
  for (const StepId id : graph.steps.Ids()) {
    if (graph.steps[id].shapes_vary) AddStep(id);
  }
  CollectOutputs();
}

RunState::~RunState() {
  for (void* spare : spares_) env_.device.Free(spare);
}

void RunState::AddStep(StepId id) {
  const StepInfo& step = graph_.steps[id];
  VaryingStep& varying = steps_[id];
  varying.contexts = program_.Of(id);
  for (const ValueId in : step.in) varying.described_for.push_back(graph_.values[in].shape);
  if (std::ranges::any_of(step.said.out, &Description::Output::may_shrink)) {
    varying.contexts.forward.resizable_ = &varying.contexts.forward;
  }
}

void RunState::CollectOutputs() {
  for (const StepId id : graph_.steps.Ids()) {
    for (const ValueId out : graph_.steps[id].out) {
      const ValueInfo& value = graph_.values[out];
      const NetOutput output{
          value.name, {program_.At(value.block), value.shape, value.dtype}, value.loss_weight};
      if (value.is_output && !value.goes_on && !value.name.starts_with('('))
        outputs_.push_back(output);
      if (value.loss_weight != 0) losses_.push_back(output);
    }
  }
  std::ranges::stable_sort(outputs_, {}, &NetOutput::name);
}

const Program::Contexts& RunState::Of(StepId step) const {
  return graph_.steps[step].shapes_vary ? steps_.at(step).contexts : program_.Of(step);
}

bool RunState::IsSkipped(StepId step) const {
  return graph_.steps[step].shapes_vary && steps_.at(step).skipped;
}

const Shape& RunState::ShapeOf(ValueId value) const {
  const ValueInfo& info = graph_.values[value];
  return info.may_shrink ? values_.at(value).shape : info.shape;
}

void RunState::BeforeForward(StepId id) {
  const StepInfo& step = graph_.steps[id];
  if (!step.shapes_vary) return;
  VaryingStep& varying = steps_.at(id);
  bool same = true;
  varying.skipped = false;
  for (size_t k = 0; k < step.in.size(); ++k) {
    const auto value = values_.find(step.in[k]);
    if (value == values_.end()) continue;
    varying.skipped = varying.skipped || value->second.empty;
    same = same && value->second.shape == varying.described_for[k];
  }
  for (const ValueId out : step.out) {
    if (graph_.values[out].may_shrink) values_.at(out).empty = varying.skipped;
  }
  if (!same && !varying.skipped) DescribeAgain(id, varying);
}

void RunState::DescribeAgain(StepId id, VaryingStep& varying) {
  const StepInfo& step = graph_.steps[id];
  InputShapes shapes;
  std::vector<DType> types;
  for (const ValueId in : step.in) {
    shapes.push_back(&ShapeOf(in));
    types.push_back(graph_.values[in].dtype);
  }
  const Description said =
      Describe(step, id.number, shapes, types, env_.options, env_.params, nullptr);
  if (!said.AgreesWith(step.said)) {
    throw Error(ErrorCode::kInternal, step.spec.Where(),
                Join("layer '", step.spec.name(), "' (", step.spec.type(),
                     ") planned for another shape wants other memory than before"));
  }
  auto& [forward, backward] = varying.contexts;
  for (size_t k = 0; k < step.in.size(); ++k) {
    varying.described_for[k] = forward.in_[k].shape = *shapes[k];
    if (!env_.options.training) continue;
    backward.in_[k].shape = backward.grad_in_[k].shape = *shapes[k];
  }
  for (size_t k = 0; k < step.out.size(); ++k) {
    const ValueInfo& value = graph_.values[step.out[k]];
    if (said.out[k].shape.Count() > value.shape.Count()) {
      step.spec.Fail(Join("output '", value.name, "' grows to ", said.out[k].shape.ToString(),
                          ", although its inputs became smaller"));
    }
    forward.out_[k].shape = said.out[k].shape;
  }
  TakeShapes(id, varying);
  // Another kernel may need more memory for less.
  const DeviceNeeds needs = Prepare(step, said, env_.options, env_.device);
  forward.workspace_ = backward.workspace_ = Grown(forward.workspace_, needs.workspace);
  if (needs.scratch <= forward.scratch_.size()) return;
  forward.scratch_ = backward.scratch_ = Grown(forward.scratch_, needs.scratch);
}

// `held` where it is large enough, else new memory.
std::span<std::byte> RunState::Grown(std::span<std::byte> held, size_t bytes) {
  if (bytes <= held.size()) return held;
  spares_.push_back(env_.device.Allocate(2 * bytes));
  return {static_cast<std::byte*>(spares_.back()), 2 * bytes};
}

void RunState::AfterForward(StepId id) {
  if (!graph_.steps[id].shapes_vary) return;
  VaryingStep& varying = steps_.at(id);
  if (!varying.skipped) TakeShapes(id, varying);
}

void RunState::TakeShapes(StepId id, VaryingStep& varying) {
  const StepInfo& step = graph_.steps[id];
  auto& [forward, backward] = varying.contexts;
  for (size_t k = 0; k < step.out.size(); ++k) {
    const ValueInfo& info = graph_.values[step.out[k]];
    if (!info.may_shrink) continue;
    const Tensor& out = forward.out_[k];
    if (env_.options.training) backward.out_[k].shape = backward.grad_out_[k].shape = out.shape;
    Varying& value = values_.at(step.out[k]);
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

void RunState::SkipForward(StepId step) const {
  for (const Tensor& out : Of(step).forward.out_) env_.device.Zero(out.data, out.Bytes());
}

void RunState::SkipBackward(StepId id) const {
  const StepInfo& step = graph_.steps[id];
  const RunContext& run = Of(id).backward;
  for (size_t k = 0; k < step.in.size(); ++k) {
    const Tensor& grad = run.grad_in_[k];
    // A view's input may share the gradient of a weighted output, which no pass writes.
    bool is_loss_weight = false;
    for (size_t o = 0; o < step.out.size(); ++o) {
      const bool weighted = graph_.values[step.out[o]].loss_weight != 0;
      is_loss_weight = is_loss_weight || (weighted && run.grad_out_[o].data == grad.data);
    }
    const Tensor whole{grad.data, ShapeOf(step.in[k]), grad.dtype};
    if (grad.data != nullptr && !is_loss_weight) env_.device.Zero(whole.data, whole.Bytes());
  }
}

}  // namespace trainer
