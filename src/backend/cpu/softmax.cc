#include "cpu/plans.h"
#include "desc_checks.h"
#include "softmax_math.h"
#include "trainer/backend/loops/cpu_loops.h"

namespace trainer::cpu {
namespace {

// The column functors process this many rows together. The rows are adjacent in memory, and `step`
// is the stride between the elements of a row.
constexpr int64_t kSoftmaxLanes = 16;

// Computes y of kSoftmaxLanes neighbouring rows; `at` is the offset of the first element of the
// first row.
template <class T>
struct SoftmaxColumns {
  const T* x;
  T* y;
  int64_t length, step;

  __attribute__((always_inline)) void operator()(int64_t at) const {
    float top[kSoftmaxLanes], sum[kSoftmaxLanes];
    for (int l = 0; l < kSoftmaxLanes; ++l) top[l] = -FLT_MAX;
    for (int64_t i = 0; i < length; ++i) {
      const T* const from = x + at + i * step;
      for (int l = 0; l < kSoftmaxLanes; ++l)
        top[l] = Load(from[l]) > top[l] ? Load(from[l]) : top[l];
    }
    for (int l = 0; l < kSoftmaxLanes; ++l) sum[l] = 0;
    for (int64_t i = 0; i < length; ++i) {
      const T* const from = x + at + i * step;
      for (int l = 0; l < kSoftmaxLanes; ++l) sum[l] += Exp(Load(from[l]) - top[l]);
    }
    for (int l = 0; l < kSoftmaxLanes; ++l) sum[l] = 1 / sum[l];
    for (int64_t i = 0; i < length; ++i) {
      const T* const from = x + at + i * step;
      T* const to = y + at + i * step;
#pragma GCC ivdep
      for (int l = 0; l < kSoftmaxLanes; ++l) Store(to[l], Exp(Load(from[l]) - top[l]) * sum[l]);
    }
  }
};

// Computes dx of kSoftmaxLanes neighbouring rows; `at` is the offset of the first element of the
// first row.
template <class T>
struct SoftmaxGradientColumns {
  const T *y, *dy;
  T* dx;
  int64_t length, step;

  __attribute__((always_inline)) void operator()(int64_t at) const {
    float dot[kSoftmaxLanes];
    for (int l = 0; l < kSoftmaxLanes; ++l) dot[l] = 0;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t k = at + i * step;
      for (int l = 0; l < kSoftmaxLanes; ++l) dot[l] += Load(dy[k + l]) * Load(y[k + l]);
    }
    for (int64_t i = 0; i < length; ++i) {
      const int64_t k = at + i * step;
#pragma GCC ivdep
      for (int l = 0; l < kSoftmaxLanes; ++l) {
        Store(dx[k + l], Load(y[k + l]) * (Load(dy[k + l]) - dot[l]));
      }
    }
  }
};

// Calls f(offset of the first element) for each group of kSoftmaxLanes rows; kSoftmaxLanes must
// divide rows.inner.
template <class F>
void MapColumns(const Rows& rows, F f) {
  ParallelFor(
      rows.count / kSoftmaxLanes,
      [=](int64_t group) __attribute__((always_inline)) { f(rows.Start(group * kSoftmaxLanes)); },
      MinChunk(kSoftmaxLanes * rows.length));
}

// Computes rows that are neighbours in memory 16 at a time, all others one by one.
class CpuSoftmax final : public SoftmaxPrimitive {
 public:
  explicit CpuSoftmax(const SoftmaxDesc& desc)
      : desc_(desc), rows_(AxisRows(desc.shape, desc.axis)) {}

  std::string kernel() const override { return InColumns() ? "columns" : "rows"; }

  void Forward(ConstTensor x, Tensor y) override {
    Expect(x);
    Expect(y);
    DispatchCpuDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T* in = x.As<T>();
      T* out = y.As<T>();
      if (InColumns()) {
        return MapColumns(rows_, SoftmaxColumns<T>{in, out, rows_.length, rows_.inner});
      }
      if (rows_.inner == 1) return ForRows(SoftmaxRow<T, true>{in, out, rows_});
      ForRows(SoftmaxRow<T, false>{in, out, rows_});
    });
  }

  void Backward(ConstTensor y, ConstTensor dy, Tensor dx) override {
    for (const ConstTensor& tensor : {y, dy, ConstTensor(dx)}) Expect(tensor);
    DispatchCpuDtype(desc_.dtype, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      const T *out = y.As<T>(), *grad = dy.As<T>();
      T* to = dx.As<T>();
      if (InColumns()) {
        return MapColumns(rows_,
                          SoftmaxGradientColumns<T>{out, grad, to, rows_.length, rows_.inner});
      }
      if (rows_.inner == 1) return ForRows(SoftmaxGradientRow<T, true>{out, grad, to, rows_});
      ForRows(SoftmaxGradientRow<T, false>{out, grad, to, rows_});
    });
  }

 private:
  // Throws kInternal unless the tensor has the planned shape and type.
  void Expect(const ConstTensor& tensor) const {
    ExpectPlanned("softmax", desc_.shape, desc_.dtype, tensor);
  }
  // Returns whether kSoftmaxLanes rows at a time are neighbours in memory.
  bool InColumns() const { return rows_.inner % kSoftmaxLanes == 0; }
  // Calls f(row) for all rows.
  template <class F>
  void ForRows(F f) const {
    CpuRows(rows_.count, rows_.length, f);
  }

  SoftmaxDesc desc_;
  Rows rows_;
};

}  // namespace

std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const SoftmaxDesc& desc) {
  return std::make_unique<CpuSoftmax>(desc);
}

}  // namespace trainer::cpu
