#include "shared/checks.h"
#include "shared/nchw_reshape.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Merges the axes from `axis` to `end_axis` into one: see NchwReshape.
class Flatten final : public Layer {
 public:
  explicit Flatten(const LayerSpec& spec) : spec_(spec) {}

  void Setup(SetupContext& ctx) override {
    const caffe::FlattenParameter& param = spec_.proto().flatten_param();
    const Shape& in = ctx.Input(0);
    const int first = AxisIn(spec_, "flatten_param", "axis", param.axis(), in);
    const int last = AxisIn(spec_, "flatten_param", "end_axis", param.end_axis(), in);
    if (first > last) {
      spec_.FailIn("flatten_param", "end_axis",
                   Join("end_axis ", param.end_axis(), " is before axis ", param.axis(),
                        " for an input of shape ", Dims(in)));
    }
    const int64_t merged[] = {in.Count(first, last + 1)};
    reorder_.Setup(ctx, in.Replace(first, last + 1, merged));
  }
  void Forward(const RunContext& run) override { reorder_.Forward(run); }
  void Backward(const RunContext& run) override { reorder_.Backward(run); }

 private:
  LayerSpec spec_;
  NchwReshape reorder_;
};

const RegisterLayer<Flatten> kFlatten(
    "Flatten", {.text = "Merges the axes from `axis` (default 1) to `end_axis` (default the last) "
                        "into one.\n"
                        "The numbers keep their row-major order (N, C, H, W). Images with several "
                        "channels and pixels are copied; everything else is a view.",
                .param = "flatten_param",
                .dtypes = DtypePolicy::kFollowsConsumers});

}  // namespace
}  // namespace trainer
