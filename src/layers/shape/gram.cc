#include "shared/checks.h"
#include "shared/skipped_kernels.h"
#include "trainer/backend/loops/map.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer {
namespace {

// Returns factor * x.
struct ScaleBy {
  float factor;
  HD float operator()(float x) const { return factor * x; }
};

// Computes element i of factor * (dG + dG^T), for the gradient of G = F^T F: dF = F (dG + dG^T).
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

// The Gram matrix of each image, G = F^T F / (C H W), where F has its values (H W, C) as they are
// in memory; without `normalize` it is not divided. Source: Gatys, Ecker and Bethge,
// arXiv:1508.06576.
class Gram final : public Layer {
 public:
  explicit Gram(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    RequireF32(ctx, spec_);
    RequireRank(ctx, spec_, 0, 4, 4, "an image (N, C, H, W)");
    const Shape& in = ctx.Input(0);
    images_ = in[0];
    channels_ = in[1];
    places_ = in[2] * in[3];
    factor_ =
        spec_.proto().gram_param().normalize() ? 1 / static_cast<float>(channels_ * places_) : 1.0f;
    ctx.Output(0, {images_, channels_, channels_});
    ctx.SaveInput(0);
    scratch_ = {};
    sum_ = scratch_.Add<float>(ctx.training() ? images_ * channels_ * channels_ : 0);
  }

  void Prepare(PrepareContext& ctx) override {
    forward_ =
        ctx.device().NewGemm({.m = channels_, .n = channels_, .k = places_, .trans_a = true});
    size_t most = forward_->ScratchBytes();
    if (ctx.training()) {
      backward_ = ctx.device().NewGemm({.m = places_, .n = channels_, .k = channels_});
      most = std::max(most, backward_->ScratchBytes());
    }
    ctx.Scratch(scratch_.Bytes() + most);
  }

  void Forward(const RunContext& run) override {
    for (int64_t n = 0; n < images_; ++n) {
      const float* const image = run.Input(0).f32() + n * channels_ * places_;
      forward_->Run(image, image, nullptr, run.Output(0).f32() + n * channels_ * channels_,
                    scratch_.Tail(run.Scratch()));
    }
    if (factor_ != 1) Map(run.device(), ScaleBy{factor_}, run.Output(0), run.Output(0));
  }

  void Backward(const RunContext& run) override {
    float* const sum = sum_.At(run.Scratch());
    ForEach(run.device(), run.GradOutput(0).Count(),
            AddTransposed{run.GradOutput(0).f32(), sum, channels_, factor_});
    for (int64_t n = 0; n < images_; ++n) {
      const int64_t at = n * channels_ * places_;
      backward_->Run(run.Input(0).f32() + at, sum + n * channels_ * channels_, nullptr,
                     run.GradInput(0).f32() + at, scratch_.Tail(run.Scratch()));
    }
  }

  std::string kernel() const override { return forward_->kernel(); }
  std::vector<std::string> skipped_kernels() const override {
    std::vector<std::string> lines = forward_->skipped_kernels();
    AppendSkippedKernels("data gradient", backward_.get(), &lines);
    return lines;
  }
  int64_t Macs() const override { return images_ * channels_ * channels_ * places_; }

 private:
  LayerSpec spec_;
  int64_t images_ = 0, channels_ = 0, places_ = 0;
  float factor_ = 1;
  ScratchLayout scratch_;
  ScratchRegion<float> sum_;
  std::unique_ptr<GemmPrimitive> forward_, backward_;
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
