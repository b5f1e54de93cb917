#pragma once
// A net's plan: its layers and values, which memory they share, and when. Built once by the
// functions below, in their order; constant while the net runs.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "description.h"
#include "ids.h"
#include "trainer/net/net.h"

namespace trainer {

// A blob as one layer wrote it. top == bottom makes a new value with the same name.
struct ValueInfo {
  std::string name;
  Shape shape;  // where `may_shrink`, the largest that a pass can give it
  DType dtype = DType::kF32;
  StepId writer;
  std::vector<StepId> readers;  // in order; twice where a step has it as two inputs
  ValueId view_of;              // the value whose memory this is, by OutIsView
  bool persists = false;
  bool may_shrink = false;  // itself, or an input of its writer
  bool stays_f32 = false;
  float loss_weight = 0;
  bool is_output = false;  // nobody reads it
  bool goes_on = false;    // of NetEdges::out: another net reads it
  // Of NetEdges: another net gives the gradient of this value, or takes it.
  bool gets_gradient = false, gives_gradient = false;

  bool depends_on_learned = false;   // a gradient with respect to it would be of use
  bool has_grad = false;             // and a loss depends on it
  bool may_drop = false;             // the plan's choice: computed again if that can be
  std::optional<int> recomputed_at;  // the backward time before which it is computed again

  // Chosen by PlanMemory. No gradient block: nobody computes the gradient. `backward_block` differs
  // from `block` where the value is computed again for its readers in backward.
  BlockId block, backward_block, grad_block;

  size_t bytes() const { return static_cast<size_t>(shape.Count()) * SizeOf(dtype); }
};

// One layer, as one step of a pass.
struct StepInfo {
  LayerSpec spec;
  std::string key;  // the name; "name#2" for a second layer of that name
  std::unique_ptr<Layer> layer;
  std::vector<ValueId> in, out;
  Description said;           // by the layer's last Describe
  bool is_cast = false;       // put in by the net
  bool shapes_vary = false;   // an input or output may shrink
  std::vector<StepId> fused;  // computed along with this one, in order
  StepId fused_into;          // computes this one, which has no values of its own then

  std::vector<bool> wants_grad;  // per input
  bool needs_backward = false;   // something in it or before it learns, and a loss depends on it
  bool runs_backward = false;    // and its Backward has something to do
  bool of_batch = false;         // of a net that keeps it: see KeepBatch

  DeviceNeeds needs;  // of Describe and Prepare together
  BlockId scratch, backward_scratch, workspace, state, constants, staging;
  BlockId recompute_scratch;       // for its own output, where that is computed again
  std::vector<ValueId> recompute;  // what is computed again before this step runs backward

  explicit StepInfo(LayerSpec layer_spec) : spec(std::move(layer_spec)) {}
  const std::vector<Param*>& params() const { return said.params; }
};

// Memory for one or more values that never need it at the same time with different contents.
struct Block {
  std::string name, note;
  BlockKind kind = BlockKind::kValue;
  Shape shape;
  size_t bytes = 0, offset = 0;
  int first = 0, last = 0;  // the times, both inclusive, between which its content matters
};

// Times: step s runs forward at s and backward at 2 * steps - 1 - s.
struct Graph {
  IdVector<StepId, StepInfo> steps;
  IdVector<ValueId, ValueInfo> values;
  IdVector<BlockId, Block> blocks;
  std::map<std::string, ValueId> newest;     // blob name -> its last value
  std::vector<ValueId> edges_in, edges_out;  // of NetOptions::edges
  std::vector<Param*> fresh;                 // parameters that this net added to the store
  MemoryPlan plan;

  int ForwardTime(StepId step) const { return step.number; }
  int BackwardTime(StepId step) const { return 2 * steps.size() - 1 - step.number; }
  StepId BackwardStepAt(int time) const { return StepId(2 * steps.size() - 1 - time); }
  int End() const { return 2 * steps.size(); }

  // Whether the step reads its inputs again before its own backward, to compute its output again.
  bool RunsTwice(const StepInfo& step) const {
    return step.out.size() == 1 && values[step.out[0]].recomputed_at.has_value();
  }
  // The value and all that are views of it, or of its views, in order.
  std::vector<ValueId> WithViews(ValueId value) const;
};

// What the functions that build a graph need beside it.
struct BuildEnv {
  const NetOptions& options;
  const Device& device;
  ParamStore& params;
};

// The type that each layer wants its inputs and outputs stored as; none: as the inputs come, f32
// where they differ. bf16 stands in for f16 where the device does not store that, which the log
// says. Throws kConfig for a type that the files must not ask for.
std::vector<std::optional<DType>> ChooseTypes(const NetSpec& net,
                                              const std::vector<LayerSpec>& layers,
                                              const Device& device);

// Makes and describes every layer, in order, with a Cast in front of each input that comes in
// another type than `types` says. Fills steps, values, parameters.
void DescribeLayers(const std::vector<LayerSpec>& layers,
                    const std::vector<std::optional<DType>>& types, const BuildEnv& env,
                    Graph& graph);

// Bytes of the copies that layers want of their weights: see net/weight_copies.h. Known once they
// are prepared.
size_t WeightCopyBytes(const Graph& graph);

// Finds the values that `edges` name, the outer sides of a part of a larger net.
void ConnectEdges(const NetEdges& edges, Graph& graph);

// Fuses layers into the one before them where no other layer reads what is between them.
void FuseLayers(const BuildEnv& env, Graph& graph);

// Describes one layer again, into its step and the values that it writes.
void DescribeAgain(StepId step, const BuildEnv& env, Graph& graph);

// Decides which values get a gradient and which layers run backward, as Caffe does: a layer needs
// it when a parameter with lr_mult or an input before it learns; propagate_down and force_backward
// change that; what no loss depends on is left out.
void PlanGradients(const NetOptions& options, Graph& graph);

// Finds out when the gradients of the net's own parameters are final, for their order in memory.
void OrderGradients(Graph& graph);

// For nets that keep their batch: finds the layers whose outputs the batch alone decides, with its
// random numbers and weights that are not learned. Only a new batch runs them; what others read of
// them persists until then.
void KeepBatch(Graph& graph);

// Makes the device plans of every layer. Throws what the layers throw, all of it at once.
void PrepareLayers(const BuildEnv& env, Graph& graph);

// Decides which outputs are dropped after their last reader and computed again for backward: those
// of layers that the file asks this of, or that the plan chose, and that can, where a backward step
// needs them.
void PlanRecompute(const NetOptions& options, Graph& graph);

// Whether the step's output may be computed again for any amount of work.
bool CanRecompute(const StepInfo& step, const NetOptions& options, const Graph& graph);

// Gives every value, gradient, workspace and scratch a block with a lifetime and an offset. May
// come again, with other values to be computed again.
void PlanMemory(const NetOptions& options, Graph& graph);

}  // namespace trainer
