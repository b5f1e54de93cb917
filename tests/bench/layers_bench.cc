// Measures layers as a net runs them: bytes moved per second by the element-wise and row-wise ones,
// the update of all weights, and whole steps. `copy` is the memory's own speed in the same run.

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/net.h"
#include "update_rule.h"

namespace trainer {
namespace {

NetSpec SpecOf(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() /
                    Join("trainer_bench_", static_cast<long>(getpid()), ".prototxt");
  std::ofstream(path) << text;
  NetSpec spec = LoadNet(path.string());
  std::filesystem::remove(path);
  return spec;
}

// A net with its device and parameters.
struct Fixture {
  explicit Fixture(const std::string& text) : spec(SpecOf(text)) {
    NetOptions options;
    options.state.set_phase(caffe::TRAIN);
    options.training = true;
    options.force_backward = true;
    options.log = false;
    net = std::make_unique<Net>(spec, options, *device, params);
    net->Forward();
    net->Backward();
  }
  NetSpec spec;
  std::unique_ptr<Device> device = MakeCpuDevice();
  ParamStore params{*device};
  std::unique_ptr<Net> net;
};

constexpr int64_t kCount = 64 * 96 * 27 * 27;  // CaffeNet's norm1: 17.9 MB

// Runs one layer between a source and a loss weight; a pass reads or writes `arrays` arrays of the
// blob's size.
void LayerPass(benchmark::State& state, const std::string& layer, bool forward, double arrays) {
  const std::string source = R"(layer { name: "d" type: "DummyData" top: "x" top: "label"
    dummy_data_param { shape { dim: 64 dim: 96 dim: 27 dim: 27 } shape { dim: 64 dim: 1 dim: 27 dim: 27 }
      data_filler { type: "constant" value: 0.5 } } })";
  Fixture f(
      Join(source, "layer { name: \"it\" bottom: \"x\" top: \"y\" loss_weight: 1 ", layer, " }"));
  const NodeHook hook = [&](const Net& net, NodeId id, Direction direction,
                            const std::function<void()>& run) {
    const bool is_it = id.number == net.graph().nodes.size() - 1;
    if (!is_it || forward != (direction == Direction::kForward)) return run();
    for (auto _ : state) run();
  };
  f.net->AddHook(&hook);
  f.net->Forward();
  f.net->Backward();
  state.counters["GB/s"] = benchmark::Counter(
      arrays * kCount * sizeof(float) * 1e-9 * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

void Register(const char* name, const char* layer, double forward_arrays, double backward_arrays) {
  benchmark::RegisterBenchmark(Join(name, "/forward").c_str(), LayerPass, std::string(layer), true,
                               forward_arrays)
      ->UseRealTime();
  benchmark::RegisterBenchmark(Join(name, "/backward").c_str(), LayerPass, std::string(layer),
                               false, backward_arrays)
      ->UseRealTime();
}

void Copy(benchmark::State& state) {
  std::vector<float> from(kCount, 1.0f), to(kCount);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kCount * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.counters["GB/s"] = benchmark::Counter(
      2.0 * kCount * sizeof(float) * 1e-9 * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}
BENCHMARK(Copy)->UseRealTime();

// Runs one step of a rule on 61 million weights, as in CaffeNet. With momentum it moves 24 bytes of
// weight, gradient and state per weight, since the same pass clears the gradient.
void RuleStep(benchmark::State& state, const std::string& type) {
  constexpr int64_t kWeights = 61'000'000;
  SolverSpec spec;
  spec.proto.set_type(type);
  const auto device = MakeCpuDevice();
  const auto rule = MakeUpdateRule(spec);
  const int arrays = 2 + rule->StatesPerWeight();
  std::vector<float> numbers(static_cast<size_t>(arrays * kWeights), 0.01f);
  TensorTuple segment{kWeights, {}};
  for (int i = 0; i < arrays; ++i) segment.array[i] = numbers.data() + i * kWeights;
  const TensorList parameters(*device, {segment});
  const ParamMultipliers multipliers;
  DeviceHyperparams now{.values = {.lr = 0.01f, .weight_decay = 0.0005f}};
  UpdateArgs update;
  update.hyper = &now;
  update.multipliers = &multipliers;
  for (auto _ : state) rule->Step(*device, {parameters, 0, 1, update});
  state.counters["GB/s"] = benchmark::Counter(
      2.0 * arrays * kWeights * sizeof(float) * 1e-9 * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

// Runs LeNet on made-up data: the step without reading.
void LeNetPass(benchmark::State& state) {
  Fixture f(R"(
    layer { name: "d" type: "DummyData" top: "x" top: "label" dummy_data_param {
      shape { dim: 64 dim: 1 dim: 28 dim: 28 } shape { dim: 64 } data_filler { type: "constant" } } }
    layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1" propagate_down: false
      convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
    layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
      pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
    layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
      convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } } }
    layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
      pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
    layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
      inner_product_param { num_output: 500 weight_filler { type: "xavier" } } }
    layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
    layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
      inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" })");
  for (auto _ : state) {
    f.net->Forward();
    f.net->Backward();
  }
}
BENCHMARK(LeNetPass)->UseRealTime()->Unit(benchmark::kMillisecond);

const int kLayersRegistered = [] {
  Register("relu", "type: \"ReLU\"", 2, 3);
  Register("sigmoid", "type: \"Sigmoid\"", 2, 3);
  Register("dropout", "type: \"Dropout\"", 2, 2);
  Register("tanh", "type: \"TanH\"", 2, 3);
  Register("elu", "type: \"ELU\"", 2, 3);
  Register("square", "type: \"Power\" power_param { power: 2 }", 2, 3);
  Register("power", "type: \"Power\" power_param { power: 1.5 shift: 1 }", 2, 3);
  Register("softmax", "type: \"Softmax\"", 2, 3);
  Register("softmax_long_rows", "type: \"Softmax\" softmax_param { axis: 3 }", 2, 3);
  Register("lrn", "type: \"LRN\"", 2, 3);
  Register("lrn_within", "type: \"LRN\" lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }", 2,
           3);
  Register("pool_max", "type: \"Pooling\" pooling_param { kernel_size: 3 stride: 2 }", 1.25, 1.25);
  Register("pool_ave", "type: \"Pooling\" pooling_param { pool: AVE kernel_size: 3 stride: 2 }",
           1.25, 1.25);
  Register("pool_max_dense", "type: \"Pooling\" pooling_param { kernel_size: 3 pad: 1 }", 2, 2);
  Register("prod", "type: \"Eltwise\" bottom: \"x\" eltwise_param { operation: PROD }", 2, 4);
  Register("max", "type: \"Eltwise\" bottom: \"x\" eltwise_param { operation: MAX }", 2, 4);
  Register("concat", "type: \"Concat\" bottom: \"x\"", 4, 4);
  for (const char* type : {"SGD", "Nesterov", "Adam"}) {
    benchmark::RegisterBenchmark(Join("rule/", type).c_str(), RuleStep, std::string(type))
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  }
  return 0;
}();

}  // namespace
}  // namespace trainer
