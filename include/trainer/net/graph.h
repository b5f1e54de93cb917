#pragma once
// The compiled net as nodes, values and buffers. Compiling fills a Graph; the executor and tools
// read it.

#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/layer_spec.h"
#include "trainer/layers/layer.h"
#include "trainer/layers/setup_context.h"
#include "trainer/net/net_options.h"
#include "trainer/net/param_store.h"
#include "trainer/tensor/shape.h"

namespace trainer {

// The index of a node, value or buffer; -1 means none. Each has its own type, so that the compiler
// rejects mixing them.
template <class Tag>
struct Id {
  int number = -1;

  constexpr Id() = default;
  explicit constexpr Id(int n) : number(n) {}
  explicit constexpr Id(size_t n) : number(static_cast<int>(n)) {}
  explicit operator bool() const { return number >= 0; }
  auto operator<=>(const Id&) const = default;
};

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;
using BufferId = Id<struct BufferTag>;

// An array indexed by ids.
template <class Key, class T>
class IdVector {
 public:
  T& operator[](Key id) { return items_[static_cast<size_t>(id.number)]; }
  const T& operator[](Key id) const { return items_[static_cast<size_t>(id.number)]; }

  // Invalidates references to other items, unless Reserve made room.
  Key Add(T item) {
    items_.push_back(std::move(item));
    return Key(items_.size() - 1);
  }
  void Reserve(size_t count) { items_.reserve(count); }
  void Resize(int count) { items_.resize(static_cast<size_t>(count)); }

  int size() const { return static_cast<int>(items_.size()); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  // The ids of all items, in order.
  auto Ids() const {
    return std::views::iota(0, size()) | std::views::transform([](int n) { return Key(n); });
  }

 private:
  std::vector<T> items_;
};

enum class BufferKind { kActivation, kGradient, kWorkspace, kState, kConstants, kUpload, kScratch };

// Memory shared by values that are never needed at the same time with different contents: one line
// of the memory plan.
struct Buffer {
  std::string name;  // "conv1", "conv1 gradient", "pool1 workspace", "conv1 scratch"
  std::string note;  // "in place of conv1", "view of data", ""
  BufferKind kind = BufferKind::kActivation;
  Shape shape;  // no axes for scratch and workspace
  size_t bytes = 0, offset = 0;
  int first_use = 0, last_use = 0;  // first and last time at which the content matters
};

// The assignment of a net's values, gradients and scratch arrays to buffers.
struct MemoryPlan {
  IdVector<BufferId, Buffer> buffers;
  size_t arena_bytes = 0;     // of all buffers together
  size_t unshared_bytes = 0;  // sum of all buffers as if none shared memory
};

// A blob as one layer wrote it. top == bottom makes a new value with the same name.
struct Value {
  std::string name;
  Shape shape;  // the largest shape that a pass can give it if `is_dynamic`
  DType dtype = DType::kF32;
  NodeId producer;
  std::vector<NodeId> consumers;  // in order; a node that reads the value twice is listed twice
  ValueId view_of;                // the value whose memory this one uses, set by OutputView
  bool persists = false;
  bool is_dynamic = false;  // its shape, or an input shape of its producer, may shrink
  bool keeps_f32 = false;
  float loss_weight = 0;
  bool is_output = false;     // no layer reads it
  bool leaves_stage = false;  // another stage reads it (StageBoundary::out)
  // Set by StageBoundary: another stage sends or receives the gradient of this value.
  bool grad_from_next_stage = false, grad_to_prev_stage = false;

  bool requires_grad = false;       // something before it learns, so its gradient is of use
  bool has_grad = false;            // it is a loss, or requires_grad and a loss depends on it
  bool drop_candidate = false;      // FitActivationBudget wants it recomputed, if possible
  std::optional<int> recompute_at;  // the backward time before which it is recomputed

  // Set by AssignBuffers. A value without a gradient has no grad_buffer. `backward_buffer` differs
  // from `buffer` if the value is recomputed for its consumers in backward.
  BufferId buffer, backward_buffer, grad_buffer;

  size_t bytes() const { return static_cast<size_t>(shape.Count()) * SizeOf(dtype); }
};

// One layer, as one node of a pass.
struct Node {
  LayerSpec spec;
  std::string key;  // the layer's name; "name#2" for a second layer of that name
  std::unique_ptr<Layer> layer;
  std::vector<ValueId> in, out;
  NodeSignature signature;         // from the layer's last Setup
  std::vector<Param*> params;      // declared in the signature, own or shared
  bool is_cast = false;            // inserted by BuildNodes to convert an input
  bool has_dynamic_shape = false;  // an input or output may shrink
  std::vector<NodeId> epilogue;    // nodes fused into this one, in order
  NodeId fused_into;  // the node that computes this one, whose own values do not exist then

  std::vector<bool> input_needs_grad;  // per input
  bool on_grad_path = false;           // it or a node before it learns, and a loss depends on it
  bool has_backward = false;           // on_grad_path, and its Backward has work to do
  bool batch_only = false;  // the batch alone decides its outputs: see MarkBatchOnlyNodes

  MemoryNeeds needs;  // of Setup and Prepare together
  BufferId scratch, backward_scratch, workspace, state, constants, upload;
  BufferId recompute_scratch;      // for recomputing this node's output
  std::vector<ValueId> recompute;  // values that are recomputed before this node's backward

  explicit Node(LayerSpec layer_spec) : spec(std::move(layer_spec)) {}
};

// The compiled net: its layers as nodes in execution order, and the values between them. Constant
// once the net is compiled; holds no device memory. Node n runs forward at time n and backward at
// time 2 * nodes - 1 - n.
struct Graph {
  std::string name;
  NetOptions options;  // with what the net's file adds to them
  bool debug_info = false;
  IdVector<NodeId, Node> nodes;
  IdVector<ValueId, Value> values;
  std::map<std::string, ValueId> latest_by_name;  // blob name -> its last value
  // Of NetOptions::boundary: what a forward pass needs before it, or leaves, and with the gradient
  // it is the other way round.
  std::vector<ValueId> boundary_in, boundary_out;
  std::vector<Param*> params;      // all parameters, each once, in the order of the nodes
  std::vector<Param*> new_params;  // those that this net added to the store
  MemoryPlan memory;

  int ForwardTime(NodeId node) const { return node.number; }
  int BackwardTime(NodeId node) const { return 2 * nodes.size() - 1 - node.number; }
  NodeId BackwardStepAt(int time) const { return NodeId(2 * nodes.size() - 1 - time); }
  int End() const { return 2 * nodes.size(); }

  // Shape and type of the last value of that name, without data; empty where no layer writes
  // `blob`.
  Tensor Find(const std::string& blob) const;

  // Whether the node reads its inputs again before its own backward, to compute its output again.
  bool RunsTwice(const Node& node) const {
    return node.out.size() == 1 && values[node.out[0]].recompute_at.has_value();
  }
  // Returns the value and all views of it, including views of views, in order.
  std::vector<ValueId> WithViews(ValueId value) const;
};

}  // namespace trainer
