#pragma once
// Summarizes a net: its layers with their outputs, parameters, work and memory.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/config/net_spec.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// The layers of a planned net, in forward order.
struct NetSummary {
  struct Output {
    std::string name;
    Shape shape;
    DType dtype = DType::kF32;
    bool in_place = false;  // the layer overwrites its input
  };
  struct Layer {
    std::string name, type;
    std::vector<Output> outputs;
    int64_t params = 0;  // that the layer owns
    int64_t macs = 0;    // multiply-adds of a forward pass
    size_t bytes = 0;    // of all outputs, if they did not share memory
  };
  std::string net;
  std::vector<Layer> layers;
  size_t arena_bytes = 0;  // of all values and scratch, which share memory
};

// Plans the net for `state` without allocating its memory. Its databases must exist, because data
// layers take their shapes from them.
NetSummary SummarizeNet(const NetSpec& spec, const caffe::NetState& state);

// Returns a table with a row per layer and the sums.
std::string ToText(const NetSummary& summary);
// Returns the same for programs; "flop" is twice the number of multiply-adds.
Json ToJson(const NetSummary& summary);

}  // namespace trainer
