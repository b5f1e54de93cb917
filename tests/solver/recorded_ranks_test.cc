// Ranks with one GPU each replay recorded passes: the results equal those without recording bit for
// bit. The ranks are threads, and the host computes their sums.

#ifdef TRAINER_CUDA_EMULATED

#include <emulated_gpu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>

#include "recorded_nets.h"
#include "small_run.h"
#include "support/log_collector.h"
#include "support/thread_group.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/backend/device/gpu_communicator.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

struct LearnedRecordedRanks {
  std::vector<float> weights, losses, tests;
  std::vector<std::string> notes;
  std::string error;
};

struct Setting {
  int ranks = 2;
  bool graphs = true;
  size_t bucket_floats = 100;
  std::string snapshot = {};
};

struct RankRun {
  const Device& device;
  RecordingObserver& observer;
  Solver& solver;
};

constexpr char kRecordedRanksFields[] =
    "base_lr: 0.05 lr_policy: 'inv' gamma: 0.1 power: 0.75 weight_decay: 0.001 display: 3 "
    "max_iter: 9 random_seed: 3 ";

class RecordedRanksTest : public testing::Test {
 protected:
  void SetUp() override {
    emulated_gpu::Options options;
    options.devices.resize(3);
    emulated_gpu::Reset(options);
  }
  void TearDown() override { emulated_gpu::Reset(); }

  void Write(const std::string& fields, const std::string& net,
             const std::string& common = kRecordedRanksFields) const {
    WriteText(folder_ / "net.prototxt", net);
    WriteText(folder_ / "solver.prototxt",
              Join("net: '", folder_ / "net.prototxt", "' snapshot_prefix: '", folder_ / "s", "' ",
                   common, fields));
  }

  // Calls work(run, rank) on each rank.
  void OnRanks(const Setting& setting,
               const std::function<void(RankRun run, int rank)>& work) const {
    Meeting meeting(setting.ranks);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < setting.ranks; ++rank) {
      threads.emplace_back([&, rank] {
        const auto device =
            MakeGpuDevice({.id = rank, .deterministic = true, .graphs = setting.graphs});
        ThreadGroup host(meeting, rank, false);
        const auto group = MakeStagedGroup(*device, {&host, [] {}, setting.bucket_floats});
        SolverOptions options;
        options.group = group.get();
        options.snapshot = setting.snapshot;
        RecordingObserver observer;
        const SolverSpec spec = LoadSolver(folder_ / "solver.prototxt");
        Solver solver(spec, options, *device, observer);
        work({*device, observer, solver}, rank);
      });
    }
  }

  std::vector<LearnedRecordedRanks> Train(const Setting& setting) const {
    std::vector<LearnedRecordedRanks> all(static_cast<size_t>(setting.ranks));
    OnRanks(setting, [&](RankRun run, int rank) {
      LearnedRecordedRanks& own = all[static_cast<size_t>(rank)];
      try {
        run.solver.Solve();
      } catch (const Error& error) {
        own.error = error.what();
      }
      own.weights = WeightsOf(run.solver, run.device);
      own.losses = run.observer.losses;
      own.tests = run.observer.tests;
      own.notes = run.observer.notes;
    });
    return all;
  }

  std::vector<LearnedRecordedRanks> ExpectTheSame(const std::string& net, const std::string& fields,
                                                  Setting setting = {}) const {
    Write(fields, net);
    setting.graphs = false;
    const std::vector<LearnedRecordedRanks> plain = Train(setting);
    setting.graphs = true;
    const std::vector<LearnedRecordedRanks> recorded = Train(setting);
    for (size_t rank = 0; rank < plain.size(); ++rank) {
      EXPECT_EQ(recorded[rank].losses, plain[rank].losses) << fields;
      EXPECT_EQ(recorded[rank].tests, plain[rank].tests) << fields;
      EXPECT_EQ(recorded[rank].notes, plain[rank].notes) << fields;
      EXPECT_EQ(recorded[rank].error, plain[rank].error) << fields;
      EXPECT_THAT(recorded[rank].weights, ElementsAreArray(plain[rank].weights)) << fields;
      EXPECT_EQ(recorded[rank].losses, recorded[0].losses) << fields;
    }
    return recorded;
  }

  TempFolder folder_;
};

