// Counts the operations that a step of common nets queues on the emulated GPU. All kernels but the
// smallest compute nothing.

#ifdef TRAINER_CUDA_EMULATED

#include <emulated_gpu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "made_up_model.h"
#include "small_run.h"
#include "support/log_collector.h"
#include "trainer/backend/device/gpu.h"

namespace trainer {
namespace {

struct Model {
  const char* folder;
  std::vector<int64_t> image;  // (C, H, W)
  int recorded;                // kernels, copies and fills of a step
  caffe::Type type = caffe::FLOAT;
  int reads = 1;  // per step: losses and faults; with a loss scale, also the update's decision
};
void PrintTo(const Model& model, std::ostream* out) { *out << model.folder; }

// During its lifetime, only kernels of one block run; they compute the loss.
struct OnlySmallKernels {
  OnlySmallKernels() { emulated_gpu::SetMostBlocks(1); }
  ~OnlySmallKernels() { emulated_gpu::SetMostBlocks(~uint64_t{0}); }
};

int RecordedOperations(const LogCollector& log) {
  for (const std::string& line : log.lines) {
    const size_t end = line.find(" kernels, copies and fills");
    if (end != line.npos) return std::stoi(line.substr(line.rfind(' ', end - 1) + 1));
  }
  return -1;
}

class GpuCountsTest : public testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(Of, GpuCountsTest,
                         testing::Values(Model{"lenet", {1, 28, 28}, 34},
                                         Model{"caffenet", {3, 227, 227}, 65},
                                         Model{"googlenet", {3, 224, 224}, 429},
                                         Model{"resnet50", {3, 224, 224}, 635},
                                         Model{"caffenet", {3, 227, 227}, 80, caffe::FLOAT16, 2}),
                         [](const auto& model) {
                           const bool f16 = model.param.type == caffe::FLOAT16;
                           return std::string(model.param.folder) + (f16 ? "_f16" : "");
                         });

TEST_P(GpuCountsTest, AStepIsOneGraphAndNoWait) {
  const OnlySmallKernels small;
  const LogCollector log;
  SmallRun run("base_lr: 0.01 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.0005 max_iter: 90",
               NetText({.folder = GetParam().folder,
                        .image = GetParam().image,
                        .small_products = true,
                        .type = GetParam().type}),
               {}, "", MakeGpuDevice({.deterministic = true}));
  for (int i = 0; i < 4; ++i) run.solver->RunStep(/*async=*/true);
  constexpr int kSteps = 3;
  emulated_gpu::ResetCounters();
  for (int i = 0; i < kSteps; ++i) run.solver->RunStep(/*async=*/true);
  const emulated_gpu::Counters counts = emulated_gpu::Count();
  EXPECT_EQ(counts.graph_launches, kSteps);
  EXPECT_EQ(counts.launches, 0);
  EXPECT_EQ(counts.calls_to_libraries, 0);
  EXPECT_EQ(counts.copies, kSteps * GetParam().reads);
  EXPECT_EQ(counts.fills, 0);
  EXPECT_EQ(counts.allocations + counts.frees, 0);
  EXPECT_EQ(counts.host_allocations + counts.host_frees, 0);
  EXPECT_EQ(counts.synchronizations, kSteps * GetParam().reads) << "for the step before";
  EXPECT_EQ(RecordedOperations(log), GetParam().recorded);
}

}  // namespace
}  // namespace trainer

#endif
