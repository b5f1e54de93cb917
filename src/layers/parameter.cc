#include "common/blob_shapes.h"
#include "trainer/backend/layout.h"
#include "trainer/backend/map.h"

namespace trainer {
namespace {

constexpr char kParam[] = "parameter_param";

struct AddGradient {
  const float* dy;
  float* dweight;
  PlainOrder order;
  HD void operator()(int64_t i) const { dweight[i] += dy[order.Memory(i)]; }
};

class Parameter final : public Layer {
 public:
  explicit Parameter(const LayerSpec& spec) : spec_(spec) {}

  void Describe(DescribeContext& plan) override {
    const caffe::ParameterParameter& param = spec_.proto().parameter_param();
    if (!param.has_shape()) spec_.Fail("parameter_param has no shape; give the size of the weight");
    const Shape shape = ShapeOf(spec_, kParam, "shape", param.shape());
    plan.Param("weight", shape, caffe::FillerParameter());
    plan.Out(0, shape);
  }
  void Forward(const RunContext& run) override {
    CopyFromPlain(run.device(), run.Param(0), run.Out(0));
  }
  void Backward(const RunContext& run) override {
    if (run.GradParam(0) == nullptr) return;
    const ConstTensor& dy = run.GradOut(0);
    ForEach(run.device(), dy.Count(),
            AddGradient{dy.f32(), run.GradParam(0), PlainOrder(dy.shape)});
  }

 private:
  LayerSpec spec_;
};

const RegisterLayer<Parameter> kParameter(
    "Parameter", {.text = "A learned weight as an output, for other layers to use as an input.\n"
                          "No bottom; the top has parameter_param.shape. The weight starts at 0.",
                  .param = kParam,
                  .arity = {.min_in = 0, .max_in = 0}});

}  // namespace
}  // namespace trainer