TEST_F(RecordedRanksTest, TellAndLearnTheSameBitForBit) {
  const std::string images = kImages, sequences = kSequences, scaled = kTooLarge + sequences;
  ExpectTheSame(images, "momentum: 0.9 test_iter: 1 test_interval: 4 ema_decay: 0.9 ");
  ExpectTheSame(images, "type: 'Adam' iter_size: 2 ");
  ExpectTheSame(images, "momentum: 0.9 clip_gradients: 0.1 ", {.ranks = 3});
  ExpectTheSame(sequences, "momentum: 0.9 ", {.ranks = 3, .bucket_floats = 1});
  ExpectTheSame(sequences, "type: 'LARS' ", {.bucket_floats = 100000});
  ExpectTheSame(sequences, "momentum: 0.9 iter_size: 3 snapshot_diff: true ");
  const std::vector<LearnedRecordedRanks> skipped =
      ExpectTheSame(scaled, "loss_scale: 0 type: 'Adam' ");
  EXPECT_THAT(skipped[0].notes, Contains(HasSubstr("the update is skipped")));
}

TEST_F(RecordedRanksTest, In16BitsTellAndLearnTheSameBitForBit) {
  for (const char* type : {"BFLOAT16", "FLOAT16"}) {
    ExpectTheSame(Join("default_forward_type: ", type, " ", kImages), "momentum: 0.9 ");
  }
}

TEST_F(RecordedRanksTest, GoOnFromTheirSnapshotBitForBit) {
  Write("momentum: 0.9 snapshot: 5 ema_decay: 0.9 ", kSequences);
  const std::vector<LearnedRecordedRanks> whole = Train({});
  const std::vector<LearnedRecordedRanks> rest =
      Train({.snapshot = folder_ / "s_iter_5.solverstate"});
  EXPECT_THAT(rest[1].weights, ElementsAreArray(whole[1].weights));
}

