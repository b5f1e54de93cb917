#include <algorithm>
#include <numeric>

#include "graph.h"
#include "trainer/backend/carve.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

class MemoryPlanner {
 public:
  MemoryPlanner(const NetOptions& options, Graph& graph) : options_(options), graph_(graph) {}

  void Run() {
    for (int s = 0; s < graph_.NumSteps(); ++s) PlaceOutputs(s);
    for (int s = graph_.NumSteps(); s-- > 0;) PlaceGradients(s);
    for (int s = 0; s < graph_.NumSteps(); ++s) PlaceStepMemory(s);
    Pack();
    Describe();
  }

 private:
  StepInfo& Step(int s) { return graph_.steps[static_cast<size_t>(s)]; }
  ValueInfo& Value(int v) { return graph_.values[static_cast<size_t>(v)]; }
  Block& BlockAt(int b) { return graph_.blocks[static_cast<size_t>(b)]; }

  int NewBlock(BlockKind kind, std::string name, const Shape& shape, size_t bytes, int first,
               int last) {
    Block block;
    block.kind = kind;
    block.name = std::move(name);
    block.shape = shape;
    block.bytes = bytes;
    block.first = first;
    block.last = last;
    graph_.blocks.push_back(std::move(block));
    fixed_.push_back(false);
    return static_cast<int>(graph_.blocks.size()) - 1;
  }
  void Extend(int block, int first, int last) {
    BlockAt(block).first = std::min(BlockAt(block).first, first);
    BlockAt(block).last = std::max(BlockAt(block).last, last);
  }
  static void Note(Block& block, const std::string& text) {
    block.note += (block.note.empty() ? "" : ", ") + text;
  }

  void PlaceOutputs(int s);
  bool MayOverwriteInput(int s);
  bool BlocksInPlace(int s, const ValueInfo& value);
  int LastUse(const ValueInfo& value);
  void PlaceTwice(int s);
  void PlaceGradients(int s);
  int SharedGradient(int s, size_t i);
  void PlaceLossGradients(int s);
  void PlaceStepMemory(int s);
  void Pack();
  bool Collides(const Block& a, const Block& b) const;
  void Describe();

  const NetOptions& options_;
  Graph& graph_;
  std::vector<bool> fixed_;  // per block: set once, never written by a step
};

// The last step that reads a value's data.
int MemoryPlanner::LastUse(const ValueInfo& value) {
  if (value.pinned || value.is_output) return graph_.End();
  int last = value.writer;
  for (const int reader : value.readers) {
    last = std::max(last, reader);
    const StepInfo& step = Step(reader);
    for (size_t i = 0; i < step.in.size(); ++i) {
      if (&Value(step.in[i]) == &value && step.keep_in[i] && step.runs_backward) {
        last = std::max(last, graph_.BackwardStep(reader));
      }
    }
  }
  const StepInfo& writer = Step(value.writer);
  for (size_t i = 0; i < writer.out.size(); ++i) {
    if (&Value(writer.out[i]) == &value && writer.keep_out[i] && writer.runs_backward) {
      last = std::max(last, graph_.BackwardStep(value.writer));
    }
  }
  return last;
}

// Whether somebody besides step s still needs what `value` holds.
bool MemoryPlanner::BlocksInPlace(int s, const ValueInfo& value) {
  if (value.pinned || value.is_output) return true;
  for (const int reader : value.readers) {
    if (reader > s) return true;
    if (reader == s) continue;
    const StepInfo& step = Step(reader);
    for (size_t i = 0; i < step.in.size(); ++i) {
      if (&Value(step.in[i]) == &value && step.keep_in[i] && step.runs_backward) return true;
    }
  }
  const StepInfo& writer = Step(value.writer);
  for (size_t i = 0; i < writer.out.size(); ++i) {
    if (&Value(writer.out[i]) == &value && writer.keep_out[i] && writer.runs_backward) return true;
  }
  return false;
}

bool MemoryPlanner::MayOverwriteInput(int s) {
  const StepInfo& step = Step(s);
  if (!step.allow_in_place || options_.memory == MemoryMode::kSeparate) return false;
  const ValueInfo& in = Value(step.in[0]);
  const ValueInfo& out = Value(step.out[0]);
  if (!(in.shape == out.shape) || in.dtype != out.dtype || out.pinned) return false;
  for (size_t i = 1; i < step.in.size(); ++i) {
    if (Value(step.in[i]).block == in.block) return false;
  }
  for (const ValueInfo& value : graph_.values) {
    if (value.block == in.block && BlocksInPlace(s, value)) return false;
  }
  return true;
}

// One block for the forward readers, one for the backward ones.
void MemoryPlanner::PlaceTwice(int s) {
  ValueInfo& value = Value(Step(s).out[0]);
  const int first = FirstBackwardUse(Step(s).out[0], graph_);
  const int last_reader = *std::max_element(value.readers.begin(), value.readers.end());
  value.block = NewBlock(BlockKind::kValue, value.name, value.shape, value.bytes(), s, last_reader);
  value.again_block = NewBlock(BlockKind::kValue, value.name + " again", value.shape, value.bytes(),
                               first, LastUse(value));
  Step(graph_.BackwardStep(first)).again.push_back(Step(s).out[0]);
}

