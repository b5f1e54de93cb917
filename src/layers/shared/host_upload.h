#pragma once
// Copies numbers that a layer computes on the host in each pass to the device, without waiting for
// the computations that precede their use.

#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

class HostUpload {
 public:
  // Called in Prepare. `bytes` is the size of the numbers of one pass.
  void Prepare(const Device& device, size_t bytes);

  // Returns host memory for the next numbers. Waits until the numbers of the last pass are copied.
  // Allocates the memory in the first pass.
  std::span<std::byte> Host();
  // Queues the copy of `bytes` from `offset` on. Computations that were queued before may still use
  // the memory at `to`; computations that are queued later see the numbers.
  void Send(void* to, size_t offset, size_t bytes);

 private:
  std::pmr::memory_resource* memory_ = nullptr;
  size_t bytes_ = 0;
  std::unique_ptr<std::pmr::vector<std::byte>> host_;
  std::unique_ptr<CopyStream> copies_;  // last, so that it ends before the memory does
};

}  // namespace trainer
