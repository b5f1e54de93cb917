#include "upload.h"

namespace trainer {

void Upload::Prepare(const Device& device, size_t bytes) {
  copies_ = device.MakeCopyQueue();  // the one before, if any, is done with the memory
  if (host_ != nullptr && host_->size() < bytes) host_ = nullptr;
  memory_ = &device.HostMemory();
  bytes_ = bytes;
}

std::span<std::byte> Upload::Host() {
  if (host_ == nullptr) host_ = std::make_unique<std::pmr::vector<std::byte>>(bytes_, memory_);
  copies_->WaitForCopies();
  return *host_;
}

void Upload::Send(void* to, size_t offset, size_t bytes) {
  if (bytes == 0) return;
  copies_->CopyAfterComputations();
  copies_->CopyToDevice(to, host_->data() + offset, bytes);
  copies_->ComputeAfterCopies();
}

}  // namespace trainer
