#include "common/checks.h"
#include "common/pool_window.h"
#include "common/stochastic_pool.h"
#include "trainer/layers/draws_numbers.h"

namespace trainer {
namespace {

class Pooling final : public Layer, public DrawsNumbers {
 public:
  explicit Pooling(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    const caffe::PoolingParameter& param = spec_.proto().pooling_param();
    RequireRank(plan, spec_, 0, 4, 4, "images (N, C, H, W)");
    desc_ = ReadPoolWindows(spec_, plan.In(0), plan.InType(0));
    stochastic_ = param.pool() == caffe::PoolingParameter::STOCHASTIC;
    if (plan.NumOut() > 1 && param.pool() != caffe::PoolingParameter::MAX) {
      spec_.FailIn("pooling_param", "pool",
                   "only MAX has a second top (the indices of the largest values); remove it");
    }
    plan.Out(0, desc_.OutShape(), plan.InType(0));
    if (plan.NumOut() > 1) {
      plan.Out(1, desc_.OutShape());
      plan.OutStaysF32(1);
    }
    if (stochastic_) return DescribeStochastic(plan);
    desc_.method =
        param.pool() == caffe::PoolingParameter::AVE ? PoolMethod::kAverage : PoolMethod::kMax;
    desc_.training = plan.training() || plan.NumOut() > 1;
  }

  void Prepare(PrepareContext& plan) override {
    if (stochastic_) return;
    pool_ = plan.device().MakePool(desc_);
    plan.Workspace(pool_->WorkspaceBytes());
  }

  bool Draws() const override { return stochastic_; }
  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    if (stochastic_) return ForwardStochastic(run);
    pool_->Forward(run.In(0), run.Out(0), run.Workspace());
    if (run.NumOut() > 1) pool_->Winners(run.Workspace(), run.Out(1));
  }

  void Backward(const RunContext& run) override {
    if (!run.HasGradOut(0)) {
      return run.device().Zero(run.GradIn(0).data, run.GradIn(0).Bytes());
    }
    if (!stochastic_) return pool_->Backward(run.GradOut(0), run.GradIn(0), run.Workspace());
    StochasticPoolBackward(run.device(), desc_, run.GradOut(0), Choice(run), run.GradIn(0));
  }

  std::string Implementation() const override {
    return pool_ == nullptr ? "" : pool_->Implementation();
  }

 private:
  void DescribeStochastic(DescribeContext& plan) {
    if (desc_.pad_h > 0 || desc_.pad_w > 0) {
      spec_.FailIn("pooling_param", "pool",
                   "STOCHASTIC pooling does not allow padding; remove the pad, or use MAX or AVE");
    }
    if (plan.phase() == caffe::TEST) return plan.NoGradient(0);
    plan.Workspace(static_cast<size_t>(desc_.OutShape().Count()) * sizeof(int32_t));
  }
  void ForwardStochastic(const RunContext& run) {
    if (run.phase() == caffe::TEST) {
      return StochasticPoolTest(run.device(), desc_, run.In(0), run.Out(0));
    }
    StochasticPoolTrain(run.device(), desc_, run.key(), run.DevicePass(), run.In(0), run.Out(0),
                        Choice(run));
  }
  static int32_t* Choice(const RunContext& run) {
    return reinterpret_cast<int32_t*>(run.Workspace().data());
  }

  LayerSpec spec_;
  PoolDesc desc_;
  bool stochastic_ = false;
  std::unique_ptr<PoolPlan> pool_;
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
     .storage = Storage::kChosen});

}  // namespace
}  // namespace trainer
