#pragma once
// The log lines about compiling a net: with LogsDetails the lines of Caffe's net.cpp with their
// text unchanged, else one line.

#include <string>
#include <vector>

#include "trainer/base/log/log.h"
#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

class CompileLog {
 public:
  explicit CompileLog(bool on) : on_(on && LogsDetails()), sums_up_(on && !LogsDetails()) {}

  // Logs why layers are left out of this phase.
  void Rules(const NetSpec& spec, const caffe::NetState& state) const;
  void Start(const std::string& name, const std::vector<LayerSpec>& layers,
             const caffe::NetState& state) const;
  void Layers(const Graph& graph) const;
  void Gradients(const Graph& graph) const;
  void End(const Net& net, const caffe::NetState& state) const;

 private:
  bool on_, sums_up_;
};

}  // namespace trainer
