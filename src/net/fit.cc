// A net that the device cannot hold is refused before anything is allocated: what it takes, what
// there is, and what takes most of it.

#include <algorithm>
#include <string>

#include "graph.h"
#include "trainer/base/process/host_memory.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Memory for one value, scratch or parameter, and whose it is.
struct Part {
  const StepInfo* step = nullptr;
  std::string what, advice;
  size_t bytes = 0;
};

// What the net adds to what the run has taken already, in bytes.
struct Needs {
  size_t values = 0, staging = 0, weights = 0, gradients = 0, rule = 0, copies = 0;
  size_t Sum() const { return values + staging + weights + gradients + rule + copies; }
};

Needs NeedsOf(const Graph& graph, const BuildEnv& env) {
  Needs needs;
  for (const Block& block : graph.blocks) {
    if (block.kind == BlockKind::kStaging) needs.staging += block.bytes;
  }
  const auto slots = static_cast<size_t>(env.options.slots);
  needs.staging *= slots;
  needs.values = graph.plan.arena_bytes * slots - needs.staging;
  needs.weights = env.params.PlannedBytes() - env.params.WeightBytes();
  if (!env.options.training) return needs;
  needs.gradients = needs.weights;
  needs.rule = needs.weights * static_cast<size_t>(env.options.states_per_weight);
  if (env.device.RunsLater()) needs.copies = WeightCopyBytes(graph);
  return needs;
}

const StepInfo* OwnerOf(BlockId block, const Graph& graph) {
  for (const ValueInfo& value : graph.values) {
    if (value.block == block || value.grad_block == block || value.backward_block == block) {
      return &graph.steps[value.writer];
    }
  }
  for (const StepInfo& step : graph.steps) {
    for (const BlockId own : {step.scratch, step.backward_scratch, step.workspace, step.state,
                              step.constants, step.staging}) {
      if (own == block) return &step;
    }
  }
  return nullptr;
}

// What would make a block smaller. A batch helps where one item of it fits.
std::string AdviceFor(const Block& block, const Needs& needs, size_t free) {
  if (block.kind != BlockKind::kValue && block.kind != BlockKind::kGradient) {
    return "make the layer's input, its kernel or its outputs smaller";
  }
  const int64_t items = block.shape.Rank() > 0 ? std::max<int64_t>(block.shape[0], 1) : 1;
  if (items == 1 || block.bytes / static_cast<size_t>(items) > free) {
    return "make the layer's sizes smaller, because one item of the batch alone is too large";
  }
  // As far as all values grow with the batch alike.
  const size_t batch = needs.values + needs.staging, others = needs.Sum() - batch;
  const double share =
      free > others ? static_cast<double>(free - others) / static_cast<double>(batch) : 0;
  const auto fits = static_cast<int64_t>(share * static_cast<double>(items));
  return Join("lower batch_size or make the layer's sizes smaller",
              fits > 0 ? Join("; of its ", items, " items about ", fits, " would fit") : "");
}

std::string MiB(size_t bytes) { return Join((bytes + (1 << 20) - 1) >> 20, " MiB"); }

// The largest blocks, largest first.
std::vector<Part> LargestBlocks(const Graph& graph, const Needs& needs, size_t free) {
  constexpr size_t kShown = 3;
  std::vector<BlockId> order;
  for (const BlockId id : graph.blocks.Ids()) order.push_back(id);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](BlockId id) { return graph.blocks[id].bytes; });
  std::vector<Part> parts;
  for (const BlockId id : order) {
    if (parts.size() == kShown) break;
    const Block& block = graph.blocks[id];
    parts.push_back({OwnerOf(id, graph), block.name, AdviceFor(block, needs, free), block.bytes});
  }
  return parts;
}

Part LargestParam(const Graph& graph) {
  Part largest;
  for (const StepInfo& step : graph.steps) {
    for (const Param* param : step.params()) {
      const size_t bytes = static_cast<size_t>(param->count()) * sizeof(float);
      if (bytes <= largest.bytes) continue;
      largest = {
          &step, Join("parameter ", param->index, " of shape ", param->shape.ToString()),
          "lower num_output or make the layer's input smaller; batch_size has no effect here",
          bytes};
    }
  }
  return largest;
}

// "values 90 MiB (the largest: conv1 40 MiB, data 20 MiB), weights 30 MiB, their gradients 30 MiB"
std::string Holders(const Needs& needs, const std::vector<Part>& blocks) {
  std::vector<std::string> largest;
  for (const Part& part : blocks) largest.push_back(Join(part.what, " ", MiB(part.bytes)));
  std::vector<std::string> holders = {
      Join("values ", MiB(needs.values), " (the largest: ", JoinList(largest), ")")};
  const auto add = [&](const char* what, size_t bytes) {
    if (bytes > 0) holders.push_back(Join(what, " ", MiB(bytes)));
  };
  add("batches in transfer", needs.staging);
  add("weights", needs.weights);
  add("their gradients", needs.gradients);
  add("the update rule's state", needs.rule);
  add("copies of weights in the layout of the layers", needs.copies);
  return JoinList(holders);
}

// What the net may take.
struct Room {
  size_t bytes = 0;
  std::string whose;
};

// Of a device of its own what other programs leave. On the CPU also what a queue, a container or a
// shell gave this process: whoever takes more is killed. A net that is only planned may be meant
// for another machine.
Room RoomOf(const BuildEnv& env) {
  const Room room = {env.device.FreeBytes(), Join("the device (", env.device.Describe(), ")")};
  if (env.device.RunsLater() || env.options.plan_only) return room;
  const HostMemory given = ReadHostMemory();
  if (given.total == 0 || given.total >= room.bytes) return room;
  return {given.total, given.limit};
}

// More than any machine has: the net is wrong there, and not the machine too small.
ErrorCode CodeFor(size_t needed) {
  constexpr size_t kMostOfAnyMachine = size_t{32} << 40;
  return needed > kMostOfAnyMachine ? ErrorCode::kConfig : ErrorCode::kResource;
}

}  // namespace

void RequireFit(const Graph& graph, const BuildEnv& env) {
  const Needs needs = NeedsOf(graph, env);
  const Room room = RoomOf(env);
  const size_t free = room.bytes;
  if (needs.Sum() <= free) return;
  const std::vector<Part> blocks = LargestBlocks(graph, needs, free);
  const Part param = LargestParam(graph);
  const Part& largest = blocks.empty() || param.bytes > blocks[0].bytes ? param : blocks[0];
  const std::string message =
      Join("the net needs ", MiB(needs.Sum()), ", but ", room.whose, " has ", MiB(free), ": ",
           Holders(needs, blocks), "; this layer needs the largest part, ", largest.what, " (",
           MiB(largest.bytes), "): ", largest.advice);
  const ErrorCode code = CodeFor(needs.Sum());
  if (largest.step == nullptr) throw Error(code, message);
  largest.step->spec.FailWith(code, message);
}

}  // namespace trainer
