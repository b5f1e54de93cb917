#pragma once

#include <span>

#include "trainer/backend/device.h"

namespace trainer {

// An array of f32 on a device, zero at first, that goes with its owner.
class DeviceFloats {
 public:
  DeviceFloats(const Device& device, size_t count)
      : device_(&device), count_(count), data_(device.Allocate(count * sizeof(float)), {&device}) {
    Clear();
  }
  void Clear() { device_->Zero(data_.get(), count_ * sizeof(float)); }

  float* data() const { return static_cast<float*>(data_.get()); }
  size_t size() const { return count_; }
  std::span<float> span() const { return {data(), count_}; }

 private:
  struct Free {
    const Device* device;
    void operator()(void* block) const { device->Free(block); }
  };
  const Device* device_;
  size_t count_;
  std::unique_ptr<void, Free> data_;
};

}  // namespace trainer
