#pragma once
// The device that tests compute on: the CPU or, with TRAINER_TEST_DEVICE=gpu in the environment, a
// GPU, which is emulated where the program was built for that. Its memory as the host may see it.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

bool TestsOnGpu();
// The types that it stores: f32 and bf16, on a GPU f16, too.
std::vector<DType> StoredTypes();
// How far a result in storage of `type` may be off: f16 keeps three bits more than bf16.
inline float BoundOf(DType type, float f32, float bf16) {
  return type == DType::kF32 ? f32 : type == DType::kBF16 ? bf16 : std::max(f32, bf16 / 8);
}

// `threads`: of a CPU. On an emulated GPU, whatever it had to say against a test fails that test.
std::unique_ptr<Device> MakeTestDevice(int threads = 2);

// Ends a test that is about the CPU alone: its threads, its instructions, its own kernels.
#define TRAINER_CPU_ONLY(reason) \
  if (::trainer::TestsOnGpu()) GTEST_SKIP() << "about the CPU alone: " << (reason)

// `count` floats of the device, in the order of its memory; the reverse.
std::vector<float> ReadFloats(const Device& device, const float* from, int64_t count);
void WriteFloats(const Device& device, std::span<const float> values, float* to);

// Of a parameter, likewise.
template <class P>
std::vector<float> WeightOf(const Device& device, const P& param) {
  return ReadFloats(device, param.weight, param.count());
}
template <class P>
std::vector<float> GradOf(const Device& device, const P& param) {
  return ReadFloats(device, param.grad, param.count());
}

// An array of the device that starts with values of the host and goes with its owner.
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
