// What a step of usual nets reads and writes of a GPU's memory, counted by the emulated one.

#ifdef TRAINER_CUDA_EMULATED

#include <emulated_gpu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "made_up_model.h"
#include "small_run.h"
#include "trainer/backend/gpu.h"
#include "trainer/net/traffic.h"

namespace trainer {
namespace {

// While one lives, what kernels touch is counted, and libraries compute nothing.
struct CountsBytes {
  CountsBytes() {
    emulated_gpu::CountBytes(true);
    emulated_gpu::SetMostBlocks(emulated_gpu::kManyBlocks - 1);
  }
  ~CountsBytes() {
    emulated_gpu::CountBytes(false);
    emulated_gpu::SetMostBlocks(emulated_gpu::kManyBlocks);
  }
};

double Moved() {
  const emulated_gpu::Counters counts = emulated_gpu::Count();
  return static_cast<double>(counts.read_bytes + counts.written_bytes);
}

class GpuBytesTest : public testing::TestWithParam<MadeUpModel> {};

INSTANTIATE_TEST_SUITE_P(Of, GpuBytesTest,
                         testing::Values(MadeUpModel{"lenet", {1, 28, 28}, 64},
                                         MadeUpModel{"caffenet", {3, 227, 227}, 4, true},
                                         MadeUpModel{"googlenet", {3, 224, 224}, 2},
                                         MadeUpModel{"resnet50", {3, 224, 224}, 2}),
                         [](const auto& model) { return std::string(model.param.folder); });

TEST_P(GpuBytesTest, Explore) {
  emulated_gpu::SetMostBlocks(1);
  SmallRun run("base_lr: 0.01 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.0005 max_iter: 90",
               NetText(GetParam()), {}, "", MakeGpuDevice({.deterministic = true}));
  Net& net = run.solver->train_net();
  run.solver->Step();
  const CountsBytes counts;
  struct Sum {
    double forward = 0, backward = 0, least_forward = 0, least_backward = 0;
  };
  std::map<std::string, Sum> sums;
  net.BeginPass();
  const auto measure = [&](auto&& f) {
    run.device->Synchronize();
    emulated_gpu::ResetCounters();
    f();
    run.device->Synchronize();
    return Moved() * 1e-6;
  };
  const auto type_of = [&](int i) {
    std::string type = net.LayerAt(i).type();
    for (int k = 0; k < net.NumLayers(); ++k) {
      if (net.FusedInto(k) == i) type += "+" + net.LayerAt(k).type();
    }
    return type;
  };
  for (int i = 0; i < net.NumLayers(); ++i) {
    Sum& sum = sums[type_of(i)];
    sum.forward += measure([&] { net.ForwardLayer(i); });
    sum.least_forward += 1e-6 * static_cast<double>(TrafficOf(net, i).forward);
  }
  for (int i = net.NumLayers(); i-- > 0;) {
    Sum& sum = sums[type_of(i)];
    sum.backward += measure([&] { net.BackwardLayer(i); });
    sum.least_backward += 1e-6 * static_cast<double>(TrafficOf(net, i).backward);
  }
  for (const auto& [type, s] : sums) {
    std::printf("%-30s %9.2f of %9.2f MB forward, %9.2f of %9.2f backward\n", type.c_str(),
                s.forward, s.least_forward, s.backward, s.least_backward);
  }
}

}  // namespace
}  // namespace trainer

#endif
