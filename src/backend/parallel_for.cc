#include "trainer/backend/loops/parallel_for.h"

#include <dnnl.h>

namespace trainer {

// Respects the limit that the user sets for oneDNN with DNNL_MAX_CPU_ISA.
CpuIsa DetectCpuIsa() {
  const int allowed = dnnl_get_effective_cpu_isa();
  const auto allows = [&](dnnl_cpu_isa_t set) { return (allowed & set) == set; };
  if (allows(dnnl_cpu_isa_avx512_core) && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
    return CpuIsa::kAvx512;
  }
  if (allows(dnnl_cpu_isa_avx2) && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2")) {
    return CpuIsa::kAvx2;
  }
  return CpuIsa::kBase;
}

// Respects the same limit.
bool HasBf16Instructions() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
         dnnl_cpu_isa_avx512_core_bf16;
}

}  // namespace trainer
