#include "trainer/backend/device/device.h"

#include <unistd.h>

#include <new>

#include "trainer/backend/memory/scratch_layout.h"

namespace trainer {
namespace {

// The heap, with blocks aligned to kMemoryAlign for any type.
class AlignedHeap final : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t) override {
    return ::operator new (bytes, std::align_val_t{kMemoryAlign});
  }
  void do_deallocate(void* memory, size_t, size_t) override {
    ::operator delete (memory, std::align_val_t{kMemoryAlign});
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// A CopyStream for devices whose calls are done when they return.
class DirectCopies final : public CopyStream {
 public:
  explicit DirectCopies(const Device& device) : device_(device) {}
  void CopyToDevice(void* to, const void* host, size_t bytes) override {
    device_.CopyToDevice(to, host, bytes);
  }
  void ComputeWaitsForCopies() override {}
  void CopiesWaitForCompute() override {}
  void WaitForCopies() override {}

 private:
  const Device& device_;
};

// The AsyncReadback for such devices.
class DirectRead final : public AsyncReadback {
 public:
  explicit DirectRead(const Device& device) : device_(device) {}
  void Start(void* host, const void* from, size_t bytes) override {
    device_.CopyToHost(host, from, bytes);
  }
  void Wait() override {}

 private:
  const Device& device_;
};

}  // namespace

size_t Device::AvailableBytes() const {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

std::pmr::memory_resource& Device::PinnedMemory() const {
  static AlignedHeap heap;
  return heap;
}

std::unique_ptr<CopyStream> Device::NewCopyStream() const {
  return std::make_unique<DirectCopies>(*this);
}

std::unique_ptr<AsyncReadback> Device::NewReadback() const {
  return std::make_unique<DirectRead>(*this);
}

bool Device::Supports(const ConvDesc&) const { return true; }
bool Device::Supports(const BatchNormDesc&) const { return true; }

}  // namespace trainer
