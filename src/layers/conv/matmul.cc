#include "shared/checks.h"
#include "shared/skipped_kernels.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// y = op(a) * op(b) for the matrices in the last two axes of each item; op transposes if the field
// says so. Values that are stored as images are copied to and from row-major order.
class MatMul final : public Layer {
 public:
  explicit MatMul(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::MatMulParameter& param = spec_.proto().matmul_param();
    trans_a_ = param.transpose_a();
    trans_b_ = param.transpose_b();
    for (const int input : {0, 1}) {
      RequireRank(ctx, spec_, input, 2, Shape::kMaxAxes, "matrices in its last two axes");
    }
    const Shape &a = ctx.Input(0), &b = ctx.Input(1);
    const int rank = a.Rank();
    RequireEqualItemAxes(a, b);
    items_ = a.Count(0, rank - 2);
    m_ = a[trans_a_ ? rank - 1 : rank - 2];
    k_ = a[trans_a_ ? rank - 2 : rank - 1];
    n_ = b[trans_b_ ? rank - 2 : rank - 1];
    if (const int64_t inner = b[trans_b_ ? rank - 1 : rank - 2]; inner != k_) {
      spec_.Fail("bottom",
                 Join("the matrices of bottom '", spec_.proto().bottom(0), "' ", Dims(a), " have ",
                      k_, trans_a_ ? " rows (transpose_a)" : " columns", ", but those of bottom '",
                      spec_.proto().bottom(1), "' ", Dims(b), " have ", inner,
                      trans_b_ ? " columns (transpose_b)" : " rows",
                      "; the numbers must be equal: check transpose_a and transpose_b"),
                 1);
    }
    dtype_ = ctx.InputType(0);
    const int64_t last[] = {m_, n_};
    const Shape out = a.Replace(rank - 2, rank, last);
    ctx.Output(0, out, dtype_);
    ctx.SaveInput(0);
    ctx.SaveInput(1);
    layout_ = {};
    a_ = layout_.AddBytes(IsNhwc(a) ? Bytes(a.Count()) : 0);
    b_ = layout_.AddBytes(IsNhwc(b) ? Bytes(b.Count()) : 0);
    y_ = layout_.AddBytes(IsNhwc(out) ? Bytes(out.Count()) : 0);
  }

  // Makes the product of Forward and, in a net that trains, the two of Backward: da = dy * op(b)^T
  // and db = op(a)^T * dy, or their transposes.
  void Prepare(PrepareContext& ctx) override {
    forward_ =
        NewProduct(ctx, {.m = m_, .n = n_, .k = k_, .trans_a = trans_a_, .trans_b = trans_b_});
    size_t most = forward_->ScratchBytes();
    if (ctx.training()) {
      a_gradient_ =
          trans_a_
              ? NewProduct(ctx, {.m = k_, .n = m_, .k = n_, .trans_a = trans_b_, .trans_b = true})
              : NewProduct(ctx, {.m = m_, .n = k_, .k = n_, .trans_b = !trans_b_});
      b_gradient_ =
          trans_b_
              ? NewProduct(ctx, {.m = n_, .n = k_, .k = m_, .trans_a = true, .trans_b = trans_a_})
              : NewProduct(ctx, {.m = k_, .n = n_, .k = m_, .trans_a = !trans_a_});
      most = std::max({most, a_gradient_->ScratchBytes(), b_gradient_->ScratchBytes()});
    }
    ctx.Scratch(layout_.Bytes() + most);
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    const std::byte *a = RowMajor(run, run.Input(0), a_), *b = RowMajor(run, run.Input(1), b_);
    std::byte* const y = Target(run, run.Output(0), y_);
    ForItems([&](int64_t i) {
      forward_->Run(a + i * Bytes(m_ * k_), b + i * Bytes(k_ * n_), nullptr, y + i * Bytes(m_ * n_),
                    layout_.Tail(run.Scratch()));
    });
    StoreTarget(run, y, run.Output(0));
  }

