#include <algorithm>
#include <functional>
#include <ranges>

#include "compile/build.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

class MemoryPlanner {
 public:
  MemoryPlanner(const NetOptions& options, Graph& graph) : options_(options), graph_(graph) {}

  void Run() {
    Reset();
    // Outputs are placed in forward order and gradients in backward order, so that a buffer that
    // may be shared is placed before the value that shares it.
    for (const NodeId s : graph_.nodes.Ids()) PlaceOutputs(s);
    for (const NodeId s : graph_.nodes.Ids() | std::views::reverse) PlaceGradients(s);
    for (const NodeId s : graph_.nodes.Ids()) PlaceStepMemory(s);
    AssignOffsets();
    CountUnshared();
  }

 private:
  Node& Step(NodeId s) { return graph_.nodes[s]; }
  Value& ValueAt(ValueId v) { return graph_.values[v]; }
  bool IsFixed(BufferId b) const { return fixed_[static_cast<size_t>(b.number)]; }

  BufferId NewBlock(BufferKind kind, std::string name, const Shape& shape, size_t bytes, int first,
                    int last) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.name = std::move(name);
    buffer.shape = shape;
    buffer.bytes = bytes;
    buffer.first_use = first;
    buffer.last_use = last;
    fixed_.push_back(false);
    return graph_.memory.buffers.Add(std::move(buffer));
  }
  // Makes a buffer for a value or its gradient; the note tells the dtype unless it is f32.
  BufferId ValueBlock(BufferKind kind, std::string name, const Value& value, int first, int last) {
    const BufferId id = NewBlock(kind, std::move(name), value.shape, value.bytes(), first, last);
    if (value.dtype != DType::kF32) graph_.memory.buffers[id].note = NameOf(value.dtype);
    return id;
  }
  // Names a gradient for the user. The outputs of a Split have generated names; the blob of the
  // user's file and the layer that reads this output of the Split replace them.
  std::string GradientName(const Value& value) const {
    const auto& written = graph_.nodes[value.producer].spec.written_names();
    const auto blob = written.find(value.name);
    if (blob == written.end()) return value.name + " gradient";
    return Join(blob->second, " gradient",
                value.consumers.empty()
                    ? ""
                    : Join(" from ", graph_.nodes[value.consumers.front()].spec.name()));
  }
  void Extend(BufferId buffer, int first, int last) {
    graph_.memory.buffers[buffer].first_use =
        std::min(graph_.memory.buffers[buffer].first_use, first);
    graph_.memory.buffers[buffer].last_use = std::max(graph_.memory.buffers[buffer].last_use, last);
  }
  static void Note(Buffer& buffer, const std::string& text) {
    buffer.note += (buffer.note.empty() ? "" : ", ") + text;
  }

  void Reset();
  void PlaceOutputs(NodeId s);
  bool MayOverwriteInput(NodeId s);
  bool IsNeededAfter(NodeId s, ValueId value);
  bool BackwardReads(NodeId s, ValueId value);
  int LastUse(ValueId value);
  void PlaceRecomputed(NodeId s);
  bool IsRecomputed(ValueId id);
  void PlaceGradients(NodeId s);
  BufferId SharedGradient(NodeId s, size_t i);
  BufferId SharedByViews(const Node& node, ValueId input, int* views);
  void PlaceLossGradients(NodeId s);
  void PlaceStepMemory(NodeId s);
  void AssignOffsets();
  bool Overlaps(const Buffer& a, const Buffer& b) const;
  void CountUnshared();

  const NetOptions& options_;
  Graph& graph_;
  // By buffer: written once per run and by no node, so no gradient may share it.
  std::vector<bool> fixed_;
};

// Clears the choices of an earlier plan.
void MemoryPlanner::Reset() {
  graph_.memory = {};
  for (Value& value : graph_.values) {
    value.buffer = value.backward_buffer = value.grad_buffer = {};
  }
  for (Node& node : graph_.nodes) {
    node.scratch = node.backward_scratch = node.recompute_scratch = node.workspace = {};
    node.state = node.constants = node.upload = {};
    node.recompute.clear();
  }
}

