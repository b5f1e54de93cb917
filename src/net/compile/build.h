#pragma once
// The transforms that build a graph, in the order in which Compile calls them.

#include <optional>
#include <vector>

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

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
