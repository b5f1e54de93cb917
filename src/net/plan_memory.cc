#include <algorithm>
#include <functional>
#include <ranges>

#include "graph.h"
#include "trainer/backend/carve.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

class MemoryPlanner {
 public:
  MemoryPlanner(const NetOptions& options, Graph& graph) : options_(options), graph_(graph) {}

  void Run() {
    Forget();
    // Outputs in forward order and gradients in backward order, so that what a value or gradient
    // may share is placed before it.
    for (const StepId s : graph_.steps.Ids()) PlaceOutputs(s);
    for (const StepId s : graph_.steps.Ids() | std::views::reverse) PlaceGradients(s);
    for (const StepId s : graph_.steps.Ids()) PlaceStepMemory(s);
    Pack();
    Describe();
  }

 private:
  StepInfo& Step(StepId s) { return graph_.steps[s]; }
  ValueInfo& Value(ValueId v) { return graph_.values[v]; }
  bool IsFixed(BlockId b) const { return fixed_[static_cast<size_t>(b.number)]; }

  BlockId NewBlock(BlockKind kind, std::string name, const Shape& shape, size_t bytes, int first,
                   int last) {
    Block block;
    block.kind = kind;
    block.name = std::move(name);
    block.shape = shape;
    block.bytes = bytes;
    block.first = first;
    block.last = last;
    fixed_.push_back(false);
    return graph_.blocks.Add(std::move(block));
  }
  // For a value or its gradient; the note says where it is not stored in f32.
  BlockId ValueBlock(BlockKind kind, std::string name, const ValueInfo& value, int first,
                     int last) {
    const BlockId id = NewBlock(kind, std::move(name), value.shape, value.bytes(), first, last);
    if (value.dtype != DType::kF32) graph_.blocks[id].note = NameOf(value.dtype);
    return id;
  }
  // A Split's outputs have names of the program's own: in their place stand the blob in the user's
  // file and the layer that reads this part of it.
  std::string GradientName(const ValueInfo& value) const {
    const auto& written = graph_.steps[value.writer].spec.written_names();
    const auto blob = written.find(value.name);
    if (blob == written.end()) return value.name + " gradient";
    return Join(blob->second, " gradient",
                value.readers.empty()
                    ? ""
                    : Join(" from ", graph_.steps[value.readers.front()].spec.name()));
  }
  void Extend(BlockId block, int first, int last) {
    graph_.blocks[block].first = std::min(graph_.blocks[block].first, first);
    graph_.blocks[block].last = std::max(graph_.blocks[block].last, last);
  }
  static void Note(Block& block, const std::string& text) {
    block.note += (block.note.empty() ? "" : ", ") + text;
  }

  void Forget();
  void PlaceOutputs(StepId s);
  bool MayOverwriteInput(StepId s);
  bool IsNeededAfter(StepId s, ValueId value);
  bool BackwardReads(StepId s, ValueId value);
  int LastUse(ValueId value);
  void PlaceTwice(StepId s);
  bool IsRecomputed(ValueId id);
  void PlaceGradients(StepId s);
  BlockId SharedGradient(StepId s, size_t i);
  BlockId SharedByViews(const StepInfo& step, ValueId input, int* views);
  void PlaceLossGradients(StepId s);
  void PlaceStepMemory(StepId s);
  void Pack();
  bool Collides(const Block& a, const Block& b) const;
  void Describe();

  const NetOptions& options_;
  Graph& graph_;
  // Per block: written once for the whole run and by no step, so that no gradient may share it.
  std::vector<bool> fixed_;
};

// What a plan before this one chose.
void MemoryPlanner::Forget() {
  graph_.blocks = {};
  graph_.plan = {};
  for (ValueInfo& value : graph_.values) {
    value.block = value.backward_block = value.grad_block = {};
  }
  for (StepInfo& step : graph_.steps) {
    step.scratch = step.backward_scratch = step.recompute_scratch = step.workspace = {};
    step.state = step.constants = step.staging = {};
    step.recompute.clear();
  }
}

// Whether step s reads the value's data when it runs backward, as an input or as an output, or
// computes its output again from it before that.
bool MemoryPlanner::BackwardReads(StepId s, ValueId value) {
  const StepInfo& step = Step(s);
  if (!step.runs_backward) return false;
  if (graph_.RunsTwice(step) && std::ranges::find(step.in, value) != step.in.end()) return true;
  for (size_t i = 0; i < step.in.size(); ++i) {
    if (step.in[i] == value && step.said.in[i].kept) return true;
  }
  for (size_t i = 0; i < step.out.size(); ++i) {
    if (step.out[i] == value && step.said.out[i].kept) return true;
  }
  return false;
}

