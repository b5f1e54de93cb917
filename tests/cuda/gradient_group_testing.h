#pragma once
// A group whose ranks are all simulated by this process, and gradients on an emulated GPU.

#include <functional>
#include <string>
#include <vector>

#include "cuda/gpu_testing.h"
#include "trainer/backend/device/gpu_communicator.h"
#include "trainer/base/text/text.h"

namespace trainer {

// Simulates two ranks that have the same numbers, so that a sum is twice a number. Records its
// calls and sums a slice when it is waited for.
class Twins : public Communicator {
 public:
  explicit Twins(std::pmr::memory_resource* memory = nullptr) : memory_(memory) {}

  Rank rank() const override { return {0, count}; }
  void OnGradientReady(int slice, std::span<float> values) override {
    calls.push_back(Join("ready ", slice));
    if (on_ready) on_ready(slice);
    if (slice == 0) slices_.clear();
    slices_.push_back(values);
  }
  void WaitGradient(int slice) override {
    calls.push_back(Join("wait ", slice));
    Double(slices_.at(static_cast<size_t>(slice)));
  }
  void AllReduce(std::span<float> values) override {
    calls.push_back("sum");
    Double(values);
  }
  std::vector<std::string> Gather(const std::string& own) override { return {own, own}; }
  void Broadcast(std::span<float>) override {}
  std::pmr::memory_resource* gradient_memory() override { return memory_; }

  std::vector<std::string> calls;
  std::function<void(int slice)> on_ready;
  int count = 2;

 private:
  void Double(std::span<float> values) const {
    for (float& value : values) value *= static_cast<float>(count);
  }

  std::pmr::memory_resource* memory_;
  std::vector<std::span<float>> slices_;
};

class GradientGroupTest : public EmulatedGpu {
 protected:
  // Slices of 16 numbers each; buckets of 32.
  static constexpr size_t kSlice = 16, kSlices = 5;
  static constexpr int kLast = static_cast<int>(kSlices) - 1;

  GpuGroupOptions Options() {
    return {&twins_, [this] { ++polls_; }, 2 * kSlice};
  }

  // Acts like a backward pass: writes each slice and then reports it as ready.
  void Backward(Communicator& group, float* gradients, float first) {
    for (size_t i = 0; i < kSlices; ++i) {
      const std::vector<float> values(kSlice, first + static_cast<float>(i));
      device().CopyToDevice(gradients + i * kSlice, values.data(), kSlice * sizeof(float));
      group.OnGradientReady(static_cast<int>(i), {gradients + i * kSlice, kSlice});
    }
  }

  void ExpectSums(Communicator& group, const OnDevice<float>& gradients, float first, float times) {
    for (int i = 0; i <= kLast; ++i) group.WaitGradient(i);
    const std::vector<float> found = gradients.Read();
    for (size_t i = 0; i < kSlices * kSlice; ++i) {
      ASSERT_EQ(found[i], times * (first + static_cast<float>(i / kSlice))) << i;
    }
  }

  Twins twins_{std::pmr::new_delete_resource()};
  int polls_ = 0;
};

}  // namespace trainer
