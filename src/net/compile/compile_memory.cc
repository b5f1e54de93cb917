// Refuses a net that needs more memory than the device has, before allocating anything. The error
// contains the demand, the limit and the layer that needs the most.

#include <algorithm>
#include <string>

#include "compile/build.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"
#include "trainer/net/packed_weights.h"

namespace trainer {
namespace {

// The memory of one value, scratch area or parameter.
struct Part {
  const Node* node = nullptr;  // the layer that needs it
  std::string what, advice;
  size_t bytes = 0;
};

// The bytes that the net needs in addition to what the run has allocated.
struct MemoryDemand {
  size_t values = 0, upload = 0, weights = 0, gradients = 0, rule = 0, copies = 0;
  size_t Sum() const { return values + upload + weights + gradients + rule + copies; }
};

MemoryDemand DemandOf(const Graph& graph, const Device& device, const ParamStore& params) {
  MemoryDemand demand;
  for (const Buffer& buffer : graph.memory.buffers) {
    if (buffer.kind == BufferKind::kUpload) demand.upload += buffer.bytes;
  }
  const auto slots = static_cast<size_t>(graph.options.activation_slots);
  demand.upload *= slots;
  demand.values = graph.memory.arena_bytes * slots - demand.upload;
  demand.weights = params.RequiredBytes() - params.WeightBytes();
  if (!graph.options.training) return demand;
  demand.gradients = demand.weights;
  demand.rule = demand.weights * static_cast<size_t>(graph.options.states_per_weight);
  if (device.IsAsync()) demand.copies = PackedWeightBytes(graph);
  return demand;
}

const Node* OwnerOf(BufferId buffer, const Graph& graph) {
  for (const Value& value : graph.values) {
    if (value.buffer == buffer || value.grad_buffer == buffer || value.backward_buffer == buffer) {
      return &graph.nodes[value.producer];
    }
  }
  for (const Node& node : graph.nodes) {
    for (const BufferId own : {node.scratch, node.backward_scratch, node.workspace, node.state,
                               node.constants, node.upload}) {
      if (own == buffer) return &node;
    }
  }
  return nullptr;
}

// Returns how the user can make a buffer smaller. A smaller batch helps only if one item of it
// fits.
std::string AdviceFor(const Buffer& buffer, const MemoryDemand& demand, size_t free) {
  if (buffer.kind != BufferKind::kActivation && buffer.kind != BufferKind::kGradient) {
    return "make the layer's input, its kernel or its outputs smaller";
  }
  const int64_t items = buffer.shape.Rank() > 0 ? std::max<int64_t>(buffer.shape[0], 1) : 1;
  if (items == 1 || buffer.bytes / static_cast<size_t>(items) > free) {
    return "make the layer's sizes smaller, because one item of the batch alone is too large";
  }
  // This is an estimate: it assumes that all values grow in proportion to the batch.
  const size_t batch = demand.values + demand.upload, others = demand.Sum() - batch;
  const double share =
      free > others ? static_cast<double>(free - others) / static_cast<double>(batch) : 0;
  const auto fits = static_cast<int64_t>(share * static_cast<double>(items));
  return Join("lower batch_size or make the layer's sizes smaller",
              fits > 0 ? Join("; of its ", items, " items about ", fits, " would fit") : "");
}

std::string MiB(size_t bytes) { return Join((bytes + (1 << 20) - 1) >> 20, " MiB"); }

// Returns the largest buffers, in decreasing size.
std::vector<Part> LargestBlocks(const Graph& graph, const MemoryDemand& demand, size_t free) {
  constexpr size_t kShown = 3;
  std::vector<BufferId> order;
  for (const BufferId id : graph.memory.buffers.Ids()) order.push_back(id);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](BufferId id) { return graph.memory.buffers[id].bytes; });
  std::vector<Part> parts;
  for (const BufferId id : order) {
    if (parts.size() == kShown) break;
    const Buffer& buffer = graph.memory.buffers[id];
    parts.push_back(
        {OwnerOf(id, graph), buffer.name, AdviceFor(buffer, demand, free), buffer.bytes});
  }
  return parts;
}

Part LargestParam(const Graph& graph) {
  Part largest;
  for (const Node& node : graph.nodes) {
    for (const Param* param : node.params) {
      const size_t bytes = static_cast<size_t>(param->count()) * sizeof(float);
      if (bytes <= largest.bytes) continue;
      largest = {
          &node, Join("parameter ", param->index, " of shape ", param->shape.ToString()),
          "lower num_output or make the layer's input smaller; batch_size has no effect here",
          bytes};
    }
  }
  return largest;
}

// Returns "values 90 MiB (the largest: conv1 40 MiB, data 20 MiB), weights 30 MiB, their gradients
// 30 MiB".
std::string Holders(const MemoryDemand& demand, const std::vector<Part>& blocks) {
  std::vector<std::string> largest;
  for (const Part& part : blocks) largest.push_back(Join(part.what, " ", MiB(part.bytes)));
  std::vector<std::string> holders = {
      Join("values ", MiB(demand.values), " (the largest: ", JoinList(largest), ")")};
  const auto add = [&](const char* what, size_t bytes) {
    if (bytes > 0) holders.push_back(Join(what, " ", MiB(bytes)));
  };
  add("batches in transfer", demand.upload);
  add("weights", demand.weights);
  add("their gradients", demand.gradients);
  add("the update rule's state", demand.rule);
  add("copies of weights in the layout of the layers", demand.copies);
  return JoinList(holders);
}

// No machine has 32 TiB, so a net that needs more has an error in its sizes.
ErrorCode CodeFor(size_t needed) {
  constexpr size_t kMaxOfAnyMachine = size_t{32} << 40;
  return needed > kMaxOfAnyMachine ? ErrorCode::kConfig : ErrorCode::kResource;
}

}  // namespace

void RequireDeviceMemory(const Graph& graph, const Device& device, const ParamStore& params,
                         const AvailableMemory& available) {
  const MemoryDemand demand = DemandOf(graph, device, params);
  const size_t free = available.bytes;
  if (demand.Sum() <= free) return;
  const std::vector<Part> blocks = LargestBlocks(graph, demand, free);
  const Part param = LargestParam(graph);
  const Part& largest = blocks.empty() || param.bytes > blocks[0].bytes ? param : blocks[0];
  const std::string message =
      Join("the net needs ", MiB(demand.Sum()), ", but ", available.limit, " has ", MiB(free), ": ",
           Holders(demand, blocks), "; this layer needs the largest part, ", largest.what, " (",
           MiB(largest.bytes), "): ", largest.advice);
  const ErrorCode code = CodeFor(demand.Sum());
  if (largest.node == nullptr) throw Error(code, message);
  largest.node->spec.FailWith(code, message);
}

}  // namespace trainer
