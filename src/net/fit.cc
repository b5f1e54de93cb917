// A net that this machine can never hold is refused, naming what is largest in it.

#include <unistd.h>

#include <algorithm>
#include <string>

#include "graph.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

// Memory for one thing, and whose it is.
struct Part {
  const StepInfo* step = nullptr;
  std::string what, advice;
  size_t bytes = 0;
};

const StepInfo* OwnerOf(BlockId block, const Graph& graph) {
  for (const ValueInfo& value : graph.values) {
    if (value.block == block || value.grad_block == block || value.backward_block == block) {
      return &graph.steps[value.writer];
    }
  }
  for (const StepInfo& step : graph.steps) {
    for (const BlockId own :
         {step.scratch, step.backward_scratch, step.workspace, step.state, step.constants}) {
      if (own == block) return &step;
    }
  }
  return nullptr;
}

// What would make it smaller. A batch helps where one item of it fits.
std::string AdviceFor(const Block& block, size_t physical) {
  if (block.kind != BlockKind::kValue && block.kind != BlockKind::kGradient) {
    return "lower the sizes of the layer's input, its kernel or its outputs";
  }
  const int64_t items = block.shape.Rank() > 0 ? std::max<int64_t>(block.shape[0], 1) : 1;
  if (items > 1 && block.bytes / static_cast<size_t>(items) <= physical) {
    return "lower batch_size or the sizes that it is made of";
  }
  return "lower the sizes that it is made of; one item of the batch alone is too large";
}

Part LargestBlock(const Graph& graph, size_t physical) {
  Part largest;
  for (const BlockId id : graph.blocks.Ids()) {
    const Block& block = graph.blocks[id];
    if (block.bytes <= largest.bytes) continue;
    largest = {OwnerOf(id, graph), block.name, AdviceFor(block, physical), block.bytes};
  }
  return largest;
}

Part LargestParam(const Graph& graph) {
  Part largest;
  for (const StepInfo& step : graph.steps) {
    for (const Param* param : step.params()) {
      const size_t bytes = static_cast<size_t>(param->count()) * sizeof(float);
      if (bytes <= largest.bytes) continue;
      largest = {&step, Join("parameter ", param->index, " of shape ", param->shape.ToString()),
                 "lower num_output or the size of the layer's input; batch_size changes nothing "
                 "here",
                 bytes};
    }
  }
  return largest;
}

}  // namespace

void RequireFit(const Graph& graph, const NetOptions& options, const Device& device,
                size_t weight_bytes) {
  const auto physical =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t weights = weight_bytes * (options.training ? 2 : 1);  // and their gradients
  if (device.kind() != DeviceKind::kCpu || graph.plan.arena_bytes + weights <= physical) return;
  const Part block = LargestBlock(graph, physical), param = LargestParam(graph);
  const bool of_weights = param.bytes > block.bytes;
  const Part& largest = of_weights ? param : block;
  const std::string message =
      Join(of_weights ? "the net's weights take " : "the net's values take ",
           (of_weights ? weights : graph.plan.arena_bytes) >> 20, " MiB and this machine has ",
           physical >> 20, "; the largest is ", largest.what, " (", largest.bytes >> 20,
           " MiB): ", largest.advice);
  if (largest.step == nullptr) throw Error(ErrorCode::kConfig, message);
  largest.step->spec.Fail(message);
}

}  // namespace trainer
