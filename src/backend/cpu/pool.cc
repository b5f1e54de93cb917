#include "cpu/pool.h"

#include "candidates.h"

namespace trainer::cpu {
namespace {

Offer<PoolPlan> TakeVectors(const Device&, const PoolDesc& desc) {
  return desc.method == PoolMethod::kMax ? MakeMaxPool(desc) : MakeAveragePool(desc);
}
Offer<PoolPlan> TakeReference(const Device&, const PoolDesc& desc) {
  return MakeReferencePool(desc);
}

using RegisterPool = RegisterCandidate<PoolDesc, PoolPlan>;
const RegisterPool kVectors({DeviceKind::kCpu, rank::kOwn, "channel vectors", TakeVectors});
const RegisterPool kReference({DeviceKind::kCpu, rank::kReference, "reference loops",
                               TakeReference});

}  // namespace
}  // namespace trainer::cpu
