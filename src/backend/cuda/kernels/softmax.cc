#include "cuda/loops.h"
#include "cuda/plans.h"
#include "desc_checks.h"
#include "softmax_math.h"

namespace trainer::cuda {
namespace {

// Uses a warp per row if the elements of a row are neighbours in memory. Otherwise the rows are
// neighbours, and each thread takes one row.
class Softmax final : public SoftmaxPrimitive {
 public:
  Softmax(const Device& device, const SoftmaxDesc& desc)
      : loops_(device), desc_(desc), rows_(AxisRows(desc.shape, desc.axis)) {}

  std::string kernel() const override {
    return rows_.inner == 1 ? "a warp per row" : "a thread per row";
  }

  void Forward(ConstTensor x, Tensor y) override {
    for (const ConstTensor& tensor : {x, ConstTensor(y)}) Expect(tensor);
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* in = x.As<T>();
      T* out = y.As<T>();
      if (rows_.inner == 1) return OnWarps(SoftmaxRow<T, true>{in, out, rows_});
      OnThreads(SoftmaxRow<T, false>{in, out, rows_});
    });
  }

  void Backward(ConstTensor y, ConstTensor dy, Tensor dx) override {
    for (const ConstTensor& tensor : {y, dy, ConstTensor(dx)}) Expect(tensor);
    DispatchDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *out = y.As<T>(), *grad = dy.As<T>();
      T* to = dx.As<T>();
      if (rows_.inner == 1) return OnWarps(SoftmaxGradientRow<T, true>{out, grad, to, rows_});
      OnThreads(SoftmaxGradientRow<T, false>{out, grad, to, rows_});
    });
  }

 private:
  // Throws kInternal unless the tensor has the planned shape and type.
  void Expect(const ConstTensor& tensor) const {
    ExpectPlanned("softmax", desc_.shape, desc_.dtype, tensor);
  }
  // Calls f(row) with a warp per row.
  template <class F>
  void OnWarps(F f) const {
    loops_.ForRows(rows_.count, rows_.length, f);
  }
  // Calls f(row) with a thread per row.
  template <class F>
  void OnThreads(F f) const {
    loops_.ForRowsOfThreads(rows_.count, rows_.length, f);
  }

  Loops loops_;
  SoftmaxDesc desc_;
  Rows rows_;
};

}  // namespace

std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const Device& device, const SoftmaxDesc& desc) {
  return std::make_unique<Softmax>(device, desc);
}

}  // namespace trainer::cuda
