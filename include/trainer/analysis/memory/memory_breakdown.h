#pragma once
// The memory of a run and of its nets, value by value, as `trainer plan` shows it.

#include <string>
#include <vector>

#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/base/text/json.h"
#include "trainer/net/graph.h"

namespace trainer {

// The memory plan of one net.
struct NetMemory {
  std::string title;                // "training net"
  std::string name;                 // of the net
  std::vector<std::string> layers;  // their names, in forward order
  MemoryPlan plan;
};
// Copies the memory plan of a compiled net.
NetMemory MemoryOf(const std::string& title, const Graph& graph);

// Returns one line of at most kColumns columns, if the title is short: the step that needs the most
// memory, and the values that are in use in that step, the largest first: "training net: peak at
// pool1, 3.88 MiB: conv1 2.81 MiB, ...".
std::string PeakText(const NetMemory& net);
// Returns a table of all values with offset, bytes and lifetime, and the values in use at the peak.
std::string ToText(const NetMemory& net);
// Returns all buffers with sizes and lifetimes, and the peak with its step and its largest parts.
Json ToJson(const NetMemory& net);

// The memory of a run, or of one net.
struct MemoryBreakdown {
  std::vector<NetMemory> nets;
  MemoryRoom room;
  std::vector<MemoryItem> items;
  MemoryFit fit;
};
// Plans the run on `device`, whose memory is the room's. `activation_budget_bytes` is the budget of
// NetOptions for the training net. Throws as Compile does.
MemoryBreakdown BreakDownMemory(const SolverSpec& spec, const Device& device,
                                const MemoryRoom& room, BufferReuse memory,
                                size_t activation_budget_bytes);
// Plans one net alone, for training if the phase of `state` is TRAIN.
MemoryBreakdown BreakDownMemory(const NetSpec& spec, const caffe::NetState& state,
                                const Device& device, const MemoryRoom& room, BufferReuse memory);

// Returns whether the run fits, the memory by kind, and for each net PeakText, or ToText if
// `verbose`.
std::string ToText(const MemoryBreakdown& breakdown, bool verbose);
// Returns the plans of the nets, the bytes by kind and, if the room has a limit, whether they fit.
Json ToJson(const MemoryBreakdown& breakdown);

}  // namespace trainer
