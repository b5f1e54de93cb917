#include "support/test_layers.h"

#include "trainer/backend/layout.h"

namespace trainer {

void TestSource::Describe(DescribeContext& plan) {
  const auto& dims = spec_.proto().parameter_param().shape().dim();
  const Shape shape(std::span(dims.data(), static_cast<size_t>(dims.size())));
  plan.Param("value", shape, caffe::FillerParameter());
  plan.Out(0, shape);
  plan.Scratch(static_cast<size_t>(shape.Count()) * sizeof(float));
}

void TestSource::Forward(const RunContext& run) {
  CopyFromPlain(run.device(), run.Param(0), run.Out(0));
}

void TestSource::Backward(const RunContext& run) {
  auto* plain = reinterpret_cast<float*>(run.Scratch().data());
  CopyToPlain(run.device(), run.GradOut(0), plain);
  float* const grad = run.GradParam(0);
  for (int64_t i = 0; i < run.GradOut(0).Count(); ++i) grad[i] += plain[i];
}

void TestLoss::Describe(DescribeContext& plan) {
  inputs_.resize(static_cast<size_t>(plan.NumIn()));
  for (int i = 0; i < plan.NumIn(); ++i) {
    Input& input = inputs_[static_cast<size_t>(i)];
    input.shape = plan.In(i);
    input.values.assign(static_cast<size_t>(plan.In(i).Count()), 0.0f);
    input.gradients = input.values;
  }
  plan.Out(0, {});
}

void TestLoss::Forward(const RunContext& run) {
  double sum = 0;
  for (int i = 0; i < run.NumIn(); ++i) {
    Input& input = inputs_[static_cast<size_t>(i)];
    CopyToPlain(run.device(), run.In(i), input.values.data());
    for (size_t k = 0; k < input.values.size(); ++k) {
      sum += static_cast<double>(input.values[k]) * input.gradients[k];
    }
  }
  *run.Out(0).f32() = static_cast<float>(sum);
}

void TestLoss::Backward(const RunContext& run) {
  for (int i = 0; i < run.NumIn(); ++i) {
    if (!run.WantsGradIn(i)) continue;
    CopyFromPlain(run.device(), inputs_[static_cast<size_t>(i)].gradients.data(), run.GradIn(i));
  }
}

namespace {

const RegisterLayer<TestSource> kTestSource("TestSource", {.text = "",
                                                           .param = "",
                                                           .arity = {.min_in = 0, .max_in = 0}});
const RegisterLayer<TestLoss> kTestLoss("TestLoss",
                                        {.text = "", .param = "", .arity = {.max_in = -1}});

}  // namespace

}  // namespace trainer
