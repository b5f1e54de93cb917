#include "common/checks.h"

namespace trainer {
namespace {

class Softmax final : public Layer {
 public:
  explicit Softmax(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    const Shape& in = plan.In(0);
    const int axis = spec_.proto().softmax_param().axis();
    desc_ = {.shape = in,
             .axis = AxisIn(spec_, "softmax_param", "axis", axis, in),
             .dtype = plan.InType(0)};
    plan.Out(0, in, plan.InType(0));
    plan.KeepOutput(0);
    plan.AllowInPlace();
  }
  void Prepare(PrepareContext& plan) override { softmax_ = plan.device().MakeSoftmax(desc_); }
  void Forward(const RunContext& run) override { softmax_->Forward(run.In(0), run.Out(0)); }
  void Backward(const RunContext& run) override {
    softmax_->Backward(run.Out(0), run.GradOut(0), run.GradIn(0));
  }

 private:
  LayerSpec spec_;
  SoftmaxDesc desc_;
  std::unique_ptr<SoftmaxPlan> softmax_;
};

const RegisterLayer<Softmax> kSoftmax(
    "Softmax", {.text = "y_i = exp(x_i) / sum_j exp(x_j) along `axis` (default 1). Any shape; may "
                        "work in place.",
                .param = "softmax_param",
                .storage = Storage::kChosen});

}  // namespace
}  // namespace trainer
