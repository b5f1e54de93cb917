#include "shared/checks.h"
#include "shared/skipped_kernels.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kInnerProductParam[] = "inner_product_param";

// y (m, n) = x (m, k) * weight^T + bias; the bottom's axes from `axis` on form the k columns. If an
// image is flattened whole (axis 1), it keeps its memory order (H, W, C), and the columns of the
// weight are stored in that order instead (ParamLayout). Otherwise images are copied to and from
// row-major order. If x and y are stored in 16 bits, the weight that multiplies is a 16-bit copy:
// the one that the update writes (UsePackedWeight), or else one made in scratch memory in each
// pass.
class InnerProduct final : public Layer {
 public:
  explicit InnerProduct(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::InnerProductParameter& param = spec_.proto().inner_product_param();
    const Shape& in = ctx.Input(0);
    const int axis = AxisIn(spec_, kInnerProductParam, "axis", param.axis(), in);
    if (!param.has_num_output()) spec_.Fail("num_output is not given; it is the number of outputs");
    if (param.num_output() < 1) {
      spec_.FailIn(kInnerProductParam, "num_output", "num_output is 0; it must be at least 1");
    }
    n_ = param.num_output();
    dtype_ = ctx.InputType(0);
    m_ = in.Count(0, axis);
    k_ = in.Count(axis);
    const int64_t last[] = {n_};
    const Shape out = in.Replace(axis, in.Rank(), last);
    const bool permute_weight = axis == 1 && IsNhwc(in) && !param.transpose();
    plain_in_ = IsNhwc(in) && !permute_weight;
    plain_out_ = IsNhwc(out);

    ParamOptions options;
    if (permute_weight) options.layout = {in[1], in[2], in[3]};
    const Shape weight = param.transpose() ? Shape{k_, n_} : Shape{n_, k_};
    ctx.Param("weight", weight, param.weight_filler(), options);
    if (param.bias_term()) ctx.Param("bias", {n_}, param.bias_filler());
    ctx.Output(0, out, dtype_);
    ctx.SaveInput(0);
  }

  // Makes the product of Forward and, in a net that trains, the two of Backward.
  void Prepare(PrepareContext& ctx) override {
    const caffe::InnerProductParameter& param = spec_.proto().inner_product_param();
    const bool transpose = param.transpose();
    forward_ = ctx.device().NewGemm({.m = m_,
                                     .n = n_,
                                     .k = k_,
                                     .trans_b = !transpose,
                                     .bias = param.bias_term(),
                                     .dtype = dtype_,
                                     .out_dtype = dtype_});
    layout_ = {};
    x_ = layout_.AddBytes(plain_in_ ? Bytes(m_ * k_) : 0);
    y_ = layout_.AddBytes(plain_out_ ? Bytes(m_ * n_) : 0);
    weight_ = layout_.AddBytes(dtype_ == DType::kF32 ? 0 : Bytes(n_ * k_));
    size_t most = forward_->ScratchBytes();
    if (ctx.training()) {
      weight_gradient_ = ctx.device().NewGemm({.m = transpose ? k_ : n_,
                                               .n = transpose ? n_ : k_,
                                               .k = m_,
                                               .trans_a = true,
                                               .accumulate = true,
                                               .dtype = dtype_});
      data_gradient_ = ctx.device().NewGemm(
          {.m = m_, .n = k_, .k = n_, .trans_b = transpose, .dtype = dtype_, .out_dtype = dtype_});
      most = std::max({most, weight_gradient_->ScratchBytes(), data_gradient_->ScratchBytes()});
    }
    ctx.Scratch(layout_.Bytes() + most);
  }

  std::optional<PackedLayout> packed_layout() const override {
    if (dtype_ == DType::kF32) return std::nullopt;
    return PackedLayout{dtype_, 1, 1, n_ * k_};
  }
  void UsePackedWeight(const void* copy, const bool* holds) override {
    copy_ = copy;
    copy_holds_ = holds;
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    const Buffers buffers = BuffersOf(run);
    if (plain_in_) CopyToNchw(run.device(), run.Input(0), buffers.x);
    const void* x = plain_in_ ? buffers.x : run.Input(0).data;
    void* y = plain_out_ ? buffers.y : run.Output(0).data;
    forward_->Run(x, Weight(run, buffers), run.ParamOrNull(1), y, buffers.rest);
    if (plain_out_) CopyFromNchw(run.device(), buffers.y, run.Output(0));
  }

