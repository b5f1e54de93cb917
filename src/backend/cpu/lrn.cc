#include "cpu/loops.h"
#include "cpu/lrn_across.h"
#include "kernel_registry.h"
#include "lrn_generic.h"

namespace trainer::cpu {
namespace {

// Sums across channels in one pass per direction: see lrn_across.h. Power computes the powers of
// the base: see lrn_math.h.
template <class Power>
class LrnOnePass final : public LrnPrimitive {
 public:
  LrnOnePass(const LrnDesc& desc, Power power) : desc_(desc), power_(power) {}

  std::string kernel() const override { return "one pass"; }

  void Forward(ConstTensor x, Tensor y, std::span<std::byte>) override {
    for (const ConstTensor& tensor : {x, ConstTensor(y)}) Expect(tensor);
    DispatchCpuDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      Run<T>(x.As<T>(), nullptr, y.As<T>());
    });
  }

  void Backward(ConstTensor x, ConstTensor dy, Tensor dx, std::span<const std::byte>,
                std::span<std::byte>) override {
    for (const ConstTensor& tensor : {x, dy, ConstTensor(dx)}) Expect(tensor);
    DispatchCpuDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      Run<T>(x.As<T>(), dy.As<T>(), dx.As<T>());
    });
  }

 private:
  // Throws kInternal unless the tensor has the planned shape and type.
  void Expect(const ConstTensor& tensor) const {
    ExpectPlanned("LRN", desc_.shape, desc_.dtype, tensor);
  }
  // Runs the forward pass if dy is null, else the backward pass. The usual 5 neighbours are
  // compiled as a constant.
  template <class T>
  void Run(const T* x, const T* dy, T* out) const {
    const Shape& shape = desc_.shape;
    const LrnOperands<T> in = {x, dy, out, shape[0] * shape[2] * shape[3], shape[1]};
    const LrnNumbers numbers = {desc_.half, desc_.k, desc_.factor, 2 * desc_.factor * desc_.beta};
    if constexpr (std::is_same_v<Power, UsualPower>) {
      if (desc_.half == 2) return RunLrnAcross<5>(in, numbers, power_);
    }
    RunLrnAcross<0>(in, numbers, power_);
  }

  LrnDesc desc_;
  Power power_;
};

// Accepts sums across channels that fit its buffers.
KernelOrReason<LrnPrimitive> TakeOnePass(const Device&, const LrnDesc& desc) {
  if (!desc.across) return Unsupported{"it supports sums across channels only"};
  if (desc.half > kMaxLrnHalf || desc.shape[1] > kMaxLrnChannels) {
    return Unsupported{"the channels or the neighbours are too many for its buffers"};
  }
  return WithLrnPower(desc.beta, [&](auto power) -> std::unique_ptr<LrnPrimitive> {
    return std::make_unique<LrnOnePass<decltype(power)>>(desc, power);
  });
}

// Accepts every LRN. It is the last candidate.
KernelOrReason<LrnPrimitive> TakeSteps(const Device&, const LrnDesc& desc) {
  return MakeLrnInSteps(desc, Loops{});
}

using RegisterLrnLoops = RegisterKernel<LrnDesc, LrnPrimitive>;
const RegisterLrnLoops kLrnOnePass({DeviceKind::kCpu, priority::kOwn, "one pass", TakeOnePass});
const RegisterLrnLoops kLrnSteps({DeviceKind::kCpu, priority::kReference, "steps", TakeSteps});

}  // namespace
}  // namespace trainer::cpu
