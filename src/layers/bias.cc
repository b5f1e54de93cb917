#include "common/small_array.h"
#include "trainer/backend/map.h"

namespace trainer {
namespace {

struct SameBias {
  HD float operator()(float dy) const { return dy; }
};

class Bias final : public Layer {
 public:
  explicit Bias(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    const caffe::BiasParameter& param = spec_.proto().bias_param();
    small_ = ReadSmallArray(plan, spec_, "bias_param", param.axis(), param.num_axes());
    if (small_.learned) plan.Param("bias", small_.shape, param.filler());
    plan.Out(0, plan.In(0), plan.InType(0));
    plan.AllowInPlace();
  }

  bool RecomputesAtCost() const override { return true; }
  void Forward(const RunContext& run) override {
    const float* bias = small_.learned ? run.Param(0) : run.In(1).f32();
    ScaleShift(run.device(), small_.broadcast, run.In(0), nullptr, bias, run.Out(0));
  }

  void Backward(const RunContext& run) override {
    const ConstTensor& dy = run.GradOut(0);
    if (small_.learned) {
      if (float* to = run.GradParam(0)) {
        AddRepetitions(run.device(), small_.broadcast, dy, nullptr, to);
      }
    } else if (run.WantsGradIn(1)) {
      run.device().Zero(run.GradIn(1).data, run.GradIn(1).Bytes());
      AddRepetitions(run.device(), small_.broadcast, dy, nullptr, run.GradIn(1).f32());
    }
    if (!run.WantsGradIn(0) || run.GradIn(0).data == dy.data) return;
    Map(run.device(), SameBias{}, run.GradIn(0), dy);
  }

 private:
  LayerSpec spec_;
  SmallArray small_;
};

const RegisterLayer<Bias> kBias(
    "Bias", {.text = "y = x + b. b has some axes of x and is broadcast over the others.\n"
                     "One bottom: b is a parameter with num_axes axes (default 1; -1: all), "
                     "starting at `axis` (default 1). Two bottoms: b is the second, aligned at "
                     "`axis`. May work in place.",
             .param = "bias_param",
             .arity = {.min_in = 1, .max_in = 2},
             .storage = Storage::kChosen,
             .second = Storage::kF32});

}  // namespace
}  // namespace trainer
