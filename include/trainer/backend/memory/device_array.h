#pragma once

#include <memory>
#include <memory_resource>
#include <span>

#include "trainer/backend/device/device.h"

namespace trainer {

// Owns an array of f32 on a device, initialised with zeros. Takes the memory from `from` if that is
// not null, which needs a device that computes in host memory.
class DeviceFloats {
 public:
  // Allocates `count` floats and sets them to 0. Throws kResource if the device has no room.
  DeviceFloats(const Device& device, size_t count, std::pmr::memory_resource* from = nullptr)
      : device_(&device),
        count_(count),
        data_(from == nullptr ? device.Allocate(count * sizeof(float))
                              : from->allocate(count * sizeof(float), kAlignment),
              {&device, from, count * sizeof(float)}) {
    Clear();
  }
  // Sets all elements to 0.
  void Clear() { device_->Zero(data_.get(), count_ * sizeof(float)); }

  float* data() const { return static_cast<float*>(data_.get()); }
  size_t size() const { return count_; }
  std::span<float> span() const { return {data(), count_}; }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    const Device* device;
    std::pmr::memory_resource* from;
    size_t bytes;
    void operator()(void* block) const {
      from == nullptr ? device->Free(block) : from->deallocate(block, bytes, kAlignment);
    }
  };
  const Device* device_;
  size_t count_;
  std::unique_ptr<void, Free> data_;
};

}  // namespace trainer