// Whether node s reads the value in backward, as an input or an output, or to recompute its output.
bool MemoryPlanner::BackwardReads(NodeId s, ValueId value) {
  const Node& node = Step(s);
  if (!node.has_backward) return false;
  if (graph_.RunsTwice(node) && std::ranges::find(node.in, value) != node.in.end()) return true;
  for (size_t i = 0; i < node.in.size(); ++i) {
    if (node.in[i] == value && node.signature.in[i].kept) return true;
  }
  for (size_t i = 0; i < node.out.size(); ++i) {
    if (node.out[i] == value && node.signature.out[i].kept) return true;
  }
  return false;
}

// Returns the last time at which a node reads the value. Outputs of the net are read after the
// pass, and persistent values in the next one.
int MemoryPlanner::LastUse(ValueId id) {
  const Value& value = ValueAt(id);
  if (value.persists || value.is_output) return graph_.End();
  int last = graph_.ForwardTime(value.producer);
  for (const NodeId reader : value.consumers) {
    last = std::max(last, graph_.ForwardTime(reader));
    if (BackwardReads(reader, id)) last = std::max(last, graph_.BackwardTime(reader));
  }
  if (BackwardReads(value.producer, id)) last = std::max(last, graph_.BackwardTime(value.producer));
  return last;
}

// Whether a node other than s still reads the value after s has run. An input that s itself saves
// does not count: a layer that runs in place uses the output's values for the input's.
bool MemoryPlanner::IsNeededAfter(NodeId s, ValueId id) {
  const Value& value = ValueAt(id);
  if (value.persists || value.is_output) return true;
  for (const NodeId reader : value.consumers) {
    if (reader > s) return true;
    if (reader < s && BackwardReads(reader, id)) return true;
  }
  return BackwardReads(value.producer, id);
}

// The input's buffer may also hold views and values of earlier in-place nodes. None of them may be
// needed any more.
bool MemoryPlanner::MayOverwriteInput(NodeId s) {
  const Node& node = Step(s);
  if (!node.signature.in_place || options_.memory == BufferReuse::kSeparate) return false;
  const Value& in = ValueAt(node.in[0]);
  const Value& out = ValueAt(node.out[0]);
  if (!(in.shape == out.shape) || in.dtype != out.dtype || out.persists) return false;
  for (size_t i = 1; i < node.in.size(); ++i) {
    if (ValueAt(node.in[i]).buffer == in.buffer) return false;
  }
  for (const ValueId v : graph_.values.Ids()) {
    if (ValueAt(v).buffer == in.buffer && IsNeededAfter(s, v)) return false;
  }
  return true;
}

// Makes one buffer for the forward consumers and one for the backward consumers, for which the
// value is recomputed. Other values can use the memory between the two. Views use the same buffers.
void MemoryPlanner::PlaceRecomputed(NodeId s) {
  const ValueId id = Step(s).out[0];
  Value& value = ValueAt(id);
  const int first = *value.recompute_at;
  NodeId last_reader = s;
  int last = first;
  for (const ValueId view : graph_.WithViews(id)) {
    for (const NodeId reader : ValueAt(view).consumers) last_reader = std::max(last_reader, reader);
    last = std::max(last, LastUse(view));
  }
  value.buffer = ValueBlock(BufferKind::kActivation, value.name, value, graph_.ForwardTime(s),
                            graph_.ForwardTime(last_reader));
  value.backward_buffer =
      ValueBlock(BufferKind::kActivation, value.name + " again", value, first, last);
  if (Step(s).needs.scratch > 0) {
    Step(s).recompute_scratch =
        NewBlock(BufferKind::kScratch, Step(s).spec.name() + " scratch again", {},
                 Step(s).needs.scratch, first, first);
  }
  Step(graph_.BackwardStepAt(first)).recompute.push_back(id);
}

