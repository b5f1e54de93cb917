// Training on a GPU that replays recorded passes: the results equal those without recording bit for
// bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recorded_nets.h"
#include "small_run.h"
#include "support/log_collector.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/text/text.h"

#ifdef TRAINER_CUDA_EMULATED
#include <emulated_gpu.h>
#endif

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

std::unique_ptr<Device> Gpu(bool graphs) {
  return MakeGpuDevice({.deterministic = true, .graphs = graphs});
}

class RecordedTest : public testing::Test {
 protected:
  void SetUp() override {
    if (FindGpus().gpus.empty()) GTEST_SKIP() << "there is no GPU, not even an emulated one";
  }
};

const std::string kRecordedFields = "base_lr: 0.05 momentum: 0.9 weight_decay: 0.001 display: 3 ";
const std::string kPolicy = "lr_policy: \"inv\" gamma: 0.1 power: 0.75 ";
const std::string kInv = kRecordedFields + kPolicy;

void ExpectTheSame(const std::string& net, const std::string& more) {
  const std::string policy = more.find("lr_policy") == more.npos ? kPolicy : "gamma: 0.1 ";
  const std::string fields = kRecordedFields + policy + "max_iter: 11 " + more;
  const std::string scaled = kTooLarge + net;
  SmallRun plain(fields, scaled, {}, "", Gpu(false)), recorded(fields, scaled, {}, "", Gpu(true));
  plain.Solve();
  recorded.Solve();
  EXPECT_EQ(recorded.observer.losses, plain.observer.losses) << more;
  EXPECT_EQ(recorded.observer.tests, plain.observer.tests) << more;
  EXPECT_EQ(recorded.observer.notes, plain.observer.notes) << more;
  EXPECT_THAT(recorded.Weights(), ElementsAreArray(plain.Weights())) << more;
}

TEST_F(RecordedTest, ARunTellsAndLearnsTheSameBitForBit) {
  for (const char* const net : {kImages, kSequences}) {
    for (const char* const more : {"test_interval: 4 test_iter: 1 snapshot: 5 ", "iter_size: 2 ",
                                   "type: 'Adam' ", "clip_gradients: 0.1 ", "clip_value: 0.01 ",
                                   "type: 'LARS' ema_decay: 0.9 ", "loss_scale: 0 "}) {
      ExpectTheSame(net, more);
    }
  }
  for (const char* const more :
       {"type: 'AdamW' loss_scale: 0 loss_scale_window: 2 ", "snapshot_diff: true ",
        "type: 'Adam' ema_decay: 0.9 clip_gradients: 0.1 iter_size: 2 ",
        "lr_policy: 'multistep' stepvalue: 4 stepvalue: 7 clip_gradients: 0.1 ",
        "lr_policy: 'plateau' plateau_winsize: 1 plateau_winsize: 2 clip_value: 0.01 "}) {
    ExpectTheSame(kSequences, more);
  }
}

TEST_F(RecordedTest, ARunIn16BitsTellsAndLearnsTheSameBitForBit) {
  for (const std::string type : {"BFLOAT16", "FLOAT16"}) {
    ExpectTheSame(Join("default_forward_type: ", type, " ", kImages),
                  "test_interval: 4 test_iter: 1 ema_decay: 0.9 ");
  }
}

TEST_F(RecordedTest, AResumedRunGoesOnBitForBit) {
  for (const char* net : {kImages, kSequences}) {
    const std::string fields = kInv + "snapshot: 5 ";
    SmallRun whole(fields + "max_iter: 12 ", net, {}, "", Gpu(true));
    whole.Solve();
    SolverOptions options;
    options.snapshot = whole.PathOf("s_iter_5.solverstate");
    SmallRun rest(fields + "max_iter: 12 ", net, options, whole.folder_path, Gpu(true));
    rest.Solve();
    EXPECT_THAT(rest.Weights(), ElementsAreArray(whole.Weights()));
  }
}

