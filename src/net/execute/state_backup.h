#pragma once

#include "execute/bindings.h"

namespace trainer {

// A copy of the states of all layers before a pass, so that the pass can be repeated.
class StateBackup {
 public:
  StateBackup(const Graph& graph, const Bindings& bindings, const Device& device);
  ~StateBackup();
  StateBackup(const StateBackup&) = delete;
  StateBackup& operator=(const StateBackup&) = delete;

  void Save() const { Copy(false); }
  void Restore() const { Copy(true); }
  // The copy of one layer's state.
  std::span<std::byte> Of(NodeId node) const;

 private:
  void Copy(bool back) const;

  const Graph& graph_;
  const Bindings& bindings_;
  const Device& device_;
  std::byte* memory_ = nullptr;  // all states, concatenated
};

}  // namespace trainer
