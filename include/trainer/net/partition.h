#pragma once
// Divides a net into pipeline stages of consecutive layers, each computed by one rank.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// A value that one stage computes and a later stage reads.
struct StageTransfer {
  std::string blob;
  Shape shape;
  DType dtype = DType::kF32;
  bool has_gradient = false;  // the gradient is sent back
  int from = 0, to = 0;       // stage numbers

  size_t bytes() const { return static_cast<size_t>(shape.Count()) * SizeOf(dtype); }
};

// An output of the whole net.
struct StageOutput {
  std::string name;
  int64_t count = 0;
  float loss_weight = 0;
  int stage = 0;
};

struct NetPartition {
  std::vector<NetSpec> nets;            // by stage
  std::vector<StageTransfer> values;    // in the order of the nodes that read them
  std::vector<StageOutput> outputs;     // in Caffe's order
  std::map<std::string, int> stage_of;  // by layer name
  // By stage: its layers, except data layers, and its parameters, each counted once.
  std::vector<std::vector<std::string>> layers;
  std::vector<int> params;
  std::vector<size_t> weight_bytes;

  // Returns the tensors that stage `stage` receives and sends, in the order of `values`.
  StageBoundary BoundaryOf(int stage) const;
};

// How a net is divided.
struct PartitionOptions {
  int stages = 1;
  // Minimises the largest share of work and memory of a stage. If false, each layer's `stage`
  // decides.
  bool by_cost = false;
  // For by_cost: the number of floats held per weight, and the passes per batch.
  int numbers_per_weight = 2, passes = 1;
  // A partition whose layers keep their stages, by layer name. May be null.
  const NetPartition* like = nullptr;
};

// Divides `net`. Data layers are in stage 0; a layer without `stage` is in the stage of the layer
// before it. Throws kConfig at the layer for stages in decreasing order, stages without layers,
// weights that two stages share, and layers that need more than one pass.
NetPartition PartitionNet(const NetSpec& net, const NetOptions& options, const Device& device,
                          const PartitionOptions& rule);

// The cost of one training pass of a layer, in operations: the arithmetic, plus the operations that
// would take as long as its memory traffic.
double PipelineCost(const Graph& graph, int layer);

// The cost of one layer in a chain of layers.
struct LayerCost {
  double time = 0;            // in any unit
  double weight_bytes = 0;    // including gradients and optimizer state
  double pass_bytes = 0;      // activations of one pass in flight
  double crossing_bytes = 0;  // size of the values that cross a cut before this layer
  bool may_cut = true;        // whether a stage may begin at this layer
};

// Returns the first layer of each stage. Minimises the largest share of time or memory of a stage,
// where the memory of the whole net counts all `passes` at once. Among almost equal partitions,
// chooses the one that sends the fewest bytes between stages. Stage s has stages - s passes in
// flight. Returns an empty vector if there are fewer possible cuts than needed.
std::vector<int> BalancedStages(std::span<const LayerCost> layers, int stages, int passes);

}  // namespace trainer
