#pragma once
// The memory that each rank of a pipeline holds: each holds one stage of every net.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/base/text/json.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// The memory of the rank of one stage.
struct StageEstimate {
  std::string first, last;  // layers of the training net
  double work = 0;          // of a pass of the training net, in the units of net/partition.h
  int slots = 1;            // batches in flight, each with activations of its own
  size_t exchanged = 0;     // bytes of the tensors that the stage exchanges with other stages
  MemoryEstimate memory;
  std::vector<MemoryItem> items;  // of `memory`, and those of the pipeline
  size_t bytes = 0;               // of all items
};

// Returns the memory of stage `stage` of `stages` of a solver whose strategy is pipeline. Throws
// kConfig if the nets cannot be divided so.
StageEstimate EstimateStageMemory(const SolverSpec& spec, const Device& device, int stages,
                                  int stage);

// The memory of all stages of one pipeline, and how well it uses the time.
struct PipelineEstimate {
  std::vector<StageEstimate> stages;
  int micro_batches = 0;  // of an iteration
  int64_t records = 0;    // of a micro-batch; 0: not known
  double bubble = 0;      // the fraction of the time in which a stage waits

  // Returns the work of all stages together.
  double Work() const;
  // Returns the memory of the stage that needs the most.
  size_t LargestBytes() const;
};

// Pipelines of different numbers of stages, and one rank that computes whole batches.
struct PipelineComparison {
  size_t one_rank_bytes = 0;
  std::vector<PipelineEstimate> pipelines;
};
// Plans a pipeline for each number in `stages`, and the run on one rank.
PipelineComparison ComparePipelines(const SolverSpec& spec, const Device& device,
                                    const MemoryRoom& room, const std::vector<int>& stages);

// Returns for each pipeline a table of its stages, the largest of them and the bubble.
std::string ToText(const PipelineComparison& comparison);
Json ToJson(const PipelineComparison& comparison);

}  // namespace trainer
