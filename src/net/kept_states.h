#pragma once

#include "program.h"

namespace trainer {

// The states of all layers as they were before a pass, so that the pass can be repeated.
class KeptStates {
 public:
  KeptStates(const Graph& graph, const Program& program, const Device& device);
  ~KeptStates();
  KeptStates(const KeptStates&) = delete;
  KeptStates& operator=(const KeptStates&) = delete;

  void Save() const { Copy(false); }
  void Restore() const { Copy(true); }

 private:
  void Copy(bool back) const;

  const Graph& graph_;
  const Program& program_;
  const Device& device_;
  std::byte* memory_ = nullptr;  // one after the other
};

}  // namespace trainer