// The last time when a step reads a value's data. What the net puts out is read after the pass, and
// what persists is read in the next one.
int MemoryPlanner::LastUse(ValueId id) {
  const ValueInfo& value = Value(id);
  if (value.persists || value.is_output) return graph_.End();
  int last = graph_.ForwardTime(value.writer);
  for (const StepId reader : value.readers) {
    last = std::max(last, graph_.ForwardTime(reader));
    if (BackwardReads(reader, id)) last = std::max(last, graph_.BackwardTime(reader));
  }
  if (BackwardReads(value.writer, id)) last = std::max(last, graph_.BackwardTime(value.writer));
  return last;
}

// Whether anybody but step s still reads the value once s has run. What s itself keeps does not
// count: a layer that allows to be computed in place takes the output's numbers for the input's.
bool MemoryPlanner::IsNeededAfter(StepId s, ValueId id) {
  const ValueInfo& value = Value(id);
  if (value.persists || value.is_output) return true;
  for (const StepId reader : value.readers) {
    if (reader > s) return true;
    if (reader < s && BackwardReads(reader, id)) return true;
  }
  return BackwardReads(value.writer, id);
}

// The input's block may hold other values by now, of views and of steps in place before: none of
// them may be needed any more.
bool MemoryPlanner::MayOverwriteInput(StepId s) {
  const StepInfo& step = Step(s);
  if (!step.said.in_place || options_.memory == MemoryMode::kSeparate) return false;
  const ValueInfo& in = Value(step.in[0]);
  const ValueInfo& out = Value(step.out[0]);
  if (!(in.shape == out.shape) || in.dtype != out.dtype || out.persists) return false;
  for (size_t i = 1; i < step.in.size(); ++i) {
    if (Value(step.in[i]).block == in.block) return false;
  }
  for (const ValueId v : graph_.values.Ids()) {
    if (Value(v).block == in.block && IsNeededAfter(s, v)) return false;
  }
  return true;
}

// One block for the readers in forward, one for those in backward, where the value is computed
// again: between them its memory serves others. Its views are there, too.
void MemoryPlanner::PlaceTwice(StepId s) {
  const ValueId id = Step(s).out[0];
  ValueInfo& value = Value(id);
  const int first = *value.recomputed_at;
  StepId last_reader = s;
  int last = first;
  for (const ValueId view : graph_.WithViews(id)) {
    for (const StepId reader : Value(view).readers) last_reader = std::max(last_reader, reader);
    last = std::max(last, LastUse(view));
  }
  value.block = ValueBlock(BlockKind::kValue, value.name, value, graph_.ForwardTime(s),
                           graph_.ForwardTime(last_reader));
  value.backward_block = ValueBlock(BlockKind::kValue, value.name + " again", value, first, last);
  if (Step(s).needs.scratch > 0) {
    Step(s).recompute_scratch =
        NewBlock(BlockKind::kScratch, Step(s).spec.name() + " scratch again", {},
                 Step(s).needs.scratch, first, first);
  }
  Step(graph_.BackwardStepAt(first)).recompute.push_back(id);
}

bool MemoryPlanner::IsRecomputed(ValueId id) {
  while (Value(id).view_of) id = Value(id).view_of;
  return Value(id).recomputed_at.has_value();
}

void MemoryPlanner::PlaceOutputs(StepId s) {
  StepInfo& step = Step(s);
  for (size_t i = 0; i < step.out.size(); ++i) {
    ValueInfo& value = Value(step.out[i]);
    if (value.recomputed_at) {
      PlaceTwice(s);
      continue;
    }
    if (value.view_of && IsRecomputed(value.view_of)) {
      value.block = Value(value.view_of).block;
      value.backward_block = Value(value.view_of).backward_block;
      continue;
    }
    // What persists must be there before the first pass.
    const int first = value.persists ? 0 : graph_.ForwardTime(s), last = LastUse(step.out[i]);
    const bool in_place = !value.view_of && i == 0 && MayOverwriteInput(s);
    if (!value.view_of && !in_place) {
      value.block = ValueBlock(BlockKind::kValue, value.name, value, first, last);
    } else {
      value.block = Value(in_place ? step.in[0] : value.view_of).block;
      Extend(value.block, first, last);
      // A Split's output is the blob itself.
      if (!step.spec.written_names().contains(value.name)) {
        Note(graph_.blocks[value.block], Join("also ", value.name, " of ", step.spec.name(),
                                              in_place ? " (in place)" : " (view)"));
      }
    }
    value.backward_block = value.block;
  }
}

// The gradient block of the first output that is a view of `input` and has a gradient. Counts them.
BlockId MemoryPlanner::SharedByViews(const StepInfo& step, ValueId input, int* views) {
  BlockId shared;
  for (const ValueId out : step.out) {
    const BlockId grad = Value(out).grad_block;
    if (Value(out).view_of != input || !grad) continue;
    ++*views;
    if (!shared) shared = grad;
  }
  return shared;
}

