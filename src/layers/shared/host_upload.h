#pragma once
// Numbers that a layer makes on the host in each pass, on their way to the device: without a wait
// for what the device computes before it uses them.

#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

class HostUpload {
 public:
  // In Prepare. `bytes`: of the numbers of one pass.
  void Prepare(const Device& device, size_t bytes);

  // Memory of the host for the next numbers. Waits until those of the last pass are copied. Takes
  // the memory in the first pass.
  std::span<std::byte> Host();
  // Queues the copy of `bytes` from `offset` on, to memory that computations queued before may use;
  // those queued later see the numbers.
  void Send(void* to, size_t offset, size_t bytes);

 private:
  std::pmr::memory_resource* memory_ = nullptr;
  size_t bytes_ = 0;
  std::unique_ptr<std::pmr::vector<std::byte>> host_;
  std::unique_ptr<CopyStream> copies_;  // last: ends before the memory does
};

}  // namespace trainer
