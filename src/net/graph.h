#pragma once
// A net's layers and values while they are planned, and afterwards as the map of what is where.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// A blob as one layer wrote it. top == bottom makes a new Value with the same name.
struct ValueInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::kF32;
  int writer = 0;
  std::vector<int> readers;  // steps that have it as an input
  int view_of = -1;          // the value whose memory this is, by OutIsView
  bool pinned = false;
  bool varies = false;  // its shape may become smaller in a pass
  bool exact = false;   // labels or places: stays f32
  float loss_weight = 0;
  bool can_grad = false;   // something before it learns
  bool has_grad = false;   // and a loss depends on it
  bool is_output = false;  // nobody reads it

  // Set by the memory plan: which block holds it; -1 for a gradient that nobody computes.
  int block = -1, grad_block = -1;
  int again_block = -1;  // where it is computed once more for backward steps
  size_t planned_bytes = 0;

  // In this pass it has no elements, or depends on a value that has none.
  bool resting = false;

  size_t bytes() const { return static_cast<size_t>(shape.Count()) * SizeOf(dtype); }
};

// One layer in its place.
struct StepInfo {
  LayerSpec spec;
  std::string key;  // the name; with a number behind it for a second layer of that name
  std::unique_ptr<Layer> layer;
  std::vector<int> in, out;       // values
  std::vector<bool> no_gradient;  // per input, as declared
  std::vector<bool> wants_grad;   // per input, decided
  std::vector<bool> keep_in, keep_out;
  bool allow_in_place = false;
  int grad_in_place = -1;  // the input whose gradient may lie in that of output 0
  bool is_cast = false;    // put in by the net
  size_t scratch_bytes = 0, workspace_bytes = 0, state_bytes = 0;
  std::vector<Param*> params;
  bool needs_backward = false;  // something in it or before it learns, and a loss depends on it
  bool runs_backward = false;   // and its Backward has something to do
  int scratch_block = -1, grad_scratch_block = -1, workspace_block = -1, state_block = -1;
  std::vector<int> again;         // the values to compute once more before it runs backward
  bool varies = false;            // an output's shape changes from pass to pass
  bool follows = false;           // an input depends on such an output
  bool resting = false;           // not run in this pass: an input is resting
  std::vector<Shape> planned_in;  // of a layer that follows: the inputs' shapes at its last Plan
  std::vector<int> absorbed;      // the steps that this one computes along with itself, in order
  int absorbed_by = -1;           // the step that computes this one; it has no values of its own

  explicit StepInfo(LayerSpec layer_spec) : spec(std::move(layer_spec)) {}
};

// Memory for one or more values that never need it at the same time as different contents.
struct Block {
  std::string name, note;
  BlockKind kind = BlockKind::kValue;
  Shape shape;
  size_t bytes = 0, offset = 0;
  int first = 0, last = 0;  // steps, both inclusive
};

struct Graph {
  std::vector<StepInfo> steps;
  std::vector<ValueInfo> values;
  std::vector<Block> blocks;
  std::map<std::string, int> newest;  // blob name -> value
  std::vector<Param*> fresh;          // parameters that this net added to the store
  MemoryPlan plan;

  int NumSteps() const { return static_cast<int>(steps.size()); }
  int BackwardStep(int step) const { return 2 * NumSteps() - 1 - step; }
  int End() const { return 2 * NumSteps(); }
};

// The type that each layer wants its inputs and outputs stored as; none: as the inputs come, f32
// where they differ. Throws kConfig for a type that the files must not ask for.
std::vector<std::optional<DType>> ChooseStorage(const NetSpec& net,
                                                const std::vector<LayerSpec>& layers);

// Makes and plans every layer, in order, with a Cast in front of each input that comes in another
// type than `storage` says. Fills steps, values, parameters.
void PlanLayers(const std::vector<LayerSpec>& layers,
                const std::vector<std::optional<DType>>& storage, const NetOptions& options,
                const Device& device, ParamStore& params, Graph& graph);

// Lets layers take over those behind them, where no other layer reads what lies between.
void FuseLayers(const NetOptions& options, const Device& device, ParamStore& params, Graph& graph);

// Plans one layer from the start.
void PlanStep(int step, const NetOptions& options, const Device& device, ParamStore& params,
              Graph& graph);

// Plans one layer again, for its inputs' present shapes. Throws kConfig as a first Plan does, and
// kInternal when the layer asks for another treatment of its values than before.
void PlanAgain(int step, const NetOptions& options, const Device& device, ParamStore& params,
               Graph& graph);

// Decides which values get a gradient and which layers run backward, as Caffe does: a layer needs
// it when a parameter with lr_mult or an input before it learns; propagate_down and force_backward
// change that; what no loss depends on is left out.
void PlanGradients(const NetOptions& options, Graph& graph);

// Finds out when the gradients of the net's own parameters are final, for their order in memory.
void OrderGradients(Graph& graph);

// Makes data layers' outputs hold until the next batch, for nets that keep it.
void PinBatch(Graph& graph);

// The first backward step in which a reader of the value needs it; the end where none does.
int FirstBackwardUse(int value, const Graph& graph);

// Whether a step's output is dropped after its last reader and computed again: the file asks for
// it, a backward step needs it, the inputs are there until the step's own backward, and no other
// value shares the output's memory.
bool MayComputeAgain(int step, const NetOptions& options, const Graph& graph);

// Throws kConfig, at the layer of the largest part, where values and weights together are more than
// the machine has. `weight_bytes`: of all parameters of the run.
void RequireFit(const Graph& graph, const NetOptions& options, const Device& device,
                size_t weight_bytes);

// Gives every value, gradient, workspace and scratch a block with a lifetime and an offset.
void PlanMemory(const NetOptions& options, Graph& graph);

}  // namespace trainer
