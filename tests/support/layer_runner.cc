#include "support/layer_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/layer_checks.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "support/test_layers.h"
#include "trainer/backend/device/graph_capture.h"
#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kLayer[] = "it";

// Runs the tested layer from a capture of it, if the device can capture and the net's passes would
// be captured.
void RunNode(const Net& net, NodeId id, Direction, const std::function<void()>& run) {
  const GraphCapture* const capture = net.device().capture();
  const Node& node = net.graph().nodes[id];
  const bool tested = node.spec.name() == kLayer;
  const bool on_host =
      node.signature.runs_on_host || node.signature.uses_all_reduce;  // the pass may wait for these
  if (capture == nullptr || !tested || !net.RunsAhead() || on_host) return run();
  capture->Capture(run)->Launch();
}

std::string NetText(const std::string& prototxt, const std::vector<Shape>& inputs,
                    const RunnerOptions& options) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += Join("layer { name: 'x", i, "' type: 'TestSource' top: 'x", i,
                 "' parameter_param { shape { ");
    for (const int64_t length : inputs[i].dims()) text += Join("dim: ", length, " ");
    text += "} } } ";
  }
  text += Join("\nlayer { name: '", kLayer, "'");
  for (size_t i = 0; i < inputs.size(); ++i) text += Join(" bottom: 'x", i, "'");
  std::string tops;
  for (int i = 0; i < options.outputs; ++i) {
    const char* stem = options.in_place && i == 0 ? "x" : "y";
    text += Join(" top: '", stem, i, "'");
    tops += Join(" bottom: '", stem, i, "'");
  }
  text += "\n" + prototxt + "\n";
  const bool is_loss = prototxt.find("Loss\"") != std::string::npos;
  for (int i = 0; is_loss && i < options.outputs; ++i) text += "loss_weight: 0 ";
  text += "}\n";
  if (options.outputs == 0) return text;
  const int standard = is_loss ? 1 : options.outputs;
  const int learning = options.learning_outputs < 0 ? standard : options.learning_outputs;
  if (learning < options.outputs) {
    for (int i = 0; i < options.outputs; ++i) {
      tops += Join(" propagate_down: ", i < learning ? "true" : "false");
    }
  }
  return text + Join("layer { name: 'end' type: 'TestLoss'", tops, " top: 'end' }\n");
}

NetOptions OptionsOf(const RunnerOptions& options) {
  NetOptions net;
  net.state = StateOf(options.phase);
  net.training = options.training;
  net.seed = options.seed;
  net.memory = options.memory;
  net.log = false;
  net.output_files = options.output_files;
  return net;
}

const Device& TheDevice() {
  static const std::unique_ptr<Device> device = MakeTestDevice();
  return *device;
}

}  // namespace

class LayerRunner::Impl {
 public:
  Impl(const std::string& text, const RunnerOptions& options)
      : spec(NetFromText(text)),
        params(TheDevice()),
        net(spec, OptionsOf(options), TheDevice(), params) {
    net.AddHook(&hook);
    for (const Node& node : net.graph().nodes) {
      if (node.spec.name() == kLayer) layer = node.layer.get();
      if (auto* loss = dynamic_cast<TestLoss*>(node.layer.get())) end = loss;
    }
  }

  NetSpec spec;
  ParamStore params;
  NodeHook hook = RunNode;
  Net net;
  Layer* layer = nullptr;
  TestLoss* end = nullptr;
};

LayerRunner::LayerRunner(const std::string& prototxt, const std::vector<Shape>& inputs,
                         const RunnerOptions& options)
    : type_(TypeIn(prototxt)),
      impl_(std::make_unique<Impl>(NetText(prototxt, inputs, options), options)) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_params_.push_back(impl_->params.Find(Join("x", i, ":0")));
  }
  for (Param* param : impl_->net.params()) {
    if (param->layer == kLayer) layer_params_.push_back(param);
  }
}

LayerRunner::~LayerRunner() = default;

Layer& LayerRunner::layer() const { return *impl_->layer; }

void LayerRunner::SetInput(int i, const std::vector<float>& values) {
  Param& param = *input_params_.at(static_cast<size_t>(i));
  ASSERT_EQ(static_cast<int64_t>(values.size()), param.count()) << "input " << i;
  impl_->params.Import(param, values, param.weight);
}

void LayerRunner::SetParam(int i, const std::vector<float>& values) {
  Param& param = *layer_params_.at(static_cast<size_t>(i));
  ASSERT_EQ(static_cast<int64_t>(values.size()), param.count()) << "parameter " << i;
  impl_->params.Import(param, values, param.weight);
}

std::vector<float> LayerRunner::GetParam(int i) const {
  std::vector<float> values(static_cast<size_t>(ParamAt(i).count()));
  impl_->params.Export(ParamAt(i), ParamAt(i).weight, values);
  return values;
}

