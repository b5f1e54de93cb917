#pragma once

namespace trainer {

// What a layer also is whose batches are read ahead, and whose reading may fail.
class AwaitsBatches {
 public:
  virtual ~AwaitsBatches() = default;
  // Waits until the batches of the next `passes` are there, or as many as are read ahead. Throws
  // what one of these passes would throw for want of its batch, before any of them has begun.
  virtual void AwaitBatches(int passes) = 0;
};

}  // namespace trainer
