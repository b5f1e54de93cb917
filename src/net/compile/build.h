#pragma once
// The transforms that build a graph, in the order in which Compile calls them.

#include <optional>
#include <vector>

#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// The inputs of compiling, except the graph.
struct CompileEnv {
  const NetOptions& options;
  const Device& device;
  ParamStore& params;
};

// Returns the dtype in which each layer wants its inputs and outputs stored. nullopt: as the inputs
// are stored, or f32 if they differ. bf16 replaces f16 if the device does not store f16, which is
// logged. Throws kConfig for a dtype that the files must not ask for.
std::vector<std::optional<DType>> AssignDtypes(const NetSpec& net,
                                               const std::vector<LayerSpec>& layers,
                                               const Device& device);

// Creates and sets up every layer in order, with a Cast before each input whose dtype differs from
// `types`. Fills nodes, values and parameters.
void BuildNodes(const std::vector<LayerSpec>& layers,
                const std::vector<std::optional<DType>>& types, const CompileEnv& env,
                Graph& graph);

// Finds the boundary values that `edges` names, for a net that is one stage of a pipeline.
void ConnectBoundary(const StageBoundary& edges, Graph& graph);

// Fuses a layer into the layer before it if no other layer reads the value between them.
void FuseEpilogues(const CompileEnv& env, Graph& graph);

// Repeats Setup of one layer and updates its node and the values that it writes.
void SetupAgain(NodeId node, const CompileEnv& env, Graph& graph);

// Decides which values get a gradient and which layers run backward, as Caffe does: a layer runs
// backward if one of its parameters has an lr_mult or something before its inputs learns.
// propagate_down and force_backward change that. Values that no loss depends on get no gradient.
void MarkDifferentiable(const NetOptions& options, Graph& graph);

// Returns the node that is the last to add to the gradient of `param`: see Param::final_grad_node.
// The order of layers in the file does not tell, because a fused layer runs backward with the layer
// that computes it, and several layers may share a weight.
int FinalGradNode(const Param* param, const Graph& graph);

// Sets when the gradients of the net's own parameters are final, which decides their order in
// memory.
void OrderGradients(Graph& graph);

// For nets with allow_reevaluation: marks the layers whose outputs depend only on the batch, its
// random numbers and weights that are not learned. A repeated pass skips them, so the outputs that
// other layers read persist until the next batch.
void MarkBatchOnlyNodes(Graph& graph);

// Creates the primitives of every layer. Throws the errors of all layers at once.
void PrepareNodes(const CompileEnv& env, Graph& graph);

// Decides which outputs are dropped after their last forward consumer and recomputed for backward:
// outputs that a backward node needs, of layers that can recompute them, if the file or the
// activation budget asks for it.
void PlanRecompute(const NetOptions& options, Graph& graph);

// Whether the node's output may be recomputed at any cost.
bool CanRecompute(const Node& node, const NetOptions& options, const Graph& graph);

// Assigns every value, gradient, workspace and scratch area a buffer with a lifetime and an offset.
// May be called again after other values were chosen for recomputation.
void AssignBuffers(const NetOptions& options, Graph& graph);

}  // namespace trainer
