#include "shared/dropout_mask.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns x: the function that a Dropout alone applies before it drops elements.
struct Same {
  HD float operator()(float x) const { return x; }
};

// Sets a random share dropout_ratio of the elements to 0 in training and multiplies the others by 1
// / (1 - dropout_ratio). In phase TEST the output is a view of the input, and the passes do
// nothing. Source: Srivastava et al., JMLR 15, 2014.
class Dropout final : public Layer {
 public:
  explicit Dropout(const LayerSpec& spec) : param_(spec.proto().dropout_param()) {
    const float ratio = param_.dropout_ratio();
    if (!(ratio >= 0 && ratio < 1)) {
      spec.FailIn("dropout_param", "dropout_ratio",
                  Join("dropout_ratio is ", ratio,
                       "; it must be the share of values set to 0, at least 0 and below 1"));
    }
  }

  void Setup(SetupContext& ctx) override {
    ctx.UsesRandom();
    if (ctx.phase() == caffe::TEST) return ctx.OutputView(0, 0, ctx.Input(0));
    ctx.Output(0, ctx.Input(0), ctx.InputType(0));
    ctx.AllowInPlace();
  }
  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    if (run.phase() == caffe::TEST) return;
    ApplyDropout(run.device(), DropoutMask(param_, run), Same{}, run.Input(0), run.Output(0));
  }
  // The mask is a function of the pass, so Backward computes it again instead of storing it.
  void Backward(const RunContext& run) override {
    if (run.phase() == caffe::TEST) return;
    ApplyDropout(run.device(), DropoutMask(param_, run), Same{}, run.GradOutput(0),
                 run.GradInput(0));
  }

 private:
  caffe::DropoutParameter param_;
};

const RegisterLayer<Dropout> kDropout(
    "Dropout",
    {.text = "Sets a random share of the values to 0 in training; copies its input in testing.\n"
             "The other values are divided by 1 - dropout_ratio. Any shape; may work in place. "
             "dropout_ratio: at least 0 and below 1, default 0.5. The choice depends only on the "
             "seed, the layer's name, the pass and the element.",
     .param = "dropout_param",
     .dtypes = DtypePolicy::kConfigurable});

}  // namespace
}  // namespace trainer
