#pragma once
// Batches on their way to the device while it computes on the one before.

#include <memory>
#include <vector>

#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/input/batch_queue.h"
#include "trainer/layers/layer.h"

namespace trainer {

// The device's memory for one batch as the host holds it, and the queue that fills it. From Unpack
// on, the memory is free for the next batch as soon as the device has come that far.
class BatchUpload {
 public:
  // For the batches of `prefetcher`.
  BatchUpload(const Device& device, const BatchQueue& prefetcher);

  // Of the layer's staging memory.
  size_t Bytes() const { return layout_.Bytes(); }

  // Queues the copies of a part of a batch, which must hold still until WaitForCopies returned.
  void Send(const Batch& batch, int part, std::span<std::byte> staging);
  // Queues what makes the pass's outputs of the batch that was sent.
  void Unpack(const RunContext& run);
  void WaitForCopies() { copies_->WaitForCopies(); }

 private:
  const Normalization* numbers_;  // null: batches hold numbers
  std::vector<Shape> shapes_;     // of a part
  ScratchLayout layout_;
  ScratchRegion<uint8_t> pixels_;
  ScratchRegion<CropOffset> windows_;
  ScratchRegion<float> shares_;                // of images that are mixed
  std::vector<ScratchRegion<float>> outputs_;  // 0 unused where pixels stand for it
  std::unique_ptr<CopyStream> copies_;
  bool first_ = true;
};

}  // namespace trainer
