#include "trainer/analysis/scaling/gpu_specs.h"

#include <algorithm>
#include <iterator>

#include "trainer/base/text/lower_case.h"

namespace trainer {
namespace {

constexpr double kLaunch = 4e-6;  // the order of magnitude of a kernel launch

// NVIDIA's data sheets (SXM variants, without sparsity). f32 uses TF32 where the GPU has it.
constexpr GpuSpec kGpus[] = {
    {"V100", 15.7e12, 125e12, 0.9e12, kLaunch, "NVLink3"},
    {"A100", 156e12, 312e12, 2.04e12, kLaunch, "NVLink3"},
    {"H100", 494e12, 989e12, 3.35e12, kLaunch, "NVLink4"},
    {"H200", 494e12, 989e12, 4.8e12, kLaunch, "NVLink4"},
};

}  // namespace

const GpuSpec* FindGpu(const std::string& name) {
  const auto found = std::ranges::find_if(kGpus, [&](const GpuSpec& gpu) {
    return LowerCase(std::string(gpu.name)) == LowerCase(name);
  });
  return found == std::end(kGpus) ? nullptr : found;
}

std::string GpuNames() {
  std::string names;
  for (const GpuSpec& gpu : kGpus) names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  return names;
}

}  // namespace trainer