void MemoryPlanner::PlaceOutputs(int s) {
  StepInfo& step = Step(s);
  for (size_t i = 0; i < step.out.size(); ++i) {
    ValueInfo& value = Value(step.out[i]);
    const int last = LastUse(value);
    value.planned_bytes = value.bytes();
    if (MayComputeAgain(s, options_, graph_)) {
      PlaceTwice(s);
      continue;
    }
    if (value.view_of >= 0) {
      value.block = Value(value.view_of).block;
    } else if (i == 0 && MayOverwriteInput(s)) {
      value.block = Value(step.in[0]).block;
    } else {
      value.block = NewBlock(BlockKind::kValue, value.name, value.shape, value.bytes(),
                             value.pinned ? 0 : s, last);
      continue;
    }
    Extend(value.block, value.pinned ? 0 : s, last);
    Note(BlockAt(value.block), Join("also ", value.name, " of ", step.spec.name(),
                                    value.view_of >= 0 ? " (view)" : " (in place)"));
  }
}

// The block of an output gradient that input i's gradient can lie in, or -1.
int MemoryPlanner::SharedGradient(int s, size_t i) {
  const StepInfo& step = Step(s);
  int views = 0, shared = -1;
  for (const int out : step.out) {
    const ValueInfo& value = Value(out);
    if (value.view_of != step.in[i] || value.grad_block < 0) continue;
    ++views;
    if (shared < 0 && !fixed_[static_cast<size_t>(value.grad_block)]) shared = value.grad_block;
    if (shared < 0 && views == 1) shared = value.grad_block;
  }
  if (views == 1) return shared;
  if (options_.memory == MemoryMode::kSeparate) return -1;
  if (views > 1) return fixed_[static_cast<size_t>(shared)] ? -1 : shared;
  if (step.grad_in_place != static_cast<int>(i)) return -1;
  const ValueInfo& in = Value(step.in[i]);
  const ValueInfo& out = Value(step.out[0]);
  if (out.grad_block < 0 || fixed_[static_cast<size_t>(out.grad_block)]) return -1;
  return in.shape == out.shape && in.dtype == out.dtype ? out.grad_block : -1;
}

// The gradient of a weighted output is its weight, for ever.
void MemoryPlanner::PlaceLossGradients(int s) {
  const StepInfo& step = Step(s);
  for (const int out : step.out) {
    ValueInfo& value = Value(out);
    if (value.loss_weight == 0 || !value.has_grad || !step.needs_backward) continue;
    value.grad_block = NewBlock(BlockKind::kGradient, value.name + " gradient", value.shape,
                                value.bytes(), 0, graph_.End());
    fixed_.back() = true;
  }
}

void MemoryPlanner::PlaceGradients(int s) {
  PlaceLossGradients(s);
  StepInfo& step = Step(s);
  for (size_t i = 0; i < step.in.size(); ++i) {
    if (!step.wants_grad[i]) continue;
    ValueInfo& value = Value(step.in[i]);
    const int first = graph_.BackwardStep(s), last = graph_.BackwardStep(value.writer);
    value.grad_block = SharedGradient(s, i);
    if (value.grad_block < 0) {
      value.grad_block = NewBlock(BlockKind::kGradient, value.name + " gradient", value.shape,
                                  value.bytes(), first, last);
    } else {
      Extend(value.grad_block, first, last);
    }
  }
}

void MemoryPlanner::PlaceStepMemory(int s) {
  StepInfo& step = Step(s);
  const int back = graph_.BackwardStep(s);
  const std::string& name = step.spec.name();
  if (step.workspace_bytes > 0) {
    step.workspace_block = NewBlock(BlockKind::kWorkspace, name + " workspace", {},
                                    step.workspace_bytes, s, step.runs_backward ? back : s);
  }
  if (step.state_bytes > 0) {
    step.state_block =
        NewBlock(BlockKind::kState, name + " state", {}, step.state_bytes, 0, graph_.End());
  }
  if (step.scratch_bytes == 0) return;
  step.scratch_block =
      NewBlock(BlockKind::kScratch, name + " scratch", {}, step.scratch_bytes, s, s);
  if (step.runs_backward) {
    step.grad_scratch_block = NewBlock(BlockKind::kScratch, name + " backward scratch", {},
                                       step.scratch_bytes, back, back);
  }
}

bool MemoryPlanner::Collides(const Block& a, const Block& b) const {
  if (options_.memory == MemoryMode::kSeparate) return true;
  return a.first <= b.last && b.first <= a.last;
}

// Largest first, each at the lowest offset where it meets no block that lives at the same time.
void MemoryPlanner::Pack() {
  std::vector<size_t> order(graph_.blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return graph_.blocks[a].bytes > graph_.blocks[b].bytes;
  });
  std::vector<const Block*> placed;  // by offset
  size_t arena = 0;
  for (const size_t index : order) {
    Block& block = graph_.blocks[index];
    size_t offset = 0;
    for (const Block* other : placed) {
      if (!Collides(block, *other)) continue;
      if (offset + block.bytes <= other->offset) break;
      offset = std::max(offset, other->offset + AlignedBytes(other->bytes));
    }
    block.offset = offset;
    arena = std::max(arena, offset + AlignedBytes(block.bytes));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &block,
                         [](const Block* a, const Block* b) { return a->offset < b->offset; }),
        &block);
  }
  graph_.plan.arena_bytes = arena;
}

void MemoryPlanner::Describe() {
  for (const ValueInfo& value : graph_.values) {
    graph_.plan.separate_bytes += value.bytes() * (value.grad_block >= 0 ? 2 : 1);
  }
  for (const Block& block : graph_.blocks) {
    if (block.shape.Rank() == 0 && block.bytes > sizeof(float)) {
      graph_.plan.separate_bytes += block.bytes;
    }
    graph_.plan.blocks.push_back({block.name, block.note, block.kind, block.shape, block.bytes,
                                  block.offset, block.first, block.last});
  }
}

}  // namespace

void PlanMemory(const NetOptions& options, Graph& graph) { MemoryPlanner(options, graph).Run(); }

}  // namespace trainer
