#pragma once

#include "trainer/layers/run_context.h"

namespace trainer {

// What a layer also is that writes a file of its own at every snapshot, where FileWriter lets it.
class WritesAtSnapshots {
 public:
  virtual ~WritesAtSnapshots() = default;
  // After iteration `iter`; `run` is that of the layer's forward pass, between passes. Throws what
  // writing a file throws.
  virtual void WriteAtSnapshot(const RunContext& run, int iter) = 0;
};

}  // namespace trainer
