#include "support/test_layers.h"

#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {

void TestSource::Setup(SetupContext& ctx) {
  const auto& dims = spec_.proto().parameter_param().shape().dim();
  const Shape shape(std::span(dims.data(), static_cast<size_t>(dims.size())));
  ctx.Param("value", shape, caffe::FillerParameter());
  ctx.Output(0, shape);
  ctx.Scratch(static_cast<size_t>(shape.Count()) * sizeof(float));
}

void TestSource::Forward(const RunContext& run) {
  CopyFromNchw(run.device(), run.Param(0), run.Output(0));
}

void TestSource::Backward(const RunContext& run) {
  auto* plain = reinterpret_cast<float*>(run.Scratch().data());
  CopyToNchw(run.device(), run.GradOutput(0), plain);
  const int64_t count = run.GradOutput(0).Count();
  run.device().AddChannelSums({.outer = 1, .channels = count, .inner = 1},
                              ConstTensor(plain, Shape{count}), nullptr, run.GradParam(0));
}

namespace {

// Calls f(index in memory, index in row-major order) for each number.
template <class F>
void ForPlain(const Shape& shape, F f) {
  const NchwOrder order(shape);
  for (int64_t i = 0; i < shape.Count(); ++i) {
    f(static_cast<size_t>(order.Memory(i)), static_cast<size_t>(i));
  }
}

}  // namespace

void TestLoss::Setup(SetupContext& ctx) {
  inputs_.resize(static_cast<size_t>(ctx.NumInputs()));
  for (int i = 0; i < ctx.NumInputs(); ++i) {
    Input& input = inputs_[static_cast<size_t>(i)];
    input.shape = ctx.Input(i);
    input.values.assign(static_cast<size_t>(ctx.Input(i).Count()), 0.0f);
    input.gradients = input.values;
  }
  ctx.Output(0, {});
}

void TestLoss::Forward(const RunContext& run) {
  double sum = 0;
  for (int i = 0; i < run.NumInputs(); ++i) {
    Input& input = inputs_[static_cast<size_t>(i)];
    std::vector<float> memory(input.values.size());
    run.device().CopyToHost(memory.data(), run.Input(i).data, run.Input(i).Bytes());
    ForPlain(input.shape, [&](size_t at, size_t plain) { input.values[plain] = memory[at]; });
    for (size_t k = 0; k < input.values.size(); ++k) {
      sum += static_cast<double>(input.values[k]) * input.gradients[k];
    }
  }
  const auto loss = static_cast<float>(sum);
  run.device().CopyToDevice(run.Output(0).data, &loss, sizeof(loss));
}

void TestLoss::Backward(const RunContext& run) {
  for (int i = 0; i < run.NumInputs(); ++i) {
    if (!run.NeedsGradInput(i)) continue;
    const Input& input = inputs_[static_cast<size_t>(i)];
    std::vector<float> memory(input.gradients.size());
    ForPlain(input.shape, [&](size_t at, size_t plain) { memory[at] = input.gradients[plain]; });
    run.device().CopyToDevice(run.GradInput(i).data, memory.data(), run.GradInput(i).Bytes());
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
