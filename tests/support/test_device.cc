#include "support/test_device.h"

#include <cstdlib>
#include <string>

#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/gpu.h"

#ifdef TRAINER_CUDA_EMULATED
#include <emulated_gpu.h>
#endif

namespace trainer {
namespace {

#ifdef TRAINER_CUDA_EMULATED
// Fails a test in which the emulated GPU saw something wrong.
class GpuProblems final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { emulated_gpu::ClearProblems(); }
  void OnTestEnd(const testing::TestInfo&) override {
    for (const std::string& problem : emulated_gpu::Problems()) {
      ADD_FAILURE() << "the emulated GPU: " << problem;
    }
    emulated_gpu::ClearProblems();
  }
};

[[maybe_unused]] const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new GpuProblems);
  return true;
}();
#endif

}  // namespace

bool TestsOnGpu() {
  const char* const wanted = std::getenv("TRAINER_TEST_DEVICE");
  return wanted != nullptr && std::string(wanted) == "gpu";
}

std::vector<DType> StoredTypes() {
  if (!TestsOnGpu()) return {DType::kF32, DType::kBF16};
  return {DType::kF32, DType::kBF16, DType::kF16};
}

std::unique_ptr<Device> MakeTestDevice(int threads) {
  return TestsOnGpu() ? MakeGpuDevice({.deterministic = true}) : MakeCpuDevice(threads);
}

std::vector<float> ReadFloats(const Device& device, const float* from, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  device.CopyToHost(values.data(), from, values.size() * sizeof(float));
  return values;
}

void WriteFloats(const Device& device, std::span<const float> values, float* to) {
  device.CopyToDevice(to, values.data(), values.size_bytes());
}

}  // namespace trainer
