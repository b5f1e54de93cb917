#pragma once
// The lines about a net that is built: Caffe's, whose meaning is that of its net.cpp and whose text
// stays as it is, where LogsDetails; else one.

#include <string>
#include <vector>

#include "trainer/base/log/log.h"
#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

class CompileLog {
 public:
  explicit CompileLog(bool on) : on_(on && LogsDetails()), sums_up_(on && !LogsDetails()) {}

  // Why a layer is left out of this phase.
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
