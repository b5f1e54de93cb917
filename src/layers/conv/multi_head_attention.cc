#include "shared/checks.h"
#include "shared/skipped_kernels.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kAttentionParam[] = "attention_param";

// y = Attention(x W_in^T + b_in) W_out^T + b_out for sequences x (N, L, C), where the first product
// gives q, k and v of all heads side by side. Parameters are in the order and the shapes of
// PyTorch's MultiheadAttention: in_proj_weight (3 C, C), in_proj_bias, out_proj.weight (C, C),
// out_proj.bias. Source: Vaswani et al., arXiv:1706.03762; for memory see AttentionPrimitive.
class MultiHeadAttention final : public Layer {
 public:
  explicit MultiHeadAttention(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireRank(ctx, spec_, 0, 3, 3, "sequences (N, L, C) of 3 axes");
    const caffe::AttentionParameter& param = spec_.proto().attention_param();
    const Shape& in = ctx.Input(0);
    channels_ = in[2];
    rows_ = in[0] * in[1];
    ReadHeads();
    desc_ = {.batch = in[0],
             .length = in[1],
             .heads = param.num_heads(),
             .size = channels_ / param.num_heads(),
             .causal = param.causal()};
    ctx.Param("in_proj_weight", {3 * channels_, channels_}, param.weight_filler());
    if (param.bias_term()) ctx.Param("in_proj_bias", {3 * channels_}, param.bias_filler());
    out_weight_ = ctx.Param("out_proj_weight", {channels_, channels_}, param.weight_filler());
    if (param.bias_term()) ctx.Param("out_proj_bias", {channels_}, param.bias_filler());
    ctx.Output(0, in);
    ctx.SaveInput(0);
    ScratchLayout kept;
    qkv_ = kept.Add<float>(rows_ * 3 * channels_);
    mixed_ = kept.Add<float>(rows_ * channels_);
    log_sums_ = kept.Add<float>(desc_.LogSums());
    ctx.Workspace(kept.Bytes());
    scratch_ = {};
    if (!ctx.training()) return;
    dqkv_ = scratch_.Add<float>(rows_ * 3 * channels_);
    dmixed_ = scratch_.Add<float>(rows_ * channels_);
  }

  void Prepare(PrepareContext& ctx) override {
    const bool bias = spec_.proto().attention_param().bias_term();
    const int64_t m = rows_, c = channels_;
    product_bytes_ = 0;
    project_in_ = NewProduct(ctx, {.m = m, .n = 3 * c, .k = c, .trans_b = true, .bias = bias});
    project_out_ = NewProduct(ctx, {.m = m, .n = c, .k = c, .trans_b = true, .bias = bias});
    if (ctx.training()) {
      const auto weight = [&](int64_t outputs) {
        return NewProduct(ctx, {.m = outputs, .n = c, .k = m, .trans_a = true, .accumulate = true});
      };
      in_weight_gradient_ = weight(3 * c);
      out_weight_gradient_ = weight(c);
      in_gradient_ = NewProduct(ctx, {.m = m, .n = c, .k = 3 * c});
      out_gradient_ = NewProduct(ctx, {.m = m, .n = c, .k = c});
    }
    attention_ = ctx.device().NewAttention(desc_);
    ctx.Scratch(scratch_.Bytes() + std::max(product_bytes_, attention_->ScratchBytes()));
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace(), rest = scratch_.Tail(run.Scratch());
    float *const qkv = qkv_.At(kept), *const mixed = mixed_.At(kept);
    project_in_->Run(run.Input(0).data, run.Param(0), Bias(run, 0), qkv, rest);
    attention_->Forward(qkv, mixed, log_sums_.At(kept), rest);
    project_out_->Run(mixed, run.Param(out_weight_), Bias(run, out_weight_), run.Output(0).data,
                      rest);
  }

  void Backward(const RunContext& run) override {
    const std::span<std::byte> kept = run.Workspace(), rest = scratch_.Tail(run.Scratch());
    float *const dqkv = dqkv_.At(run.Scratch()), *const dmixed = dmixed_.At(run.Scratch());
    const float* const dy = run.GradOutput(0).f32();
    AddParamGradients(run, out_weight_, *out_weight_gradient_, dy, channels_, mixed_.At(kept));
    if (run.GradParam(0) == nullptr && BiasGradient(run, 0) == nullptr && !run.NeedsGradInput(0)) {
      return;
    }
    out_gradient_->Run(dy, run.Param(out_weight_), nullptr, dmixed, rest);
    attention_->Backward({qkv_.At(kept), mixed_.At(kept), log_sums_.At(kept), dmixed}, dqkv, rest);
    AddParamGradients(run, 0, *in_weight_gradient_, dqkv, 3 * channels_, run.Input(0).f32());
    if (!run.NeedsGradInput(0)) return;
    in_gradient_->Run(dqkv, run.Param(0), nullptr, run.GradInput(0).data, rest);
  }

