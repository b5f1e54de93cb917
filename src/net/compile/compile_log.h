#pragma once
// The log lines about compiling a net: with LogsDetails the lines of Caffe's net.cpp with their
// text unchanged, else one line.

#include <string>
#include <vector>

#include "trainer/base/log/log.h"
#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// Writes Caffe's start-up lines of a net to the log.
class CompileLog {
 public:
  explicit CompileLog(bool on) : on_(on && LogsDetails()), sums_up_(on && !LogsDetails()) {}

  // Logs why layers are left out of this phase.
  void Rules(const NetSpec& spec, const caffe::NetState& state) const;
  // Logs the net as it is built for this state: its text in the detailed log.
  void Start(const std::string& name, const std::vector<LayerSpec>& layers,
             const caffe::NetState& state) const;
  // Logs the inputs, outputs and shapes of each layer; only in the detailed log.
  void Layers(const Graph& graph) const;
  // Logs for each layer, last first, whether it needs a backward pass; only in the detailed log.
  void BackwardLayers(const Graph& graph) const;
  // Logs one line about the net, or in the detailed log its outputs and its memory.
  void End(const Net& net, const caffe::NetState& state) const;

 private:
  bool on_, sums_up_;
};

}  // namespace trainer
