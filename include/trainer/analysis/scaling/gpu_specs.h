#pragma once
// Data sheets of GPUs for estimates.

#include <string>
#include <string_view>

namespace trainer {

// The peak rates of a processor.
struct GpuSpec {
  std::string_view name;
  double f32_flops = 0, bf16_flops = 0;  // per second, in products of matrices
  double bytes = 0;                      // per second, from and to its memory
  double launch = 0;                     // the least time of a kernel, in seconds
  std::string_view inside;               // the link between the GPUs of a machine
};
// Finds a GPU by its name in any case. Null for an unknown name.
const GpuSpec* FindGpu(const std::string& name);
// Returns the known names for messages: "V100, A100, ..."
std::string GpuNames();

}  // namespace trainer