TEST_F(RecordedTest, DebugInfoIsOfPassesThatAreNotRecorded) {
  const std::string fields = kInv + "max_iter: 8 debug_info: true ";
  SmallRun plain(fields, kImages, {}, "", Gpu(false)), recorded(fields, kImages, {}, "", Gpu(true));
  plain.Solve();
  recorded.Solve();
  EXPECT_THAT(recorded.Weights(), ElementsAreArray(plain.Weights()));
}

TEST_F(RecordedTest, SaysOnceWhatOfAPassAndOfAStepWasRecorded) {
  const LogCollector log;
  SmallRun run(kInv + "max_iter: 6 ", kImages, {}, "", Gpu(true));
  run.Solve();
  std::string recorded;
  for (const std::string& line : log.lines) {
    if (line.find("Recorded a ") == line.npos) continue;
    EXPECT_THAT(line, HasSubstr("from layer 'conv1' on as a CUDA graph: "));
    EXPECT_THAT(line, HasSubstr(" kernels, copies and fills start with one call"));
    recorded += line.find("a pass") != line.npos ? "pass " : "step ";
  }
  EXPECT_EQ(recorded, "step pass ");
}

#ifdef TRAINER_CUDA_EMULATED
struct StepCounts {
  int64_t graphs, kernels, copies, fills, allocations;
};

// Returns the operations of one step in the steady state that is not displayed.
StepCounts CountStep(SmallRun& run) {
  for (int i = 0; i < 5; ++i) run.solver->RunStep(/*async=*/true);
  emulated_gpu::ResetCounters();
  run.solver->RunStep(/*async=*/true);
  const emulated_gpu::Counters now = emulated_gpu::Count();
  return {now.graph_launches, now.launches + now.calls_to_libraries, now.copies, now.fills,
          now.allocations + now.frees + now.host_allocations + now.host_frees};
}

TEST_F(RecordedTest, AStepIsOneGraphAndLittleMore) {
  const std::string fixed = "lr_policy: 'fixed' ";
  for (const std::string& more :
       {fixed, fixed + "clip_gradients: 1 ", fixed + "type: 'LARS' ", fixed + "loss_scale: 64 ",
        fixed + "ema_decay: 0.05 ", fixed + "type: 'Adam' ", kPolicy, kPolicy + "iter_size: 2 "}) {
    const std::string fields = "base_lr: 0.01 momentum: 0.9 max_iter: 50 " + more;
    SmallRun run(fields, kImages, {}, "", Gpu(true));
    const StepCounts counts = CountStep(run);
    const int passes = more.find("iter_size") == more.npos ? 1 : 2;
    EXPECT_EQ(counts.graphs, passes) << more;
    EXPECT_EQ(counts.allocations, 0) << more;
    // Each pass runs one kernel, which orders the values of DummyData; a rate or count that differs
    // from the previous step takes one more kernel.
    const bool varies = more.find("fixed") == more.npos || more.find("Adam") != more.npos;
    EXPECT_EQ(counts.kernels, passes + (varies ? 1 : 0)) << more;
    EXPECT_EQ(counts.fills, 0) << more;
    SmallRun plain(fields, kImages, {}, "", Gpu(false));
    EXPECT_GT(CountStep(plain).kernels, 40);
  }
}

// The injected error acts like a layer that reads from the device in each pass without declaring
// it.
TEST_F(RecordedTest, WhatCannotBeRecordedIsTrainedWithout) {
  const std::string fields = kInv + "max_iter: 6 ";
  SmallRun plain(fields, kImages, {}, "", Gpu(false)), broken(fields, kImages, {}, "", Gpu(true));
  plain.Solve();
  const LogCollector log;
  broken.solver->Step();
  emulated_gpu::InjectError(emulated_gpu::CallKind::kCapture, 2, 900);
  broken.Solve();
  EXPECT_THAT(log.lines, testing::Contains(HasSubstr("Passes of net '' are not recorded as a CUDA "
                                                     "graph: ")));
  EXPECT_THAT(broken.Weights(), ElementsAreArray(plain.Weights()));
}
#endif

}  // namespace
}  // namespace trainer