// The block of an output gradient that input i's gradient can share; none: it needs its own.
BlockId MemoryPlanner::SharedGradient(StepId s, size_t i) {
  const StepInfo& step = Step(s);
  int views = 0;
  const BlockId shared = SharedByViews(step, step.in[i], &views);
  // A single view: its gradient is the input's, and no step computes anything.
  if (views == 1) return shared;
  if (options_.memory == MemoryMode::kSeparate) return {};
  // Several views (Split): the layer may write the sum over the first part.
  if (views > 1) return IsFixed(shared) ? BlockId() : shared;
  if (step.said.grad_in_place != static_cast<int>(i)) return {};
  const ValueInfo& in = Value(step.in[i]);
  const ValueInfo& out = Value(step.out[0]);
  if (!out.grad_block || IsFixed(out.grad_block)) return {};
  return in.shape == out.shape && in.dtype == out.dtype ? out.grad_block : BlockId();
}

// The gradient of a weighted output is its weight: a constant, written before the first pass. That
// of a value that goes on to another net is written before each backward pass.
void MemoryPlanner::PlaceLossGradients(StepId s) {
  const StepInfo& step = Step(s);
  for (const ValueId out : step.out) {
    ValueInfo& value = Value(out);
    const bool given = value.gets_gradient;
    if ((value.loss_weight == 0 && !given) || !value.has_grad || !step.needs_backward) continue;
    value.grad_block =
        ValueBlock(BlockKind::kGradient, GradientName(value), value,
                   given ? graph_.steps.size() : 0, given ? graph_.BackwardTime(s) : graph_.End());
    fixed_.back() = !given;
  }
}

// A gradient's only reader in forward writes it and its writer in forward reads it last (a value
// with several readers goes through a Split), so it lives between their two backward steps.
void MemoryPlanner::PlaceGradients(StepId s) {
  PlaceLossGradients(s);
  StepInfo& step = Step(s);
  for (size_t i = 0; i < step.in.size(); ++i) {
    if (!step.wants_grad[i]) continue;
    ValueInfo& value = Value(step.in[i]);
    const int first = graph_.BackwardTime(s), last = graph_.BackwardTime(value.writer);
    value.grad_block = SharedGradient(s, i);
    if (value.grad_block) {
      Extend(value.grad_block, first, last);
    } else {
      value.grad_block = ValueBlock(BlockKind::kGradient, GradientName(value), value, first, last);
    }
  }
}

void MemoryPlanner::PlaceStepMemory(StepId s) {
  StepInfo& step = Step(s);
  const int now = graph_.ForwardTime(s), back = graph_.BackwardTime(s);
  const std::string& name = step.spec.name();
  const auto place = [&](BlockKind kind, const char* what, size_t bytes, int first, int last) {
    return bytes == 0 ? BlockId() : NewBlock(kind, name + what, {}, bytes, first, last);
  };
  step.workspace = place(BlockKind::kWorkspace, " workspace", step.needs.workspace, now,
                         step.runs_backward ? back : now);
  step.state = place(BlockKind::kState, " state", step.said.state_bytes, 0, graph_.End());
  step.constants = place(BlockKind::kConstants, " constants",
                         step.said.constants.size() * sizeof(float), 0, graph_.End());
  step.staging = place(BlockKind::kStaging, " staging", step.needs.staging, 0, graph_.End());
  step.scratch = place(BlockKind::kScratch, " scratch", step.needs.scratch, now, now);
  if (!step.runs_backward) return;
  step.backward_scratch =
      place(BlockKind::kScratch, " backward scratch", step.needs.scratch, back, back);
}

bool MemoryPlanner::Collides(const Block& a, const Block& b) const {
  if (options_.memory == MemoryMode::kSeparate) return true;
  return a.first <= b.last && b.first <= a.last;
}

// Largest first, each at the lowest offset where it overlaps no block that lives at the same time.
// The large ones decide the arena's size; placed first, they end up side by side, and the small
// ones fit into the gaps. Blocks of one size keep the order of the steps, so that plans repeat.
void MemoryPlanner::Pack() {
  std::vector<BlockId> order;
  for (const BlockId id : graph_.blocks.Ids()) order.push_back(id);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](BlockId b) { return graph_.blocks[b].bytes; });
  std::vector<const Block*> placed;  // by offset
  size_t arena = 0;
  for (const BlockId id : order) {
    Block& block = graph_.blocks[id];
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
    graph_.plan.separate_bytes += value.bytes() * (value.grad_block ? 2 : 1);
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