  std::string kernel() const override { return attention_->kernel(); }
  std::vector<std::string> skipped_kernels() const override {
    std::vector<std::string> lines;
    AppendSkippedKernels("input projection", project_in_.get(), &lines);
    AppendSkippedKernels("output projection", project_out_.get(), &lines);
    AppendSkippedKernels("weight gradient of the input projection", in_weight_gradient_.get(),
                         &lines);
    AppendSkippedKernels("weight gradient of the output projection", out_weight_gradient_.get(),
                         &lines);
    AppendSkippedKernels("data gradient of the input projection", in_gradient_.get(), &lines);
    AppendSkippedKernels("data gradient of the output projection", out_gradient_.get(), &lines);
    return lines;
  }
  int64_t Macs() const override { return 4 * rows_ * channels_ * channels_ + desc_.Macs(); }

 private:
  // Throws kConfig unless num_heads is given and divides the channels.
  void ReadHeads() const {
    const caffe::AttentionParameter& param = spec_.proto().attention_param();
    if (!param.has_num_heads()) spec_.Fail("num_heads is not given; it is the number of heads");
    const int64_t heads = param.num_heads();
    if (heads >= 1 && channels_ % heads == 0) return;
    spec_.FailIn(kAttentionParam, "num_heads",
                 heads < 1 ? "num_heads is 0; it must be at least 1"
                           : Join("num_heads is ", heads, ", which does not divide the ", channels_,
                                  " channels of bottom '", spec_.proto().bottom(0),
                                  "'; each head gets the same number of channels"));
  }

  std::unique_ptr<GemmPrimitive> NewProduct(PrepareContext& ctx, const GemmDesc& desc) {
    auto product = ctx.device().NewGemm(desc);
    product_bytes_ = std::max(product_bytes_, product->ScratchBytes());
    return product;
  }

  // Return the bias that follows weight number `weight`, and its gradient; null without biases.
  const float* Bias(const RunContext& run, int weight) const {
    return spec_.proto().attention_param().bias_term() ? run.Param(weight + 1) : nullptr;
  }
  float* BiasGradient(const RunContext& run, int weight) const {
    return spec_.proto().attention_param().bias_term() ? run.GradParam(weight + 1) : nullptr;
  }

  // Adds to the gradients of weight number `weight` and its bias, for y = x W^T + b with
  // `outputs` numbers per position.
  void AddParamGradients(const RunContext& run, int weight, GemmPrimitive& product, const float* dy,
                         int64_t outputs, const float* x) const {
    if (run.GradParam(weight) != nullptr) {
      product.Run(dy, x, nullptr, run.GradParam(weight), scratch_.Tail(run.Scratch()));
    }
    if (BiasGradient(run, weight) == nullptr) return;
    const Shape shape{rows_, outputs};
    run.device().AddChannelSums(ChannelSumsDesc::Of(shape, 1), ConstTensor(dy, shape), nullptr,
                                BiasGradient(run, weight));
  }

  LayerSpec spec_;
  AttentionDesc desc_;
  int64_t rows_ = 0, channels_ = 0;
  int out_weight_ = 0;
  size_t product_bytes_ = 0;
  ScratchLayout scratch_;
  ScratchRegion<float> qkv_, mixed_, log_sums_;  // in the workspace
  ScratchRegion<float> dqkv_, dmixed_;           // in the scratch
  std::unique_ptr<GemmPrimitive> project_in_, project_out_, in_gradient_, out_gradient_;
  std::unique_ptr<GemmPrimitive> in_weight_gradient_, out_weight_gradient_;
  std::unique_ptr<AttentionPrimitive> attention_;
};

const RegisterLayer<MultiHeadAttention> kMultiHeadAttention(
    "MultiHeadAttention",
    {.text =
         "Self-attention in num_heads heads over sequences (N, L, C); the top has the same shape.\n"
         "x W_in^T + b_in gives q, k and v of each position, C numbers each, cut into heads of D = "
         "C / num_heads. Each head mixes the v of all positions: y_i = sum over j of softmax_j(q_i "
         "k_j / sqrt(D)) v_j; with causal, only of positions j <= i. The heads side by side, times "
         "W_out^T, plus b_out, are the top.\n"
         "Parameters, in the order of PyTorch's MultiheadAttention: in_proj_weight (3 C, C) and "
         "in_proj_bias for q, k, v; out_proj_weight (C, C) and out_proj_bias; no biases if "
         "bias_term is false. Memory grows with L, not with L^2: the scores are computed in blocks "
         "and again in the backward pass (Dao et al., arXiv:2205.14135).",
     .param = kAttentionParam});

}  // namespace
}  // namespace trainer