bool MemoryPlanner::IsRecomputed(ValueId id) {
  while (ValueAt(id).view_of) id = ValueAt(id).view_of;
  return ValueAt(id).recompute_at.has_value();
}

void MemoryPlanner::PlaceOutputs(NodeId s) {
  Node& node = Step(s);
  for (size_t i = 0; i < node.out.size(); ++i) {
    Value& value = ValueAt(node.out[i]);
    if (value.recompute_at) {
      PlaceRecomputed(s);
      continue;
    }
    if (value.view_of && IsRecomputed(value.view_of)) {
      value.buffer = ValueAt(value.view_of).buffer;
      value.backward_buffer = ValueAt(value.view_of).backward_buffer;
      continue;
    }
    // A persistent value must have its memory from the first pass on.
    const int first = value.persists ? 0 : graph_.ForwardTime(s), last = LastUse(node.out[i]);
    const bool in_place = !value.view_of && i == 0 && MayOverwriteInput(s);
    if (!value.view_of && !in_place) {
      value.buffer = ValueBlock(BufferKind::kActivation, value.name, value, first, last);
    } else {
      value.buffer = ValueAt(in_place ? node.in[0] : value.view_of).buffer;
      Extend(value.buffer, first, last);
      // A Split's output is the blob itself, so it is not mentioned.
      if (!node.spec.written_names().contains(value.name)) {
        Note(graph_.memory.buffers[value.buffer],
             Join("also ", value.name, " of ", node.spec.name(),
                  in_place ? " (in place)" : " (view)"));
      }
    }
    value.backward_buffer = value.buffer;
  }
}

// Returns the gradient buffer of the first output that is a view of `input` and has a gradient.
// Adds the number of such outputs to *views.
BufferId MemoryPlanner::SharedByViews(const Node& node, ValueId input, int* views) {
  BufferId shared;
  for (const ValueId out : node.out) {
    const BufferId grad = ValueAt(out).grad_buffer;
    if (ValueAt(out).view_of != input || !grad) continue;
    ++*views;
    if (!shared) shared = grad;
  }
  return shared;
}

// Returns the output-gradient buffer that input i's gradient can share; none: it needs its own.
BufferId MemoryPlanner::SharedGradient(NodeId s, size_t i) {
  const Node& node = Step(s);
  int views = 0;
  const BufferId shared = SharedByViews(node, node.in[i], &views);
  // The gradient of a single view is the input's gradient: no node computes anything.
  if (views == 1) return shared;
  if (options_.memory == BufferReuse::kSeparate) return {};
  // Several views (Split): the layer may write the sum over the first output gradient.
  if (views > 1) return IsFixed(shared) ? BufferId() : shared;
  if (node.signature.grad_in_place != static_cast<int>(i)) return {};
  const Value& in = ValueAt(node.in[i]);
  const Value& out = ValueAt(node.out[0]);
  if (!out.grad_buffer || IsFixed(out.grad_buffer)) return {};
  return in.shape == out.shape && in.dtype == out.dtype ? out.grad_buffer : BufferId();
}

// The gradient of a weighted output is its loss weight, a constant written before the first pass.
// The gradient of a boundary value is received before each backward pass.
void MemoryPlanner::PlaceLossGradients(NodeId s) {
  const Node& node = Step(s);
  for (const ValueId out : node.out) {
    Value& value = ValueAt(out);
    const bool given = value.grad_from_next_stage;
    if ((value.loss_weight == 0 && !given) || !value.has_grad || !node.on_grad_path) continue;
    value.grad_buffer =
        ValueBlock(BufferKind::kGradient, GradientName(value), value,
                   given ? graph_.nodes.size() : 0, given ? graph_.BackwardTime(s) : graph_.End());
    fixed_.back() = !given;
  }
}

