// Layers behind an output whose shape changes from pass to pass. The arena is laid out for the
// largest shapes; a value keeps its place and uses the first part of it.

#include "graph.h"
#include "trainer/base/text.h"
#include "trainer/net/output_counts.h"

namespace trainer {

void RequireEqualCounts(size_t before, size_t now) {
  if (before == now) return;
  throw Error(ErrorCode::kConfig,
              Join("the outputs of the net hold ", now, " numbers in this batch and held ", before,
                   " in the one before, so that they have no mean: give each output whose size a "
                   "Filter changes to a Silence layer"));
}

// Before layer i, which follows such an output, runs: plans it again where its inputs have other
// shapes than before.
void Net::Follow(int i) {
  StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  bool same = true;
  step.resting = false;
  for (size_t k = 0; k < step.in.size(); ++k) {
    const ValueInfo& value = graph_->values[static_cast<size_t>(step.in[k])];
    step.resting = step.resting || value.resting;
    same = same && value.shape == step.planned_in[k];
  }
  for (const int out : step.out) graph_->values[static_cast<size_t>(out)].resting = step.resting;
  if (!same && !step.resting) PlanStepAgain(i);
}

void Net::PlanStepAgain(int i) {
  StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  RunContext& run = contexts_[static_cast<size_t>(i)];
  PlanAgain(i, options_, device_, params_, *graph_);
  for (size_t k = 0; k < step.in.size(); ++k) {
    const ValueInfo& value = graph_->values[static_cast<size_t>(step.in[k])];
    step.planned_in[k] = run.in_[k].shape = run.grad_in_[k].shape = value.shape;
  }
  for (size_t k = 0; k < step.out.size(); ++k) {
    const ValueInfo& value = graph_->values[static_cast<size_t>(step.out[k])];
    if (value.bytes() > value.planned_bytes) {
      step.spec.Fail(Join("output '", value.name, "' grows to ", value.shape.ToString(),
                          " although its inputs have become smaller"));
    }
    run.Resize(static_cast<int>(k), value.shape);
  }
  TakeSizes(i);
  run.workspace_ = Grown(run.workspace_, step.workspace_bytes);
  if (step.scratch_block >= 0) {
    if (step.scratch_bytes <= graph_->blocks[static_cast<size_t>(step.scratch_block)].bytes) return;
    step.scratch_block = step.grad_scratch_block = -1;
    run.scratch_ = {};
  }
  run.scratch_ = Grown(run.scratch_, step.scratch_bytes);
}

// `held` where it is large enough, else new memory: another kernel may need more for less.
std::span<std::byte> Net::Grown(std::span<std::byte> held, size_t bytes) {
  if (bytes <= held.size()) return held;
  spares_.push_back(device_.Allocate(2 * bytes));
  return {static_cast<std::byte*>(spares_.back()), 2 * bytes};
}

// Makes the shapes that layer i's outputs have now those of the values.
void Net::TakeSizes(int i) {
  const StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  const RunContext& run = contexts_[static_cast<size_t>(i)];
  for (size_t k = 0; k < step.out.size(); ++k) {
    ValueInfo& value = graph_->values[static_cast<size_t>(step.out[k])];
    value.shape = run.out_[k].shape;
    value.resting = value.shape.Count() == 0;
    for (std::vector<NetOutput>* list : {&outputs_, &losses_}) {
      for (NetOutput& output : *list) {
        if (output.name == value.name && output.value.data == run.out_[k].data) {
          output.value.shape = value.shape;
        }
      }
    }
  }
}

// What depends on no rows is not computed: it is zero, and so are the gradients before it.
void Net::Rest(int i) {
  for (const Tensor& out : contexts_[static_cast<size_t>(i)].out_) {
    device_.Zero(out.data, out.Bytes());
  }
}

void Net::RestBackward(int i) {
  const StepInfo& step = graph_->steps[static_cast<size_t>(i)];
  const RunContext& run = contexts_[static_cast<size_t>(i)];
  for (size_t k = 0; k < step.in.size(); ++k) {
    const Tensor& grad = run.grad_in_[k];
    const ValueInfo& value = graph_->values[static_cast<size_t>(step.in[k])];
    bool is_loss_weight = false;
    for (size_t o = 0; o < step.out.size(); ++o) {
      const bool weighted = graph_->values[static_cast<size_t>(step.out[o])].loss_weight != 0;
      is_loss_weight = is_loss_weight || (weighted && run.grad_out_[o].data == grad.data);
    }
    if (grad.data != nullptr && !is_loss_weight) device_.Zero(grad.data, value.bytes());
  }
}

}  // namespace trainer
