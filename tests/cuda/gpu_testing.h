#pragma once
// The fixture of the CUDA backend's tests: a machine of emulated GPUs, and a device on one of them.

#include <emulated_gpu.h>
#include <gmock/gmock.h>

#include <memory>
#include <numeric>
#include <vector>

#include "support/error_of.h"
#include "support/test_device.h"
#include "trainer/backend/device/gpu.h"

namespace trainer {

class EmulatedGpu : public testing::Test {
 protected:
  EmulatedGpu() { emulated_gpu::Reset(); }
  ~EmulatedGpu() override {
    device_.reset();
    emulated_gpu::Reset();
    EXPECT_THAT(emulated_gpu::Leaks(), testing::IsEmpty());
  }

  const Device& device() {
    if (device_ == nullptr) device_ = MakeGpuDevice({});
    return *device_;
  }
  void End() { device_.reset(); }

  static std::vector<float> Counting(size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }

 private:
  std::unique_ptr<Device> device_;
};

}  // namespace trainer
