#pragma once

namespace trainer {

// Interface of layers whose Forward works on the host in each pass: it reads a batch, draws numbers
// there, reads results of the device, or calls the device differently than in the previous pass. A
// CUDA graph cannot record that, so such a Forward is called in each pass.
class WorksOnHost {
 public:
  virtual ~WorksOnHost() = default;
};

}  // namespace trainer
