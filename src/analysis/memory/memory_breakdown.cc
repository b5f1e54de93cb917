#include "trainer/analysis/memory/memory_breakdown.h"

#include <algorithm>
#include <map>
#include <utility>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"

namespace trainer {
namespace {

// Returns "conv1" for a forward step, "conv1 back" for a backward one, and "the end" for later
// steps. With n layers, the backward step of layer i is 2 n - 1 - i.
std::string StepName(const NetMemory& net, int step) {
  const int layers = static_cast<int>(net.layers.size());
  if (step < layers) return net.layers[static_cast<size_t>(step)];
  const int backward = 2 * layers - 1 - step;
  return backward < 0 ? "the end" : net.layers[static_cast<size_t>(backward)] + " back";
}

// Returns the name of a kind of buffer in texts and JSON.
const char* ValueName(BufferKind kind) {
  switch (kind) {
    case BufferKind::kGradient:
      return "gradients";
    case BufferKind::kWorkspace:
      return "workspace";
    case BufferKind::kConstants:
      return "constants";
    case BufferKind::kState:
      return "state";
    case BufferKind::kUpload:
      return "staging";
    case BufferKind::kScratch:
      return "scratch";
    default:
      return "values";
  }
}

// The step in which the most bytes are in use, and the buffers in use in it, the largest first.
struct MemoryPeak {
  int step = 0;
  size_t bytes = 0;
  std::vector<const Buffer*> holders;
};

// Adds up the bytes that begin and end to be in use in each step. The first of several equal peaks
// counts.
MemoryPeak PeakOf(const MemoryPlan& plan) {
  std::map<int, int64_t> changes;
  for (const Buffer& block : plan.buffers) {
    changes[block.first_use] += static_cast<int64_t>(block.bytes);
    changes[block.last_use + 1] -= static_cast<int64_t>(block.bytes);
  }
  MemoryPeak peak;
  int64_t bytes = 0;
  for (const auto& [step, change] : changes) {
    bytes += change;
    if (bytes <= static_cast<int64_t>(peak.bytes)) continue;
    peak.bytes = static_cast<size_t>(bytes);
    peak.step = step;
  }
  for (const Buffer& block : plan.buffers) {
    if (block.first_use <= peak.step && peak.step <= block.last_use) peak.holders.push_back(&block);
  }
  std::ranges::stable_sort(peak.holders, std::ranges::greater(), &Buffer::bytes);
  return peak;
}

// Returns the bytes in use at the peak by ValueName.
std::map<std::string, size_t> BytesByKind(const MemoryPeak& peak) {
  std::map<std::string, size_t> bytes;
  for (const Buffer* block : peak.holders) bytes[ValueName(block->kind)] += block->bytes;
  return bytes;
}

// Returns the shape; "" for a buffer without one, such as a workspace.
std::string ShapeText(const Buffer& block) {
  return block.shape.Rank() == 0 ? "" : block.shape.ToString();
}

// Returns the bytes at the peak by kind, and a table of the ten largest values in use then.
std::string PeakTable(const NetMemory& net) {
  constexpr size_t kShown = 10;
  const MemoryPeak peak = PeakOf(net.plan);
  std::string text =
      Join("peak: ", Bytes(peak.bytes), " in use at ", StepName(net, peak.step), ", by");
  const char* comma = " ";
  for (const auto& [kind, bytes] : BytesByKind(peak)) {
    text += Join(comma, kind, " ", Bytes(bytes));
    comma = ", ";
  }
  Table table({"held at the peak", "bytes", "shape", "until"});
  for (size_t i = 0; i < std::min(kShown, peak.holders.size()); ++i) {
    const Buffer& block = *peak.holders[i];
    table.Add({block.name, Join(block.bytes), ShapeText(block), StepName(net, block.last_use)});
  }
  return Join(text, "\n\n", table.ToString(), "\n");
}

Json BlockJson(const NetMemory& net, const Buffer& block) {
  Json shape = Json::Array();
  for (const int64_t length : block.shape.dims()) shape.Push(length);
  return Json::Object()
      .Set("name", block.name)
      .Set("kind", ValueName(block.kind))
      .Set("shape", shape)
      .Set("bytes", block.bytes)
      .Set("offset", block.offset)
      .Set("from", StepName(net, block.first_use))
      .Set("to", StepName(net, block.last_use))
      .Set("note", block.note);
}

}  // namespace

NetMemory MemoryOf(const std::string& title, const Graph& graph) {
  NetMemory memory = {.title = title, .name = graph.name, .layers = {}, .plan = graph.memory};
  for (const Node& node : graph.nodes) memory.layers.push_back(node.spec.name());
  return memory;
}

std::string PeakText(const NetMemory& net) {
  const MemoryPeak peak = PeakOf(net.plan);
  const int again = CountRecomputed(net.plan);
  const std::string end =
      again > 0 ? Join("; ", again, again == 1 ? " output" : " outputs", " computed again") : "";
  std::string text =
      Join(net.title, ": peak at ", StepName(net, peak.step), ", ", Bytes(peak.bytes));
  const char* separator = ": ";
  for (const Buffer* block : peak.holders) {
    constexpr std::string_view kMore = ", ...";
    const std::string holder = Join(separator, block->name, " ", Bytes(block->bytes));
    if (text.size() + holder.size() + kMore.size() + end.size() > kColumns) {
      text += kMore;
      break;
    }
    text += holder;
    separator = ", ";
  }
  return text + end + "\n";
}

std::string ToText(const NetMemory& net) {
  Table table({"offset", "bytes", "value", "shape", "from", "to", "note"});
  table.LeaveOut({"note", "shape", "offset"});
  for (const Buffer& block : net.plan.buffers) {
    table.Add({Join(block.offset), Join(block.bytes), block.name, ShapeText(block),
               StepName(net, block.first_use), StepName(net, block.last_use), block.note});
  }
  return Join(net.title, ": ", net.name, ", ", net.layers.size(), " layers\n\n", table.ToString(),
              "\n", PeakTable(net), "values and scratch: ", Bytes(net.plan.arena_bytes), " (",
              net.plan.arena_bytes, " bytes), ", Bytes(net.plan.unshared_bytes),
              " without sharing\n\n");
}

Json ToJson(const NetMemory& net) {
  const MemoryPeak peak = PeakOf(net.plan);
  Json blocks = Json::Array(), holders = Json::Array(), kinds = Json::Object();
  for (const Buffer& block : net.plan.buffers) blocks.Push(BlockJson(net, block));
  for (const Buffer* block : peak.holders) holders.Push(block->name);
  for (const auto& [kind, bytes] : BytesByKind(peak)) kinds.Set(kind, bytes);
  return Json::Object()
      .Set("net", net.title)
      .Set("name", net.name)
      .Set("arena_bytes", net.plan.arena_bytes)
      .Set("separate_bytes", net.plan.unshared_bytes)
      .Set("peak", Json::Object()
                       .Set("step", StepName(net, peak.step))
                       .Set("bytes", peak.bytes)
                       .Set("by_kind", kinds)
                       .Set("holders", holders))
      .Set("blocks", blocks);
}

MemoryBreakdown BreakDownMemory(const SolverSpec& spec, const Device& device,
                                const MemoryRoom& room, BufferReuse memory,
                                size_t activation_budget_bytes) {
  MemoryBreakdown breakdown;
  MemoryEstimator estimator(device, memory, [&](const std::string& title, const Graph& graph) {
    breakdown.nets.push_back(MemoryOf(title, graph));
  });
  const MemoryEstimate estimate = estimator.Estimate(spec, activation_budget_bytes);
  breakdown.room = room;
  breakdown.items = estimate.Items(room);
  breakdown.fit = CheckFit(breakdown.items, room, estimate.batch);
  return breakdown;
}

MemoryBreakdown BreakDownMemory(const NetSpec& spec, const caffe::NetState& state,
                                const Device& device, const MemoryRoom& room, BufferReuse memory) {
  const bool trains = state.phase() == caffe::TRAIN;
  ParamStore params(device);
  const std::unique_ptr<const Graph> graph = Compile(
      spec, {.state = state, .training = trains, .memory = memory, .log = false}, device, params);
  const MemoryEstimate estimate = EstimateMemory(*graph, params);
  MemoryBreakdown breakdown;
  breakdown.nets.push_back(MemoryOf(trains ? "net, phase TRAIN" : "net, phase TEST", *graph));
  breakdown.room = room;
  breakdown.items = estimate.Items(room);
  breakdown.fit = CheckFit(breakdown.items, room, estimate.batch);
  return breakdown;
}

std::string ToText(const MemoryBreakdown& breakdown, bool verbose) {
  std::string details, peaks;
  for (const NetMemory& net : breakdown.nets) {
    verbose ? details += ToText(net) : peaks += PeakText(net);
  }
  std::string text =
      Join(details, Wrap(ToText(breakdown.fit), 4), "\n", ToText(breakdown.items), peaks);
  if (!breakdown.room.estimated) return text;
  return Join(text,
              Wrap("No GPU was used, so the scratch memory of cuDNN's convolutions (part of the "
                   "values) is an estimate.",
                   4),
              "\n");
}

Json ToJson(const MemoryBreakdown& breakdown) {
  Json nets = Json::Array();
  for (const NetMemory& net : breakdown.nets) nets.Push(ToJson(net));
  Json json = Json::Object().Set("nets", std::move(nets)).Set("bytes", ToJson(breakdown.items));
  if (breakdown.room.gpu) json.Set("estimated", breakdown.room.estimated);
  if (breakdown.room.bytes > 0) json.Set("fit", ToJson(breakdown.fit));
  return json;
}

}  // namespace trainer