std::vector<float> LayerRunner::SomeValues(int64_t count, uint32_t stream, float kink, float gap) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = HashWord(stream, static_cast<uint32_t>(i));
    float value = static_cast<float>(static_cast<int>(word % 33) - 16) / 16;
    if (std::fabs(value - kink) < gap) value = kink + (word % 2 == 0 ? gap : -gap);
    values.push_back(value);
  }
  return values;
}

void LayerRunner::Forward(uint32_t pass) {
  impl_->net.SetPasses(pass);
  try {
    impl_->net.Forward();
  } catch (const Error& error) {
    LayerChecks::Get().Refused(type_, error.what());
    throw;
  }
  if (!TestExpectsValues()) return;
  LayerChecks::Get().Made(type_, LayerCheck::kValues);
  if (HasImage()) LayerChecks::Get().Made(type_, LayerCheck::kImages);
}

// Returns whether an input or output is stored in another order than row-major.
bool LayerRunner::HasImage() const {
  for (const Param* input : input_params_) {
    if (IsNhwc(input->shape)) return true;
  }
  if (impl_->end == nullptr) return false;
  for (const TestLoss::Input& output : impl_->end->inputs()) {
    if (IsNhwc(output.shape)) return true;
  }
  return false;
}

std::vector<float> LayerRunner::Forward(const std::vector<float>& x) {
  SetInput(0, x);
  Forward();
  return Output(0);
}

void LayerRunner::Backward(const std::vector<std::vector<float>>& output_gradients) {
  for (size_t i = 0; i < output_gradients.size(); ++i) {
    std::vector<float>& to = impl_->end->inputs().at(i).gradients;
    if (output_gradients[i].empty()) continue;
    ASSERT_EQ(output_gradients[i].size(), to.size()) << "gradient of output " << i;
    to = output_gradients[i];
  }
  impl_->params.ClearGradients();
  impl_->net.Backward();
}

const std::vector<float>& LayerRunner::Output(int i) const {
  return impl_->end->inputs().at(static_cast<size_t>(i)).values;
}

const Shape& LayerRunner::OutputShape(int i) const {
  return impl_->end->inputs().at(static_cast<size_t>(i)).shape;
}

std::vector<float> LayerRunner::InputGradient(int i) const {
  const Param& param = *input_params_.at(static_cast<size_t>(i));
  return ReadFloats(TheDevice(), param.grad, param.count());
}

std::vector<float> LayerRunner::ParamGradient(int i) const {
  std::vector<float> values(static_cast<size_t>(ParamAt(i).count()));
  impl_->params.Export(ParamAt(i), ParamAt(i).grad, values);
  return values;
}

float LayerRunner::Objective() {
  Forward();
  double sum = 0;
  for (const TestLoss::Input& input : impl_->end->inputs()) {
    for (size_t k = 0; k < input.values.size(); ++k) {
      sum += static_cast<double>(input.values[k]) * input.gradients[k];
    }
  }
  return static_cast<float>(sum);
}

void LayerRunner::CompareWithDifferences(Param* param, const std::vector<float>& analytic,
                                         const std::string& what, const GradientCheck& check) {
  std::vector<float> at(analytic.size());
  impl_->params.Export(*param, param->weight, at);
  const std::vector<float> centre = at;
  for (size_t i = 0; i < at.size(); ++i) {
    at[i] = centre[i] + check.step;
    impl_->params.Import(*param, at, param->weight);
    const float above = Objective();
    at[i] = centre[i] - check.step;
    impl_->params.Import(*param, at, param->weight);
    const float below = Objective();
    at[i] = centre[i];
    const float numeric = (above - below) / (2 * check.step);
    const float size = std::max({1.0f, std::fabs(numeric), std::fabs(analytic[i])});
    EXPECT_NEAR(analytic[i], numeric, check.bound * size)
        << "gradient of " << what << ", element " << i << ", value " << centre[i];
  }
  impl_->params.Import(*param, centre, param->weight);
}

void LayerRunner::ExpectGradient(const GradientCheck& check) {
  LayerChecks::Get().Made(type_, LayerCheck::kGradient);
  Forward();
  std::vector<std::vector<float>> seeds(static_cast<size_t>(check.output) + 1);
  seeds.back() = SomeValues(OutputShape(check.output).Count(), 77);
  if (seeds.back().size() == 1) seeds.back() = {1};
  Backward(seeds);
  std::vector<std::vector<float>> inputs;
  std::map<int, std::vector<float>> params;
  for (const int i : check.inputs) inputs.push_back(InputGradient(i));
  for (int i = 0; check.params && i < NumParams(); ++i) {
    if (ParamAt(i).lr_mult != 0) params[i] = ParamGradient(i);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int input = check.inputs[i];
    CompareWithDifferences(input_params_.at(static_cast<size_t>(input)), inputs[i],
                           Join("input ", input), check);
  }
  for (const auto& [i, gradient] : params) {
    CompareWithDifferences(layer_params_[static_cast<size_t>(i)], gradient, Join("parameter ", i),
                           check);
  }
}

}  // namespace trainer
