#pragma once
// The lines that log readers expect while a net is built. See Caffe's net.cpp for their meaning:
// tools key on the text, so it stays as it is.

#include <string>
#include <vector>

#include "graph.h"

namespace trainer {

class NetLog {
 public:
  explicit NetLog(bool on) : on_(on) {}

  // Why a layer is left out of this phase.
  void Rules(const NetSpec& spec, const caffe::NetState& state) const;
  void Start(const std::string& name, const std::vector<LayerSpec>& layers,
             const caffe::NetState& state) const;
  void Layers(const Graph& graph) const;
  void Gradients(const Graph& graph) const;
  void End(const Graph& graph, const std::vector<NetOutput>& outputs) const;

 private:
  bool on_;
};

}  // namespace trainer
