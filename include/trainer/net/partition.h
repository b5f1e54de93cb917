#pragma once
// A net cut into stages of consecutive layers, each of which a rank computes.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/net/net.h"

namespace trainer {

// A value that a stage computes and a later one reads.
struct StageTransfer {
  std::string blob;
  Shape shape;
  DType dtype = DType::kF32;
  bool has_gradient = false;  // which goes back
  int from = 0, to = 0;       // stages

  size_t bytes() const { return static_cast<size_t>(shape.Count()) * SizeOf(dtype); }
};

// What the whole net puts out.
struct StageOutput {
  std::string name;
  int64_t count = 0;
  float loss_weight = 0;
  int stage = 0;
};

struct NetPartition {
  std::vector<NetSpec> nets;            // by stage
  std::vector<StageTransfer> values;    // in the order of their makers, then readers
  std::vector<StageOutput> outputs;     // in Caffe's order
  std::map<std::string, int> stage_of;  // by layer
  // By stage: its layers, but for those that read data; its parameters, each once.
  std::vector<std::vector<std::string>> layers;
  std::vector<int> params;
  std::vector<size_t> weight_bytes;

  // What stage `stage` takes and gives, in the order of `values`.
  StageBoundary BoundaryOf(int stage) const;
};

// How a net is to be cut.
struct PartitionOptions {
  int stages = 1;
  // By cost: the largest share of the work and of the memory that a stage has becomes as small as
  // it can. Else the layers' `stage` says it.
  bool by_cost = false;
  // For by_cost: numbers that are held for each weight, and passes that make a batch.
  int numbers_per_weight = 2, passes = 1;
  // A net that was cut before: its layers are where those of the same names are. May be null.
  const NetPartition* like = nullptr;
};

// Layers that read data are in stage 0; without a `stage` a layer is in that of the layer before.
// Throws kConfig at the layer for stages that go backwards, for a stage without layers, for weights
// that two stages share, and for layers that look beyond one pass.
NetPartition PartitionNet(const NetSpec& net, const NetOptions& options, const Device& device,
                          const PartitionOptions& rule);

// What a training pass of a layer takes, in operations: those that it computes, and those that
// would take as long as what it moves.
double PipelineCost(const Graph& graph, int layer);

// What one layer costs, of a chain of them.
struct LayerCost {
  double time = 0;            // in any unit
  double weight_bytes = 0;    // with all that is held for weights
  double pass_bytes = 0;      // of values, for each pass that is under way
  double crossing_bytes = 0;  // of values that cross a cut before this layer
  bool may_cut = true;        // before this layer
};

// The first layer of each stage. Minimises the largest share of the time or of the memory of one
// stage, the memory of the whole being that of all `passes` at once; among cuts that are nearly as
// good takes those that the fewest bytes cross. Stage s has stages - s passes under way. Empty
// where there are fewer places to cut than stages.
std::vector<int> BalancedStages(std::span<const LayerCost> layers, int stages, int passes);

}  // namespace trainer