// In backward, the consumer of a value writes its gradient first and the producer reads it last, so
// the gradient lives between these two nodes. (A value with several consumers has a Split.)
void MemoryPlanner::PlaceGradients(NodeId s) {
  PlaceLossGradients(s);
  Node& node = Step(s);
  for (size_t i = 0; i < node.in.size(); ++i) {
    if (!node.input_needs_grad[i]) continue;
    Value& value = ValueAt(node.in[i]);
    const int first = graph_.BackwardTime(s), last = graph_.BackwardTime(value.producer);
    value.grad_buffer = SharedGradient(s, i);
    if (value.grad_buffer) {
      Extend(value.grad_buffer, first, last);
    } else {
      value.grad_buffer =
          ValueBlock(BufferKind::kGradient, GradientName(value), value, first, last);
    }
  }
}

void MemoryPlanner::PlaceStepMemory(NodeId s) {
  Node& node = Step(s);
  const int now = graph_.ForwardTime(s), back = graph_.BackwardTime(s);
  const std::string& name = node.spec.name();
  const auto place = [&](BufferKind kind, const char* what, size_t bytes, int first, int last) {
    return bytes == 0 ? BufferId() : NewBlock(kind, name + what, {}, bytes, first, last);
  };
  node.workspace = place(BufferKind::kWorkspace, " workspace", node.needs.workspace, now,
                         node.has_backward ? back : now);
  node.state = place(BufferKind::kState, " state", node.signature.state_bytes, 0, graph_.End());
  node.constants = place(BufferKind::kConstants, " constants",
                         node.signature.constants.size() * sizeof(float), 0, graph_.End());
  node.upload = place(BufferKind::kUpload, " staging", node.needs.upload, 0, graph_.End());
  node.scratch = place(BufferKind::kScratch, " scratch", node.needs.scratch, now, now);
  if (!node.has_backward) return;
  node.backward_scratch =
      place(BufferKind::kScratch, " backward scratch", node.needs.scratch, back, back);
}

bool MemoryPlanner::Overlaps(const Buffer& a, const Buffer& b) const {
  if (options_.memory == BufferReuse::kSeparate) return true;
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

// Places the largest buffer first, each at the lowest offset without overlap with a buffer that is
// alive at the same time. Large buffers decide the arena's size, so they are packed first and small
// ones fill the gaps. Buffers of equal size keep the order of nodes, so that plans are
// deterministic.
void MemoryPlanner::AssignOffsets() {
  std::vector<BufferId> order;
  for (const BufferId id : graph_.memory.buffers.Ids()) order.push_back(id);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](BufferId b) { return graph_.memory.buffers[b].bytes; });
  std::vector<const Buffer*> placed;  // sorted by offset
  size_t arena = 0;
  for (const BufferId id : order) {
    Buffer& buffer = graph_.memory.buffers[id];
    size_t offset = 0;
    for (const Buffer* other : placed) {
      if (!Overlaps(buffer, *other)) continue;
      if (offset + buffer.bytes <= other->offset) break;
      offset = std::max(offset, other->offset + AlignedBytes(other->bytes));
    }
    buffer.offset = offset;
    arena = std::max(arena, offset + AlignedBytes(buffer.bytes));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &buffer,
                         [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; }),
        &buffer);
  }
  graph_.memory.arena_bytes = arena;
}

void MemoryPlanner::CountUnshared() {
  for (const Value& value : graph_.values) {
    graph_.memory.unshared_bytes += value.bytes() * (value.grad_buffer ? 2 : 1);
  }
  for (const Buffer& buffer : graph_.memory.buffers) {
    if (buffer.shape.Rank() == 0 && buffer.bytes > sizeof(float)) {
      graph_.memory.unshared_bytes += buffer.bytes;
    }
  }
}

}  // namespace

void AssignBuffers(const NetOptions& options, Graph& graph) { MemoryPlanner(options, graph).Run(); }

}  // namespace trainer
