#include "shared/checks.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// y = x * (k + alpha / n * sum x'^2)^-beta over the n neighbours x' of each value, across channels
// or within a channel, by the device's LrnPrimitive. Source: Krizhevsky et al., NIPS 2012.
class Lrn final : public Layer {
 public:
  explicit Lrn(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::LRNParameter& param = spec_.proto().lrn_param();
    RequireRank(ctx, spec_, 0, 4, 4, "images (N, C, H, W)");
    if (param.local_size() % 2 == 0) {
      spec_.FailIn("lrn_param", "local_size",
                   Join("local_size is ", param.local_size(),
                        "; it must be odd, so that both sides have the same number of neighbours"));
    }
    const bool across = param.norm_region() == caffe::LRNParameter::ACROSS_CHANNELS;
    const auto size = static_cast<float>(param.local_size());
    desc_ = {.shape = ctx.Input(0),
             .across = across,
             .half = (param.local_size() - 1) / 2,
             .factor = param.alpha() / (across ? size : size * size),
             .beta = param.beta(),
             .k = across ? param.k() : 1.0f,
             .training = ctx.training(),
             .dtype = ctx.InputType(0)};
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    ctx.SaveInput(0);
  }

  void Prepare(PrepareContext& ctx) override {
    lrn_ = ctx.device().NewLrn(desc_);
    ctx.Workspace(lrn_->WorkspaceBytes());
    ctx.Scratch(lrn_->ScratchBytes());
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    lrn_->Forward(run.Input(0), run.Output(0), run.Workspace());
  }
  void Backward(const RunContext& run) override {
    lrn_->Backward(run.Input(0), run.GradOutput(0), run.GradInput(0), run.Workspace(),
                   run.Scratch());
  }

 private:
  LayerSpec spec_;
  LrnDesc desc_;
  std::unique_ptr<LrnPrimitive> lrn_;
};

const RegisterLayer<Lrn> kLrn(
    "LRN",
    {.text = "y = x * (k + alpha / n * sum x'^2)^-beta over the n neighbours x' of each value.\n"
             "bottom (N, C, H, W). ACROSS_CHANNELS: the local_size channels around it at the same "
             "pixel, n = local_size. WITHIN_CHANNEL: the local_size * local_size pixels around it "
             "in the same channel, n = their number, k = 1 (the field has no effect). Values "
             "outside count as zeros, also in n.",
     .param = "lrn_param",
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
