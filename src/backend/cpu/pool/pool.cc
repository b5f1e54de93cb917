#include "cpu/pool/fast_pool.h"
#include "kernel_registry.h"

namespace trainer::cpu {
namespace {

// Accepts every pool. It is the first candidate.
KernelOrReason<PoolPrimitive> TakeVectors(const Device&, const PoolDesc& desc) {
  return desc.method == PoolMethod::kMax ? MakeMaxPool(desc) : MakeAveragePool(desc);
}
// Accepts every pool, but TakeVectors comes first and does so, too.
KernelOrReason<PoolPrimitive> TakeReference(const Device&, const PoolDesc& desc) {
  return MakeReferencePool(desc);
}

using RegisterPool = RegisterKernel<PoolDesc, PoolPrimitive>;
const RegisterPool kVectors({DeviceKind::kCpu, priority::kOwn, "channel vectors", TakeVectors});
const RegisterPool kReference({DeviceKind::kCpu, priority::kReference, "reference loops",
                               TakeReference});

}  // namespace
}  // namespace trainer::cpu