  void Backward(const RunContext& run) override {
    const std::byte* const dy = RowMajor(run, run.GradOutput(0), y_);
    if (run.NeedsGradInput(0)) {
      const std::byte* const b = RowMajor(run, run.Input(1), b_);
      std::byte* const da = Target(run, run.GradInput(0), a_);
      ForItems([&](int64_t i) {
        const std::byte* const of_dy = dy + i * Bytes(m_ * n_);
        const std::byte* const of_b = b + i * Bytes(k_ * n_);
        a_gradient_->Run(trans_a_ ? of_b : of_dy, trans_a_ ? of_dy : of_b, nullptr,
                         da + i * Bytes(m_ * k_), layout_.Tail(run.Scratch()));
      });
      StoreTarget(run, da, run.GradInput(0));
    }
    if (!run.NeedsGradInput(1)) return;
    const std::byte* const a = RowMajor(run, run.Input(0), a_);
    std::byte* const db = Target(run, run.GradInput(1), b_);
    ForItems([&](int64_t i) {
      const std::byte* const of_dy = dy + i * Bytes(m_ * n_);
      const std::byte* const of_a = a + i * Bytes(m_ * k_);
      b_gradient_->Run(trans_b_ ? of_dy : of_a, trans_b_ ? of_a : of_dy, nullptr,
                       db + i * Bytes(k_ * n_), layout_.Tail(run.Scratch()));
    });
    StoreTarget(run, db, run.GradInput(1));
  }

  std::string kernel() const override { return forward_->kernel(); }
  std::vector<std::string> skipped_kernels() const override {
    std::vector<std::string> lines = forward_->skipped_kernels();
    AppendSkippedKernels("gradient of the first bottom", a_gradient_.get(), &lines);
    AppendSkippedKernels("gradient of the second bottom", b_gradient_.get(), &lines);
    return lines;
  }
  int64_t Macs() const override { return items_ * m_ * n_ * k_; }

 private:
  // Throws kConfig unless the axes before the matrices are equal.
  void RequireEqualItemAxes(const Shape& a, const Shape& b) const {
    const int rank = a.Rank();
    bool equal = b.Rank() == rank;
    for (int axis = 0; equal && axis < rank - 2; ++axis) equal = a[axis] == b[axis];
    if (equal) return;
    spec_.Fail("bottom",
               Join("bottom '", spec_.proto().bottom(1), "' has shape ", Dims(b), ", but bottom '",
                    spec_.proto().bottom(0), "' has ", Dims(a),
                    "; all axes but the last two must be equal: repeat a matrix with Tile, or use "
                    "InnerProduct for one that is learned"),
               1);
  }

  std::unique_ptr<GemmPrimitive> NewProduct(PrepareContext& ctx, GemmDesc desc) const {
    desc.dtype = desc.out_dtype = dtype_;
    return ctx.device().NewGemm(desc);
  }

  // Returns the numbers of `x` in row-major order, copied to `to` if memory has another order.
  const std::byte* RowMajor(const RunContext& run, const ConstTensor& x,
                            const ScratchRegion<std::byte>& to) const {
    if (!IsNhwc(x.shape)) return x.As<std::byte>();
    CopyToNchw(run.device(), x, to.At(run.Scratch()));
    return to.At(run.Scratch());
  }
  // Returns where a product writes `y` in row-major order.
  std::byte* Target(const RunContext& run, const Tensor& y,
                    const ScratchRegion<std::byte>& to) const {
    return IsNhwc(y.shape) ? to.At(run.Scratch()) : y.As<std::byte>();
  }
  // Copies what a product wrote to `target` into `y`, unless it is there.
  void StoreTarget(const RunContext& run, const std::byte* target, const Tensor& y) const {
    if (IsNhwc(y.shape)) CopyFromNchw(run.device(), target, y);
  }

  // Calls f(i) for each item.
  template <class F>
  void ForItems(const F& f) const {
    for (int64_t i = 0; i < items_; ++i) f(i);
  }
  size_t Bytes(int64_t count) const { return static_cast<size_t>(count) * SizeOf(dtype_); }

  LayerSpec spec_;
  bool trans_a_ = false, trans_b_ = false;
  int64_t items_ = 0, m_ = 0, n_ = 0, k_ = 0;
  DType dtype_ = DType::kF32;
  ScratchLayout layout_;
  ScratchRegion<std::byte> a_, b_, y_;
  std::unique_ptr<GemmPrimitive> forward_, a_gradient_, b_gradient_;
};

const RegisterLayer<MatMul> kMatMul(
    "MatMul",
    {.text =
         "Products of the matrices in the last two axes of two bottoms: y = a b.\n"
         "bottoms (..., M, K) and (..., K, N), with equal axes before the last two; top (..., "
         "M, N). transpose_a: the first bottom is (..., K, M); transpose_b: the second is (..., "
         "N, K). Both may get a gradient.",
     .param = "matmul_param",
     .arity = {.min_in = 2, .max_in = 2},
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
