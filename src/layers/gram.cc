#include "common/checks.h"
#include "trainer/backend/carve.h"
#include "trainer/backend/map.h"

namespace trainer {
namespace {

struct ScaleBy {
  float factor;
  HD float operator()(float x) const { return factor * x; }
};

// The gradient of F^T F: dF = F (dG + dG^T).
struct AddTransposed {
  const float* dy;
  float* sum;
  int64_t channels;
  float factor;
  HD void operator()(int64_t i) const {
    const int64_t size = channels * channels, at = i % size;
    const int64_t other = i - at + at % channels * channels + at / channels;
    sum[i] = factor * (dy[i] + dy[other]);
  }
};

// G = F^T F for each image, F its values (H W, C) as they are in memory.
class Gram final : public Layer {
 public:
  explicit Gram(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    RequireF32(plan, spec_);
    RequireRank(plan, spec_, 0, 4, 4, "an image (N, C, H, W)");
    const Shape& in = plan.In(0);
    images_ = in[0];
    channels_ = in[1];
    places_ = in[2] * in[3];
    factor_ =
        spec_.proto().gram_param().normalize() ? 1 / static_cast<float>(channels_ * places_) : 1.0f;
    plan.Out(0, {images_, channels_, channels_});
    plan.KeepInput(0);
    scratch_ = {};
    sum_ = scratch_.Add<float>(plan.training() ? images_ * channels_ * channels_ : 0);
  }

  void Prepare(PrepareContext& plan) override {
    forward_ =
        plan.device().MakeGemm({.m = channels_, .n = channels_, .k = places_, .trans_a = true});
    size_t most = forward_->ScratchBytes();
    if (plan.training()) {
      backward_ = plan.device().MakeGemm({.m = places_, .n = channels_, .k = channels_});
      most = std::max(most, backward_->ScratchBytes());
    }
    plan.Scratch(scratch_.Bytes() + most);
  }

  void Forward(const RunContext& run) override {
    for (int64_t n = 0; n < images_; ++n) {
      const float* const image = run.In(0).f32() + n * channels_ * places_;
      forward_->Run(image, image, nullptr, run.Out(0).f32() + n * channels_ * channels_,
                    scratch_.Rest(run.Scratch()));
    }
    if (factor_ != 1) Map(run.device(), ScaleBy{factor_}, run.Out(0), run.Out(0));
  }

  void Backward(const RunContext& run) override {
    float* const sum = sum_.In(run.Scratch());
    ForEach(run.device(), run.GradOut(0).Count(),
            AddTransposed{run.GradOut(0).f32(), sum, channels_, factor_});
    for (int64_t n = 0; n < images_; ++n) {
      const int64_t at = n * channels_ * places_;
      backward_->Run(run.In(0).f32() + at, sum + n * channels_ * channels_, nullptr,
                     run.GradIn(0).f32() + at, scratch_.Rest(run.Scratch()));
    }
  }

  std::string Implementation() const override { return forward_->Implementation(); }
  std::vector<std::string> Declined() const override { return forward_->Declined(); }
  int64_t Macs() const override { return images_ * channels_ * channels_ * places_; }

 private:
  LayerSpec spec_;
  int64_t images_ = 0, channels_ = 0, places_ = 0;
  float factor_ = 1;
  MemoryLayout scratch_;
  Slot<float> sum_;
  std::unique_ptr<GemmPlan> forward_, backward_;
};

const RegisterLayer<Gram> kGram(
    "Gram",
    {.text = "The products of all pairs of channels, summed over positions; neural style transfer "
             "compares them.\n"
             "bottom (N, C, H, W), top (N, C, C): y_ij = sum over positions x_i x_j, divided by C "
             "H W unless normalize is false (Gatys, Ecker and Bethge, arXiv:1508.06576).",
     .param = "gram_param"});

}  // namespace
}  // namespace trainer