  void Backward(const RunContext& run) override {
    const Buffers buffers = BuffersOf(run);
    if (plain_out_) CopyToNchw(run.device(), run.GradOutput(0), buffers.y);
    const void* dy = plain_out_ ? buffers.y : run.GradOutput(0).data;
    if (run.GradParam(0) != nullptr) {
      if (plain_in_) CopyToNchw(run.device(), run.Input(0), buffers.x);
      const void* x = plain_in_ ? buffers.x : run.Input(0).data;
      const bool transpose = spec_.proto().inner_product_param().transpose();
      weight_gradient_->Run(transpose ? x : dy, transpose ? dy : x, nullptr, run.GradParam(0),
                            buffers.rest);
    }
    if (run.GradParamOrNull(1) != nullptr) {
      const ConstTensor rows(dy, {m_, n_}, dtype_);
      run.device().AddChannelSums(ChannelSumsDesc::Of(rows.shape, 1), rows, nullptr,
                                  run.GradParamOrNull(1));
    }
    if (!run.NeedsGradInput(0)) return;
    data_gradient_->Run(dy, Weight(run, buffers), nullptr,
                        plain_in_ ? buffers.x : run.GradInput(0).data, buffers.rest);
    if (plain_in_) CopyFromNchw(run.device(), buffers.x, run.GradInput(0));
  }

  std::string kernel() const override { return forward_->kernel(); }
  std::vector<std::string> skipped_kernels() const override {
    std::vector<std::string> lines = forward_->skipped_kernels();
    AppendSkippedKernels("weight gradient", weight_gradient_.get(), &lines);
    AppendSkippedKernels("data gradient", data_gradient_.get(), &lines);
    return lines;
  }
  int64_t Macs() const override { return m_ * n_ * k_; }

 private:
  // Scratch: x and y if they must be in row-major order, the weight if it is copied, then the
  // products' own.
  struct Buffers {
    std::byte *x, *y, *weight;
    std::span<std::byte> rest;
  };
  Buffers BuffersOf(const RunContext& run) const {
    const std::span<std::byte> scratch = run.Scratch();
    return {x_.At(scratch), y_.At(scratch), weight_.At(scratch), layout_.Tail(scratch)};
  }

  // Returns the weight in the type of x, converting it to scratch memory if there is no valid copy.
  const void* Weight(const RunContext& run, const Buffers& buffers) const {
    if (dtype_ == DType::kF32) return run.Param(0);
    if (copy_ != nullptr && *copy_holds_) return copy_;
    const Shape shape{n_, k_};
    run.device().Convert(ConstTensor(run.Param(0), shape), {buffers.weight, shape, dtype_});
    return buffers.weight;
  }

  size_t Bytes(int64_t count) const { return static_cast<size_t>(count) * SizeOf(dtype_); }

  LayerSpec spec_;
  int64_t m_ = 0, n_ = 0, k_ = 0;
  bool plain_in_ = false, plain_out_ = false;
  DType dtype_ = DType::kF32;
  const void* copy_ = nullptr;
  const bool* copy_holds_ = nullptr;
  ScratchLayout layout_;
  ScratchRegion<std::byte> x_, y_, weight_;
  std::unique_ptr<GemmPrimitive> forward_, weight_gradient_, data_gradient_;
};

const RegisterLayer<InnerProduct> kInnerProduct(
    "InnerProduct",
    {.text = "Fully connected: each output is a weighted sum of all inputs, y = W x + b.\n"
             "The axes from `axis` (default 1) are flattened to one axis of length K. The top has "
             "the axes before it, then num_output.\n"
             "Parameters: weight (num_output, K), or (K, num_output) with transpose; bias "
             "(num_output) unless bias_term is false.",
     .param = "inner_product_param",
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
