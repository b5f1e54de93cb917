#include "upload.h"

namespace trainer {

void Upload::Prepare(const Device& device, size_t bytes) {
  copies_ = device.MakeCopyQueue();
  host_ = {nullptr, Giving{&device.HostMemory(), bytes}};
}

std::span<std::byte> Upload::Host() {
  const auto& [memory, bytes] = host_.get_deleter();
  if (host_ == nullptr) host_.reset(static_cast<std::byte*>(memory->allocate(bytes)));
  copies_->WaitForCopies();
  return {host_.get(), bytes};
}

void Upload::Send(void* to, size_t offset, size_t bytes) {
  if (bytes == 0) return;
  copies_->CopyAfterComputations();
  copies_->CopyToDevice(to, host_.get() + offset, bytes);
  copies_->ComputeAfterCopies();
}

}  // namespace trainer
