#include "shared/host_upload.h"

namespace trainer {

void HostUpload::Prepare(const Device& device, size_t bytes) {
  copies_ = device.NewCopyStream();  // a previous stream finishes with the memory first
  if (host_ != nullptr && host_->size() < bytes) host_ = nullptr;
  memory_ = &device.PinnedMemory();
  bytes_ = bytes;
}

std::span<std::byte> HostUpload::Host() {
  if (host_ == nullptr) host_ = std::make_unique<std::pmr::vector<std::byte>>(bytes_, memory_);
  copies_->WaitForCopies();
  return *host_;
}

void HostUpload::Send(void* to, size_t offset, size_t bytes) {
  if (bytes == 0) return;
  // Computations that were queued before may still read the memory at `to`.
  copies_->CopiesWaitForCompute();
  copies_->CopyToDevice(to, host_->data() + offset, bytes);
  copies_->ComputeWaitsForCopies();
}

}  // namespace trainer
