#pragma once
// LRN of any size and kind, in several passes over whole tensors.

#include <memory>

#include "desc_checks.h"
#include "lrn_math.h"
#include "trainer/backend/primitives/lrn.h"

namespace trainer {

// The workspace holds k + factor * (sum of squares) for each element. The scratch holds each
// element's contribution to its neighbours' gradients, and the sums of the contributions if dx
// cannot hold them. Loops runs functors over elements and rows: see cpu/loops.h and cuda/loops.h.
template <class Loops, class Power>
class LrnInSteps final : public LrnPrimitive {
 public:
  LrnInSteps(const LrnDesc& desc, Power power, const Loops& loops)
      : desc_(desc), power_(power), loops_(loops) {}

  std::string kernel() const override { return "steps"; }
  size_t WorkspaceBytes() const override { return Bytes(); }
  size_t ScratchBytes() const override {
    if (!desc_.training) return 0;
    return desc_.dtype == DType::kF32 ? Bytes() : 2 * Bytes();
  }

  // Sums the squares of the neighbours into the workspace, then normalises.
  void Forward(ConstTensor x, Tensor y, std::span<std::byte> workspace) override {
    for (const ConstTensor& tensor : {x, ConstTensor(y)}) Expect(tensor);
    auto* const base = reinterpret_cast<float*>(workspace.data());
    loops_.DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* in = x.As<T>();
      SumNeighbours(SquareOf<T>{in}, base);
      loops_.ForEach(Count(),
                     LrnNormalize<T, Power>{in, base, y.As<T>(), desc_.k, desc_.factor, power_});
    });
  }

  // Computes the contribution of each element to its neighbours' gradients, sums these
  // contributions around each element, and computes dx from the sums.
  void Backward(ConstTensor x, ConstTensor dy, Tensor dx, std::span<const std::byte> workspace,
                std::span<std::byte> scratch) override {
    for (const ConstTensor& tensor : {x, dy, ConstTensor(dx)}) Expect(tensor);
    const auto* const base = reinterpret_cast<const float*>(workspace.data());
    auto* const share = reinterpret_cast<float*>(scratch.data());
    float* const sums = desc_.dtype == DType::kF32 ? dx.f32() : share + Count();
    loops_.DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *in = x.As<T>(), *grad = dy.As<T>();
      loops_.ForEach(Count(), LrnShare<T, Power>{in, grad, base, share, power_});
      SumNeighbours(NumberOf{share}, sums);
      const float slope = 2 * desc_.factor * desc_.beta;
      loops_.ForEach(Count(),
                     LrnGradient<T, Power>{in, grad, base, sums, dx.As<T>(), power_, slope});
    });
  }

 private:
  // Throws kInternal unless the tensor has the planned shape and type.
  void Expect(const ConstTensor& tensor) const {
    ExpectPlanned("LRN", desc_.shape, desc_.dtype, tensor);
  }
  int64_t Count() const { return desc_.shape.Count(); }
  size_t Bytes() const { return static_cast<size_t>(Count()) * sizeof(float); }

  // Sets sum[i] to the sum of f over element i and its neighbours, for every element.
  template <class F>
  void SumNeighbours(F f, float* sum) const {
    const Shape& s = desc_.shape;
    const int64_t pixels = s[0] * s[2] * s[3];
    if (desc_.across) {
      loops_.ForRows(pixels, s[1], SumAcross<F>{f, sum, s[1], desc_.half});
    } else {
      loops_.ForRows(pixels, s[1], SumWithin<F>{f, sum, s[1], s[2], s[3], desc_.half});
    }
  }

  LrnDesc desc_;
  Power power_;
  Loops loops_;
};

// Makes the primitive for any description.
template <class Loops>
std::unique_ptr<LrnPrimitive> MakeLrnInSteps(const LrnDesc& desc, const Loops& loops) {
  return WithLrnPower(desc.beta, [&](auto power) -> std::unique_ptr<LrnPrimitive> {
    return std::make_unique<LrnInSteps<Loops, decltype(power)>>(desc, power, loops);
  });
}

}  // namespace trainer
