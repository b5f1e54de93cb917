#include "conv/pool_window.h"
#include "conv/stochastic_pool.h"
#include "shared/checks.h"
#include "shared/plain_relu.h"

namespace trainer {
namespace {

// MAX and AVE pooling by the device's PoolPrimitive; STOCHASTIC pooling by stochastic_pool.h. Top
// 1, for MAX only, holds the index h * W + w of each largest value.
class Pooling final : public Layer {
 public:
  explicit Pooling(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::PoolingParameter& param = spec_.proto().pooling_param();
    RequireRank(ctx, spec_, 0, 4, 4, "images (N, C, H, W)");
    desc_ = ReadPoolWindows(spec_, ctx.Input(0), ctx.InputType(0));
    stochastic_ = param.pool() == caffe::PoolingParameter::STOCHASTIC;
    if (stochastic_) ctx.UsesRandom();
    if (ctx.NumOutputs() > 1 && param.pool() != caffe::PoolingParameter::MAX) {
      spec_.FailIn("pooling_param", "pool",
                   "only MAX has a second top (the indices of the largest values); remove it");
    }
    ctx.Output(0, desc_.OutShape(), ctx.InputType(0));
    if (ctx.NumOutputs() > 1) {
      ctx.Output(1, desc_.OutShape());
      ctx.OutputKeepsF32(1);
    }
    if (stochastic_) return SetupStochastic(ctx);
    desc_.method =
        param.pool() == caffe::PoolingParameter::AVE ? PoolMethod::kAverage : PoolMethod::kMax;
    desc_.relu = relu_;
    desc_.training = ctx.training() || ctx.NumOutputs() > 1;
  }

  void Prepare(PrepareContext& ctx) override {
    if (stochastic_) return;
    pool_ = ctx.device().NewPool(desc_);
    ctx.Workspace(pool_->WorkspaceBytes());
  }

  // MAX accepts one ReLU of slope 0.
  bool Fuse(std::span<const LayerSpec* const> next, const Device&) override {
    const bool fits = next.size() == 1 && IsPlainRelu(*next[0]) && !stochastic_ &&
                      desc_.method == PoolMethod::kMax;
    relu_ = fits;
    return fits || next.empty();
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    if (stochastic_) return ForwardStochastic(run);
    pool_->Forward(run.Input(0), run.Output(0), run.Workspace());
    if (run.NumOutputs() > 1) pool_->ArgMax(run.Workspace(), run.Output(1));
  }

  // Sets the gradient to 0 if top 0 has none; the indices of top 1 never have one.
  void Backward(const RunContext& run) override {
    if (!run.HasGradOutput(0)) {
      return run.device().Zero(run.GradInput(0).data, run.GradInput(0).Bytes());
    }
    if (!stochastic_) return pool_->Backward(run.GradOutput(0), run.GradInput(0), run.Workspace());
    StochasticPoolBackward(run.device(), desc_, run.GradOutput(0), Choice(run), run.GradInput(0));
  }

  std::string kernel() const override { return pool_ == nullptr ? "" : pool_->kernel(); }

 private:
  // Declares the memory for the drawn positions. Throws kConfig if there is padding; in phase TEST
  // the layer has no gradient.
  void SetupStochastic(SetupContext& ctx) {
    if (desc_.pad_h > 0 || desc_.pad_w > 0) {
      spec_.FailIn("pooling_param", "pool",
                   "STOCHASTIC pooling does not allow padding; remove the pad, or use MAX or AVE");
    }
    if (ctx.phase() == caffe::TEST) return ctx.NotDifferentiable(0);
    ctx.Workspace(static_cast<size_t>(desc_.OutShape().Count()) * sizeof(int32_t));
  }
  // Draws in training, and computes the mean under the same probabilities in phase TEST.
  void ForwardStochastic(const RunContext& run) {
    if (run.phase() == caffe::TEST) {
      return StochasticPoolTest(run.device(), desc_, run.Input(0), run.Output(0));
    }
    StochasticPoolTrain(run.device(), desc_, run.rng_key(), run.pass_counter(), run.Input(0),
                        run.Output(0), Choice(run));
  }
  // Returns the workspace: the drawn position of each output.
  static int32_t* Choice(const RunContext& run) {
    return reinterpret_cast<int32_t*>(run.Workspace().data());
  }

  LayerSpec spec_;
  PoolDesc desc_;
  bool stochastic_ = false;
  bool relu_ = false;  // whether the following ReLU is fused into it
  std::unique_ptr<PoolPrimitive> pool_;
};

const RegisterLayer<Pooling> kPooling(
    "Pooling",
    {.text =
         "The largest (MAX), mean (AVE) or a random (STOCHASTIC) value of windows of an image.\n"
         "bottom (N, C, H, W), top (N, C, OH, OW) with OH = ceil((H + 2 * pad - kernel) / stride) "
         "+ 1, or floor with round_mode FLOOR or ceil_mode: false; with padding, the last window "
         "is dropped if it would start in the padding after the image.\n"
         "MAX ignores padding; AVE counts it as zeros, but not pixels beyond it. STOCHASTIC draws "
         "a value with a probability proportional to it in training; in testing, the result is "
         "sum x^2 / sum x.\n"
         "top 1 (optional, MAX): the index h * W + w of each largest value.",
     .param = "pooling_param",
     .arity = {.min_in = 1, .max_in = 1, .min_out = 1, .max_out = 2},
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
