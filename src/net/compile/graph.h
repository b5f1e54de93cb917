#pragma once
// A net's plan: its layers and values, which memory they share, and when. Built once by the
// functions below, in their order; constant while the net runs.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/ids.h"
#include "compile/node_signature.h"
#include "trainer/net/net.h"

namespace trainer {

// A blob as one layer wrote it. top == bottom makes a new value with the same name.
struct Value {
  std::string name;
  Shape shape;  // where `is_dynamic`, the largest that a pass can give it
  DType dtype = DType::kF32;
  NodeId producer;
  std::vector<NodeId> consumers;  // in order; twice where a node has it as two inputs
  ValueId view_of;                // the value whose memory this is, by OutputView
  bool persists = false;
  bool is_dynamic = false;  // itself, or an input of its producer
  bool keeps_f32 = false;
  float loss_weight = 0;
  bool is_output = false;     // nobody reads it
  bool leaves_stage = false;  // of StageBoundary::out: another net reads it
  // Of StageBoundary: another net gives the gradient of this value, or takes it.
  bool grad_from_next_stage = false, grad_to_prev_stage = false;

  bool requires_grad = false;       // a gradient with respect to it would be of use
  bool has_grad = false;            // and a loss depends on it
  bool drop_candidate = false;      // the plan's choice: computed again if that can be
  std::optional<int> recompute_at;  // the backward time before which it is computed again

  // Chosen by AssignBuffers. No gradient buffer: nobody computes the gradient. `backward_buffer`
  // differs from `buffer` where the value is computed again for its consumers in backward.
  BufferId buffer, backward_buffer, grad_buffer;

  size_t bytes() const { return static_cast<size_t>(shape.Count()) * SizeOf(dtype); }
};

// One layer, as one node of a pass.
struct Node {
  LayerSpec spec;
  std::string key;  // the name; "name#2" for a second layer of that name
  std::unique_ptr<Layer> layer;
  std::vector<ValueId> in, out;
  NodeSignature signature;         // by the layer's last Setup
  bool is_cast = false;            // put in by the net
  bool has_dynamic_shape = false;  // an input or output may shrink
  std::vector<NodeId> epilogue;    // computed along with this one, in order
  NodeId fused_into;               // computes this one, which has no values of its own then

  std::vector<bool> input_needs_grad;  // per input
  bool on_grad_path = false;  // something in it or before it learns, and a loss depends on it
  bool has_backward = false;  // and its Backward has something to do
  bool batch_only = false;    // of a net that keeps it: see MarkBatchOnlyNodes

  MemoryNeeds needs;  // of Setup and Prepare together
  BufferId scratch, backward_scratch, workspace, state, constants, upload;
  BufferId recompute_scratch;      // for its own output, where that is computed again
  std::vector<ValueId> recompute;  // what is computed again before this node runs backward

  explicit Node(LayerSpec layer_spec) : spec(std::move(layer_spec)) {}
  const std::vector<Param*>& params() const { return signature.params; }
};

// Memory for one or more values that never need it at the same time with different contents.
struct Buffer {
  std::string name, note;
  BufferKind kind = BufferKind::kActivation;
  Shape shape;
  size_t bytes = 0, offset = 0;
  int first = 0, last = 0;  // the times, both inclusive, between which its content matters
};

// Times: node s runs forward at s and backward at 2 * nodes - 1 - s.
struct Graph {
  IdVector<NodeId, Node> nodes;
  IdVector<ValueId, Value> values;
  IdVector<BufferId, Buffer> buffers;
  std::map<std::string, ValueId> latest_by_name;   // blob name -> its last value
  std::vector<ValueId> boundary_in, boundary_out;  // of NetOptions::boundary
  std::vector<Param*> new_params;                  // parameters that this net added to the store
  MemoryPlan plan;

  int ForwardTime(NodeId node) const { return node.number; }
  int BackwardTime(NodeId node) const { return 2 * nodes.size() - 1 - node.number; }
  NodeId BackwardStepAt(int time) const { return NodeId(2 * nodes.size() - 1 - time); }
  int End() const { return 2 * nodes.size(); }

  // Whether the node reads its inputs again before its own backward, to compute its output again.
  bool RunsTwice(const Node& node) const {
    return node.out.size() == 1 && values[node.out[0]].recompute_at.has_value();
  }
  // The value and all that are views of it, or of its views, in order.
  std::vector<ValueId> WithViews(ValueId value) const;
};

// What the functions that build a graph need beside it.
struct CompileEnv {
  const NetOptions& options;
  const Device& device;
  ParamStore& params;
};

// The type that each layer wants its inputs and outputs stored as; none: as the inputs come, f32
// where they differ. bf16 stands in for f16 where the device does not store that, which the log
// says. Throws kConfig for a type that the files must not ask for.
std::vector<std::optional<DType>> AssignDtypes(const NetSpec& net,
                                               const std::vector<LayerSpec>& layers,
                                               const Device& device);

// Makes and describes every layer, in order, with a Cast in front of each input that comes in
// another type than `types` says. Fills nodes, values, parameters.
void BuildNodes(const std::vector<LayerSpec>& layers,
                const std::vector<std::optional<DType>>& types, const CompileEnv& env,
                Graph& graph);

// Bytes of the copies that layers want of their weights: see net/packed_weights.h. Known once they
// are prepared.
size_t PackedWeightBytes(const Graph& graph);

// Finds the values that `edges` name, the outer sides of a part of a larger net.
void ConnectBoundary(const StageBoundary& edges, Graph& graph);

// Fuses layers into the one before them where no other layer reads what is between them.
void FuseEpilogues(const CompileEnv& env, Graph& graph);

// Describes one layer again, into its node and the values that it writes.
void SetupAgain(NodeId node, const CompileEnv& env, Graph& graph);

// Decides which values get a gradient and which layers run backward, as Caffe does: a layer needs
// it when a parameter with lr_mult or an input before it learns; propagate_down and force_backward
// change that; what no loss depends on is left out.
void MarkDifferentiable(const NetOptions& options, Graph& graph);

// Finds out when the gradients of the net's own parameters are final, for their order in memory.
void OrderGradients(Graph& graph);

// For nets that keep their batch: finds the layers whose outputs the batch alone decides, with its
// random numbers and weights that are not learned. Only a new batch runs them; what others read of
// them persists until then.
void MarkBatchOnlyNodes(Graph& graph);

// Makes the device plans of every layer. Throws what the layers throw, all of it at once.
void PrepareNodes(const CompileEnv& env, Graph& graph);

// Decides which outputs are dropped after their last consumer and computed again for backward:
// those of layers that the file asks this of, or that the plan chose, and that can, where a
// backward node needs them.
void PlanRecompute(const NetOptions& options, Graph& graph);

// Whether the node's output may be computed again for any amount of work.
bool CanRecompute(const Node& node, const NetOptions& options, const Graph& graph);

// Gives every value, gradient, workspace and scratch a buffer with a lifetime and an offset. May
// come again, with other values to be computed again.
void AssignBuffers(const NetOptions& options, Graph& graph);

}  // namespace trainer
