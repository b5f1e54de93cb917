#include "net_plan.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// "conv1" for a forward step, "conv1 back" for a backward one.
std::string StepName(const Net& net, int step) {
  const int layers = net.NumLayers();
  if (step < layers) return net.LayerAt(step).name();
  const int backward = 2 * layers - 1 - step;
  return backward < 0 ? "the end" : net.LayerAt(backward).name() + " back";
}

const char* ValueName(BlockKind kind) {
  switch (kind) {
    case BlockKind::kGradient:
      return "gradients";
    case BlockKind::kWorkspace:
      return "workspace";
    case BlockKind::kConstants:
      return "constants";
    case BlockKind::kState:
      return "state";
    case BlockKind::kStaging:
      return "staging";
    case BlockKind::kScratch:
      return "scratch";
    default:
      return "values";
  }
}

// The step in which the most bytes are in use, and by which blocks, the largest first.
struct MemoryPeak {
  int step = 0;
  size_t bytes = 0;
  std::vector<const PlannedBlock*> holders;
};

MemoryPeak PeakOf(const MemoryPlan& plan) {
  std::map<int, int64_t> changes;
  for (const PlannedBlock& block : plan.blocks) {
    changes[block.first] += static_cast<int64_t>(block.bytes);
    changes[block.last + 1] -= static_cast<int64_t>(block.bytes);
  }
  MemoryPeak peak;
  int64_t bytes = 0;
  for (const auto& [step, change] : changes) {
    bytes += change;
    if (bytes <= static_cast<int64_t>(peak.bytes)) continue;
    peak.bytes = static_cast<size_t>(bytes);
    peak.step = step;
  }
  for (const PlannedBlock& block : plan.blocks) {
    if (block.first <= peak.step && peak.step <= block.last) peak.holders.push_back(&block);
  }
  std::ranges::stable_sort(peak.holders, std::ranges::greater(), &PlannedBlock::bytes);
  return peak;
}

std::map<std::string, size_t> BytesByKind(const MemoryPeak& peak) {
  std::map<std::string, size_t> bytes;
  for (const PlannedBlock* block : peak.holders) bytes[ValueName(block->kind)] += block->bytes;
  return bytes;
}

void PrintPeak(const Net& net) {
  constexpr size_t kShown = 10;
  const MemoryPeak peak = PeakOf(net.memory_plan());
  std::cout << "peak: " << Bytes(peak.bytes) << " in use at " << StepName(net, peak.step) << ", by";
  const char* comma = " ";
  for (const auto& [kind, bytes] : BytesByKind(peak)) {
    std::cout << comma << kind << " " << Bytes(bytes);
    comma = ", ";
  }
  std::cout << "\n\n";
  Table table({"held at the peak", "bytes", "shape", "until"});
  for (size_t i = 0; i < std::min(kShown, peak.holders.size()); ++i) {
    const PlannedBlock& block = *peak.holders[i];
    table.Add({block.name, Join(block.bytes), block.shape.Rank() == 0 ? "" : block.shape.ToString(),
               StepName(net, block.last)});
  }
  std::cout << table.ToString() << "\n";
}

Json BlockJson(const Net& net, const PlannedBlock& block) {
  Json shape = Json::Array();
  for (const int64_t length : block.shape.dims()) shape.Push(length);
  return Json::Object()
      .Set("name", block.name)
      .Set("kind", ValueName(block.kind))
      .Set("shape", shape)
      .Set("bytes", block.bytes)
      .Set("offset", block.offset)
      .Set("from", StepName(net, block.first))
      .Set("to", StepName(net, block.last))
      .Set("note", block.note);
}

}  // namespace

std::string PeakLine(const std::string& title, const Net& net) {
  const MemoryPlan& plan = net.memory_plan();
  const MemoryPeak peak = PeakOf(plan);
  const auto again = std::ranges::count_if(plan.blocks, [](const PlannedBlock& block) {
    return block.kind == BlockKind::kValue && block.name.ends_with(" again");
  });
  const std::string end =
      again > 0 ? Join("; ", again, again == 1 ? " output" : " outputs", " computed again") : "";
  std::string text = Join(title, ": peak at ", StepName(net, peak.step), ", ", Bytes(peak.bytes));
  const char* separator = ": ";
  for (const PlannedBlock* block : peak.holders) {
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

void PrintNet(const std::string& title, const Net& net) {
  const MemoryPlan& plan = net.memory_plan();
  std::cout << title << ": " << net.name() << ", " << net.NumLayers() << " layers\n\n";
  Table table({"offset", "bytes", "value", "shape", "from", "to", "note"});
  table.LeaveOut({"note", "shape", "offset"});
  for (const PlannedBlock& block : plan.blocks) {
    table.Add({Join(block.offset), Join(block.bytes), block.name,
               block.shape.Rank() == 0 ? "" : block.shape.ToString(), StepName(net, block.first),
               StepName(net, block.last), block.note});
  }
  std::cout << table.ToString() << "\n";
  PrintPeak(net);
  std::cout << "values and scratch: " << Bytes(plan.arena_bytes) << " (" << plan.arena_bytes
            << " bytes), " << Bytes(plan.separate_bytes) << " without sharing\n\n";
}

Json NetJson(const std::string& title, const Net& net) {
  const MemoryPlan& plan = net.memory_plan();
  const MemoryPeak peak = PeakOf(plan);
  Json blocks = Json::Array(), holders = Json::Array(), kinds = Json::Object();
  for (const PlannedBlock& block : plan.blocks) blocks.Push(BlockJson(net, block));
  for (const PlannedBlock* block : peak.holders) holders.Push(block->name);
  for (const auto& [kind, bytes] : BytesByKind(peak)) kinds.Set(kind, bytes);
  return Json::Object()
      .Set("net", title)
      .Set("name", net.name())
      .Set("arena_bytes", plan.arena_bytes)
      .Set("separate_bytes", plan.separate_bytes)
      .Set("peak", Json::Object()
                       .Set("step", StepName(net, peak.step))
                       .Set("bytes", peak.bytes)
                       .Set("by_kind", kinds)
                       .Set("holders", holders))
      .Set("blocks", blocks);
}

}  // namespace trainer
