#pragma once

#include "trainer/layers/run_context.h"

namespace trainer {

// Interface of layers that write a file of their own at every snapshot, if FileWriter permits it.
class WritesAtSnapshots {
 public:
  virtual ~WritesAtSnapshots() = default;
  // Called after iteration `iter`, between passes; `run` is the context of the layer's forward
  // pass. Throws the errors of writing a file.
  virtual void WriteAtSnapshot(const RunContext& run, int iter) = 0;
};

}  // namespace trainer
