#pragma once
// The device that tests compute on: the CPU or, with TRAINER_TEST_DEVICE=gpu in the environment, a
// GPU, which is emulated if the program was built for that. Also helpers to access its memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

bool TestsOnGpu();
// Returns the types that the device stores: f32 and bf16, and on a GPU also f16.
std::vector<DType> StoredTypes();
// Returns how far a result in storage of `type` may be off: f16 keeps three bits more than bf16.
inline float BoundOf(DType type, float f32, float bf16) {
  return type == DType::kF32 ? f32 : type == DType::kBF16 ? bf16 : std::max(f32, bf16 / 8);
}

// Creates the device; `threads` is for a CPU. On an emulated GPU, each problem during a test fails
// the test.
std::unique_ptr<Device> MakeTestDevice(int threads = 2);

// Skips a test that is only about the CPU: its threads, its instructions, its own kernels.
#define TRAINER_CPU_ONLY(reason) \
  if (::trainer::TestsOnGpu()) GTEST_SKIP() << "about the CPU alone: " << (reason)

// Reads `count` floats of the device in the order of its memory, or writes them.
std::vector<float> ReadFloats(const Device& device, const float* from, int64_t count);
void WriteFloats(const Device& device, std::span<const float> values, float* to);

// Reads the weight or the gradient of a parameter in the same order.
template <class P>
std::vector<float> WeightOf(const Device& device, const P& param) {
  return ReadFloats(device, param.weight, param.count());
}
template <class P>
std::vector<float> GradOf(const Device& device, const P& param) {
  return ReadFloats(device, param.grad, param.count());
}

// An array on the device that starts with values of the host and is freed with its owner.
template <class T>
class OnDevice {
 public:
  OnDevice(const Device& device, std::span<const T> values)
      : device_(&device), count_(values.size()), data_(Allocate()) {
    device.CopyToDevice(data_.get(), values.data(), values.size_bytes());
  }
  OnDevice(const Device& device, const std::vector<T>& values)
      : OnDevice(device, std::span<const T>(values)) {}
  OnDevice(const Device& device, size_t count) : OnDevice(device, std::vector<T>(count)) {}

  T* data() const { return static_cast<T*>(data_.get()); }
  size_t size() const { return count_; }
  std::span<T> span() const { return {data(), count_}; }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    device_->CopyToHost(values.data(), data(), count_ * sizeof(T));
    return values;
  }
  void Write(std::span<const T> values) const {
    device_->CopyToDevice(data(), values.data(), values.size_bytes());
  }

 private:
  struct Free {
    const Device* device;
    void operator()(void* memory) const { device->Free(memory); }
  };
  std::unique_ptr<void, Free> Allocate() {
    return {device_->Allocate(std::max<size_t>(1, count_) * sizeof(T)), Free{device_}};
  }

  const Device* device_;
  size_t count_;
  std::unique_ptr<void, Free> data_;
};

}  // namespace trainer