// Every rank reads this same batch, and the sum of two equal numbers is exact.
const char kConstant[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label" dummy_data_param {
        shape { dim: 4 dim: 3 dim: 7 dim: 7 } shape { dim: 4 }
        data_filler { type: "constant" value: 0.7 } data_filler { type: "constant" value: 2 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
        convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

// Some cases have averaged weights or 16-bit copies of weights, which the update writes.
TEST_F(RecordedRanksTest, WithOneBatchForAllLearnWhatOneLearns) {
  for (const char* type : {"FLOAT", "BFLOAT16"}) {
    for (const char* fields :
         {"momentum: 0.9 ema_decay: 0.9 test_iter: 1 test_interval: 4 ", "clip_gradients: 0.1 "}) {
      Write(fields, Join("default_forward_type: ", type, " ", kConstant));
      const std::vector<LearnedRecordedRanks> one = Train({.ranks = 1}), two = Train({});
      EXPECT_THAT(two[1].weights, ElementsAreArray(one[0].weights)) << type << fields;
      EXPECT_EQ(two[0].losses, one[0].losses) << type << fields;
      EXPECT_EQ(two[0].tests, one[0].tests) << type << fields;
    }
  }
}

struct Counted {
  int64_t graphs, kernels, copies, fills, waits, allocations;
};

class RankCountsTest : public RecordedRanksTest {
 protected:
  // Returns the operations in a step of one rank in the steady state.
  Counted CountSteps(const Setting& setting) const {
    constexpr int kSteps = 3;
    std::barrier meeting(setting.ranks);
    emulated_gpu::Counters counters;
    const auto at_once = [&](int rank, const std::function<void()>& work) {
      meeting.arrive_and_wait();
      if (rank == 0) work();
      meeting.arrive_and_wait();
    };
    OnRanks(setting, [&](RankRun run, int rank) {
      for (int i = 0; i < 5; ++i) run.solver.RunStep(/*async=*/true);
      at_once(rank, emulated_gpu::ResetCounters);
      for (int i = 0; i < kSteps; ++i) run.solver.RunStep(/*async=*/true);
      at_once(rank, [&] { counters = emulated_gpu::Count(); });
    });
    const int64_t all = int64_t{kSteps} * setting.ranks;
    const auto& c = counters;
    EXPECT_EQ(c.launches % all + c.copies % all, 0) << "all steps are alike";
    return {c.graph_launches / all,
            (c.launches + c.calls_to_libraries) / all,
            c.copies / all,
            c.fills / all,
            c.synchronizations / all,
            c.allocations + c.frees + c.host_allocations + c.host_frees + c.events};
  }
};

TEST_F(RankCountsTest, AStepIsOneGraphAndAnUpdateForEachBucket) {
  Write("", kConstant, "base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 max_iter: 90 ");
  for (const int ranks : {2, 3}) {
    for (const auto& [bucket_floats, buckets] : {std::pair(size_t{1}, 2), {size_t{1} << 20, 1}}) {
      const Counted counts = CountSteps({.ranks = ranks, .bucket_floats = bucket_floats});
      EXPECT_EQ(counts.graphs, 1);
      EXPECT_EQ(counts.kernels, buckets);
      EXPECT_EQ(counts.copies, 2 * buckets + 1) << "down and up; losses";
      EXPECT_EQ(counts.fills, 0);
      EXPECT_EQ(counts.waits, 1) << "for the loss";
      EXPECT_EQ(counts.allocations, 0);
      const Counted plain =
          CountSteps({.ranks = ranks, .graphs = false, .bucket_floats = bucket_floats});
      EXPECT_EQ(plain.graphs, 0);
      EXPECT_GT(plain.kernels, 10);
      EXPECT_EQ(plain.copies, counts.copies);
      EXPECT_EQ(plain.waits, counts.waits);
    }
  }
}

TEST_F(RecordedRanksTest, SayWhatOfAPassWasRecorded) {
  Write("momentum: 0.9 ", kImages);
  const LogCollector log;
  Train({});
  EXPECT_THAT(log.lines, Contains(AllOf(HasSubstr("Recorded a pass of net '' from layer 'conv1' "
                                                  "on as a CUDA graph: "),
                                        HasSubstr(" kernels, copies, fills and markers for the "
                                                  "sums of gradients start with one call")))
                             .Times(2));
}

TEST_F(RecordedRanksTest, WithALayerThatSumsWithinThePassRunWithoutARecording) {
  std::string net = kImages;
  const std::string bn = "top: \"bn\" }";
  net.replace(net.find(bn), bn.size(), "top: \"bn\" batch_norm_param { synchronized: true } }");
  const LogCollector log;
  ExpectTheSame(net, "momentum: 0.9 ");
  EXPECT_THAT(log.lines, Contains(HasSubstr("Passes of net '' are not recorded as a CUDA graph: "
                                            "layer 'bn' sums over the ranks within each of them")));
  EXPECT_THAT(log.lines, Not(Contains(HasSubstr("Recorded a"))));
}

// A rank with recorded passes sums gradients with a rank that cannot record.
TEST_F(RecordedRanksTest, OneThatCannotRecordTrainsWithTheOthers) {
  Write("momentum: 0.9 ", kImages);
  const std::vector<LearnedRecordedRanks> plain = Train({.graphs = false});
  const LogCollector log;
  emulated_gpu::InjectError(emulated_gpu::CallKind::kCapture, 0, 900);
  const std::vector<LearnedRecordedRanks> mixed = Train({});
  EXPECT_THAT(log.lines,
              Contains(HasSubstr("Passes of net '' are not recorded as a CUDA graph: ")).Times(1));
  EXPECT_THAT(log.lines, Contains(HasSubstr("Recorded a pass")).Times(1));
  for (const LearnedRecordedRanks& rank : mixed) {
    EXPECT_THAT(rank.weights, ElementsAreArray(plain[0].weights));
  }
}

// The fault occurs in the fourth step, which replays a recorded pass.
TEST_F(RecordedRanksTest, NameTheRecordOfAFaultAsEver) {
  std::vector<float> rows(26 * 6), labels(26);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 7);
  for (size_t i = 18; i < labels.size(); ++i) labels[i] = 9;
  Hdf5Appender file(folder_ / "rows.h5");
  file.Append("x", std::vector<int64_t>{26, 6}, rows);
  file.Append("label", std::vector<int64_t>{26}, labels);
  file.Flush();
  WriteText(folder_ / "list.txt", folder_ / "rows.h5");
  const std::string net = Join(
      "layer { name: 'rows' type: 'HDF5Data' top: 'x' top: 'label' "
      "hdf5_data_param { source: '",
      folder_ / "list.txt", "' batch_size: 3 } }", R"(
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
  const std::vector<LearnedRecordedRanks> recorded = ExpectTheSame(net, "momentum: 0.9 ");
  EXPECT_THAT(recorded[0].error, HasSubstr("label"));
  EXPECT_THAT(recorded[0].error, HasSubstr("row 18 "));
}

}  // namespace
}  // namespace trainer

#endif
