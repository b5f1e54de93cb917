// Measures the primitives of the CPU on the shapes of LeNet, CIFAR-10 quick, CaffeNet and
// MobileNet-v2. Each case prints the best iteration in GFLOP/s or GB/s, because other load on a
// shared machine disturbs the mean. Compare with `sgemm_peak` of the same run.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "backend/conv_images.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"

namespace trainer {
namespace {

const Device& Cpu() {
  static const std::unique_ptr<Device> device = MakeCpuDevice();
  return *device;
}

// Holds floats in device memory, all 1.
class Numbers {
 public:
  explicit Numbers(int64_t count) : data_(static_cast<float*>(Cpu().Allocate(count * 4 + 64))) {
    std::fill_n(data_, count, 1.0f);
  }
  ~Numbers() { Cpu().Free(data_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  float* get() const { return data_; }
  std::span<std::byte> bytes(size_t count) const {
    return {reinterpret_cast<std::byte*>(data_), count};
  }

 private:
  float* data_;
};

// Runs `call` and reports `work` (in billions) per second of the best run under `unit`.
void Measure(benchmark::State& state, const char* unit, double work,
             const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  call();
  for (auto _ : state) {
    const auto start = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  state.counters[unit] = work * 1e-9 / best;
  state.counters["best_ms"] = best * 1e3;
}

void RunGemm(benchmark::State& state, const GemmDesc& desc) {
  const Numbers a(desc.m * desc.k), b(desc.k * desc.n), c(desc.m * desc.n), bias(desc.n);
  const auto plan = Cpu().NewGemm(desc);
  const Numbers scratch(plan->ScratchBytes() / 4);
  state.SetLabel(plan->kernel());
  Measure(state, "GFLOP/s", 2.0 * desc.m * desc.n * desc.k, [&] {
    plan->Run(a.get(), b.get(), bias.get(), c.get(), scratch.bytes(plan->ScratchBytes()));
  });
}

enum class ConvDirection { kForward, kData, kWeight };

void RunConv(benchmark::State& state, const ConvDesc& desc, ConvDirection direction) {
  const Numbers x_data(desc.InShape().Count()), y_data(desc.OutShape().Count());
  const Numbers weight(desc.WeightShape().Count()), bias(desc.out_channels);
  const auto plan = Cpu().NewConv(desc);
  const Numbers scratch(plan->ScratchBytes() / 4 + 1);
  const auto bytes = scratch.bytes(plan->ScratchBytes());
  const Tensor x{x_data.get(), desc.InShape()}, y{y_data.get(), desc.OutShape()};
  state.SetLabel(plan->kernel());
  const double flops = 2.0 * desc.Macs(), bytes_moved = 4.0 * (x.Count() + y.Count());
  Measure(state, "GFLOP/s", flops, [&] {
    if (direction == ConvDirection::kForward) plan->Forward(x, weight.get(), bias.get(), y, bytes);
    if (direction == ConvDirection::kData) plan->BackwardData(y, weight.get(), x, bytes);
    if (direction == ConvDirection::kWeight) {
      plan->BackwardWeight(x, y, weight.get(), bias.get(), bytes);
    }
  });
  state.counters["GB/s"] = state.counters["GFLOP/s"] * bytes_moved / flops;
}

void RunPool(benchmark::State& state, const PoolDesc& desc, bool forward) {
  const Numbers x_data(desc.InShape().Count()), y_data(desc.OutShape().Count());
  const auto plan = Cpu().NewPool(desc);
  std::vector<std::byte> kept(plan->WorkspaceBytes());
  const Tensor x{x_data.get(), desc.InShape()}, y{y_data.get(), desc.OutShape()};
  state.SetLabel(plan->kernel());
  plan->Forward(x, y, kept);
  Measure(state, "GB/s", 4.0 * (x.Count() + y.Count()), [&] {
    if (forward) plan->Forward(x, y, kept);
    if (!forward) plan->Backward(y, x, kept);
  });
}

ConvDesc Square(int64_t n, int64_t c, int64_t size, int64_t m, int64_t kernel, int64_t stride = 1,
                int64_t pad = 0, int64_t group = 1) {
  return ImageConv(n, c, size, size, m, kernel, stride, pad, group);
}

PoolDesc Halving(int64_t n, int64_t c, int64_t size, int64_t kernel, PoolMethod method) {
  const int64_t out = (size - kernel + 1) / 2 + 1;
  return {.method = method,
          .batch = n,
          .channels = c,
          .in_h = size,
          .in_w = size,
          .out_h = out,
          .out_w = out,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = 2,
          .stride_w = 2};
}

void AddGemm(const std::string& name, int64_t batch, int64_t in, int64_t out) {
  const GemmDesc forward{.m = batch, .n = out, .k = in, .trans_b = true, .bias = true};
  const GemmDesc data{.m = batch, .n = in, .k = out};
  const GemmDesc weight{.m = out, .n = in, .k = batch, .trans_a = true, .accumulate = true};
  benchmark::RegisterBenchmark((name + "/forward").c_str(), RunGemm, forward)->UseRealTime();
  benchmark::RegisterBenchmark((name + "/data").c_str(), RunGemm, data)->UseRealTime();
  benchmark::RegisterBenchmark((name + "/weight").c_str(), RunGemm, weight)->UseRealTime();
}

void AddConv(const std::string& name, const ConvDesc& desc) {
  const auto add = [&](const char* suffix, ConvDirection direction) {
    benchmark::RegisterBenchmark((name + suffix).c_str(), RunConv, desc, direction)->UseRealTime();
  };
  add("/forward", ConvDirection::kForward);
  add("/data", ConvDirection::kData);
  add("/weight", ConvDirection::kWeight);
}

// Adds a depthwise layer of MobileNet-v2 with batch 32.
void AddDepthwise(int64_t channels, int64_t size, int64_t stride) {
  AddConv("mobilenet_dw_" + std::to_string(channels),
          Square(32, channels, size, channels, 3, stride, 1, channels));
}

void AddPool(const std::string& name, const PoolDesc& desc) {
  benchmark::RegisterBenchmark((name + "/forward").c_str(), RunPool, desc, true)->UseRealTime();
  benchmark::RegisterBenchmark((name + "/backward").c_str(), RunPool, desc, false)->UseRealTime();
}

const bool kRegistered = [] {
  benchmark::RegisterBenchmark("sgemm_peak", RunGemm, GemmDesc{.m = 2048, .n = 2048, .k = 2048})
      ->UseRealTime();
  AddConv("lenet_conv1", Square(64, 1, 28, 20, 5));
  AddConv("lenet_conv2", Square(64, 20, 12, 50, 5));
  AddPool("lenet_pool1", Halving(64, 20, 24, 2, PoolMethod::kMax));
  AddPool("lenet_pool2", Halving(64, 50, 8, 2, PoolMethod::kMax));
  AddGemm("lenet_ip1", 64, 800, 500);
  AddGemm("lenet_ip2", 64, 500, 10);
  AddConv("cifar_conv1", Square(100, 3, 32, 32, 5, 1, 2));
  AddConv("cifar_conv2", Square(100, 32, 16, 32, 5, 1, 2));
  AddConv("cifar_conv3", Square(100, 32, 8, 64, 5, 1, 2));
  AddPool("cifar_pool1", Halving(100, 32, 32, 3, PoolMethod::kMax));
  AddPool("cifar_pool2", Halving(100, 32, 16, 3, PoolMethod::kAverage));
  AddGemm("cifar_ip1", 100, 1024, 64);
  AddGemm("cifar_ip2", 100, 64, 10);
  AddConv("caffenet_conv1", Square(64, 3, 227, 96, 11, 4));
  AddConv("caffenet_conv2", Square(64, 96, 27, 256, 5, 1, 2, 2));
  AddConv("caffenet_conv3", Square(64, 256, 13, 384, 3, 1, 1));
  AddConv("caffenet_conv4", Square(64, 384, 13, 384, 3, 1, 1, 2));
  AddConv("caffenet_conv5", Square(64, 384, 13, 256, 3, 1, 1, 2));
  AddPool("caffenet_pool1", Halving(64, 96, 55, 3, PoolMethod::kMax));
  AddConv("resnet_56", Square(16, 64, 56, 64, 3, 1, 1));
  AddConv("resnet_28", Square(16, 128, 28, 128, 3, 1, 1));
  AddConv("resnet_14", Square(16, 256, 14, 256, 3, 1, 1));
  AddConv("resnet_7", Square(16, 512, 7, 512, 3, 1, 1));
  AddConv("googlenet_conv2", Square(16, 64, 56, 192, 3, 1, 1));
  AddGemm("caffenet_fc6", 64, 9216, 4096);
  AddGemm("caffenet_fc7", 64, 4096, 4096);
  AddGemm("caffenet_fc8", 64, 4096, 1000);
  AddDepthwise(32, 112, 1);
  AddDepthwise(96, 112, 2);
  AddDepthwise(144, 56, 1);
  AddDepthwise(192, 28, 1);
  AddDepthwise(384, 14, 1);
  AddDepthwise(960, 7, 1);
  return true;
}();

}  // namespace
}  // namespace trainer
