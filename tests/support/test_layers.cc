#include "support/test_layers.h"

#include "trainer/backend/layout.h"
#include "trainer/tensor/plain_order.h"

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
  const int64_t count = run.GradOut(0).Count();
  run.device().AddChannelSums({.outer = 1, .channels = count, .inner = 1},
                              ConstTensor(plain, Shape{count}), nullptr, run.GradParam(0));
}

namespace {

// f(index in memory, index in row-major order) for each number.
template <class F>
void ForPlain(const Shape& shape, F f) {
  const PlainOrder order(shape);
  for (int64_t i = 0; i < shape.Count(); ++i) {
    f(static_cast<size_t>(order.Memory(i)), static_cast<size_t>(i));
  }
}

}  // namespace

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
    std::vector<float> memory(input.values.size());
    run.device().CopyToHost(memory.data(), run.In(i).data, run.In(i).Bytes());
    ForPlain(input.shape, [&](size_t at, size_t plain) { input.values[plain] = memory[at]; });
    for (size_t k = 0; k < input.values.size(); ++k) {
      sum += static_cast<double>(input.values[k]) * input.gradients[k];
    }
  }
  const auto loss = static_cast<float>(sum);
  run.device().CopyToDevice(run.Out(0).data, &loss, sizeof(loss));
}

void TestLoss::Backward(const RunContext& run) {
  for (int i = 0; i < run.NumIn(); ++i) {
    if (!run.WantsGradIn(i)) continue;
    const Input& input = inputs_[static_cast<size_t>(i)];
    std::vector<float> memory(input.gradients.size());
    ForPlain(input.shape, [&](size_t at, size_t plain) { memory[at] = input.gradients[plain]; });
    run.device().CopyToDevice(run.GradIn(i).data, memory.data(), run.GradIn(i).Bytes());
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
