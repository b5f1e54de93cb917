// Runs with layers that are frozen and learn from unfreeze_at on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "rows_run.h"
#include "small_run.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pointwise;

// Layers ip1, bn1 and scale1, each with `fields`, then dropout and ip2.
std::string TunedNet(const std::string& fields = "freeze: true", const std::string& data = "") {
  const std::string made_up = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 8 dim: 6 } shape { dim: 8 }
        data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } })";
  return Join("name: 'tuned' ", data.empty() ? made_up : data, R"(
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "a" )",
              fields, R"(
        inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "a" top: "a" )",
              fields, R"( }
layer { name: "scale1" type: "Scale" bottom: "a" top: "a" )",
              fields, R"(
        scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "a" top: "a" }
layer { name: "drop1" type: "Dropout" bottom: "a" top: "a" }
layer { name: "ip2" type: "InnerProduct" bottom: "a" top: "c"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "c" bottom: "label" top: "loss" }
)");
}

constexpr char kTuned[] =
    "base_lr: 0.05 lr_policy: 'step' stepsize: 6 gamma: 0.5 momentum: 0.9 weight_decay: 0.01 "
    "display: 1 average_loss: 3 max_iter: 14 test_interval: 4 test_iter: 2 snapshot: 2 ";

SolverOptions From(const std::string& snapshot) {
  SolverOptions options;
  options.snapshot = snapshot;
  return options;
}

// Returns the blobs of a layer in a snapshot's weights.
std::string BlobsOf(const SmallRun& run, int iter, const std::string& layer) {
  const caffe::NetParameter model = ReadModel(run.PathOf(Join("s_iter_", iter, ".caffemodel")));
  std::string bytes;
  for (const caffe::LayerParameter& one : model.layer()) {
    if (one.name() != layer) continue;
    for (const caffe::BlobProto& blob : one.blobs()) bytes += blob.SerializeAsString();
  }
  EXPECT_FALSE(bytes.empty()) << layer;
  return bytes;
}

std::string WithMaxIter(int iter) {
  std::string fields = kTuned;
  const std::string usual = "max_iter: 14 ";
  return fields.replace(fields.find(usual), usual.size(), Join("max_iter: ", iter, " "));
}

// Runs a solver from weights in which the averages of bn1 are set.
class TunedRun {
 public:
  TunedRun(const std::string& fields, const std::string& net)
      : before_(WithMaxIter(2), TunedNet("")), run_(fields, net, Options(before_)) {
    run_.Solve();
  }
  const SmallRun& operator*() const { return run_; }
  const SmallRun* operator->() const { return &run_; }
  std::string Snapshot(int iter) const {
    return run_.PathOf(Join("s_iter_", iter, ".solverstate"));
  }
  std::string BlobsAtStart(const std::string& layer) const { return BlobsOf(before_, 2, layer); }

 private:
  static SolverOptions Options(SmallRun& before) {
    before.Solve();
    SolverOptions options;
    options.weights = {before.PathOf("s_iter_2.caffemodel")};
    return options;
  }

  SmallRun before_, run_;
};

TEST(UnfreezeTest, FrozenLayersStayAsTheyAreAndTheOthersLearn) {
  const TunedRun run(kTuned, TunedNet());
  for (const char* layer : {"ip1", "bn1", "scale1"}) {
    EXPECT_EQ(BlobsOf(*run, 14, layer), run.BlobsAtStart(layer)) << layer;
  }
  EXPECT_NE(BlobsOf(*run, 14, "ip2"), run.BlobsAtStart("ip2"));
  EXPECT_THAT(run->observer.notes, IsEmpty());
}

// Covers every rule and option whose state outlives an iteration.
class UnfreezeResumeTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(With, UnfreezeResumeTest,
                         testing::Values("", "type: 'Adam' momentum2: 0.99 ", "ema_decay: 0.9 ",
                                         "iter_size: 2 clip_gradients: 0.5 ",
                                         "type: 'AdamW' virtual_ranks: 2 ",
                                         "default_forward_type: FLOAT16 "));

TEST_P(UnfreezeResumeTest, ContinuesBitForBitFromAnySnapshot) {
  const std::string fields = Join(kTuned, GetParam(), "unfreeze_at: 8 ");
  const TunedRun whole(fields, TunedNet());
  EXPECT_THAT(
      whole->observer.notes,
      Contains("Iteration 8 (unfreeze_at): frozen layers begin to learn: ip1, bn1, scale1"));
  for (const char* layer : {"ip1", "bn1", "scale1"}) {
    EXPECT_EQ(BlobsOf(*whole, 8, layer), whole.BlobsAtStart(layer)) << layer;
    EXPECT_NE(BlobsOf(*whole, 10, layer), BlobsOf(*whole, 8, layer)) << layer;
  }
  const std::string last = ReadText(whole->PathOf("s_iter_14.caffemodel"));
  const std::vector<float>& losses = whole->observer.losses;
  const std::vector<float>& tests = whole->observer.tests;
  for (const int iter : {4, 8, 10}) {
    SmallRun resumed(fields, TunedNet(), From(whole.Snapshot(iter)));
    resumed.Solve();
    EXPECT_THAT(resumed.Weights(), ElementsAreArray(whole->Weights())) << iter;
    EXPECT_EQ(ReadText(resumed.PathOf("s_iter_14.caffemodel")), last) << iter;
    EXPECT_THAT(resumed.observer.losses, ElementsAreArray(losses.begin() + iter, losses.end()));
    const auto count = static_cast<std::ptrdiff_t>(resumed.observer.tests.size());
    EXPECT_THAT(resumed.observer.tests, ElementsAreArray(tests.end() - count, tests.end()));
  }
}

// A frozen run and a run that resumes from it without freezing do the same. SGD does not count
// updates, so the weights are equal bit for bit.
TEST(UnfreezeTest, EqualsAFrozenRunAndOneThatResumesWithoutFreezing) {
  const TunedRun whole(Join(kTuned, "unfreeze_at: 8 "), TunedNet());
  const TunedRun frozen(WithMaxIter(8), TunedNet());
  SmallRun rest(kTuned, TunedNet(""), From(frozen.Snapshot(8)));
  rest.Solve();
  EXPECT_THAT(rest.Weights(), ElementsAreArray(whole->Weights()));
}

TEST(UnfreezeTest, UnfreezesWithSingleStepsToo) {
  const TunedRun whole(Join(kTuned, "unfreeze_at: 8 "), TunedNet());
  SmallRun stepped(Join(kTuned, "unfreeze_at: 8 "), TunedNet(), From(whole.Snapshot(4)));
  for (int i = 4; i < 14; ++i) stepped.solver->Step();
  EXPECT_THAT(stepped.Weights(), ElementsAreArray(whole->Weights()));
}

constexpr char kTunedRows[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: BATCH shuffle: true } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: 13 } })";

struct TunedRanks {
  std::vector<float> weights, losses, tests;
};

TunedRanks TrainRows(const SolverSpec& spec, SolverOptions options, const std::string& weights) {
  if (!weights.empty()) options.weights = {weights};
  const auto device = MakeTestDevice(1);
  RecordingObserver observer;
  Solver solver(spec, options, *device, observer);
  EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
  return {WeightsOf(solver, *device), observer.losses, observer.tests};
}

std::vector<TunedRanks> TrainFour(const SolverSpec& spec, const std::string& weights) {
  std::vector<TunedRanks> all(4);
  RunRanks(4, true, "", [&](const SolverOptions& options, ThreadGroup& group) {
    all[static_cast<size_t>(group.rank().rank)] = TrainRows(spec, options, weights);
  });
  return all;
}

// Trains all layers for two iterations and returns the file of the weights.
std::string RowsWeights(const RowsFolder& folder) {
  TrainRows(folder.Spec(TunedNet("", kTunedRows), "base_lr: 0.1 random_seed: 5 max_iter: 2", 12),
            {}, "");
  return folder / "s_iter_2.caffemodel";
}

// The net of FourRanksLearnWhatOneLearns, in which only the order of sums depends on the number of
// ranks: it has no dropout, and bn1 takes the moments of all ranks. The bias of ip1 does not learn,
// because bn1 subtracts it again: its gradient is rounding noise, which Adam would scale up.
std::string RowsNet() {
  std::string net = TunedNet("freeze: true", kTunedRows);
  const std::string ip1 = "inner_product_param { num_output: 9";
  net.insert(net.find(ip1), "param {} param { lr_mult: 0 } ");
  const size_t drop = net.find("layer { name: \"drop1\"");
  net.erase(drop, net.find('\n', drop) - drop);
  return net.replace(net.find("type: \"BatchNorm\""), 17,
                     "type: \"BatchNorm\" batch_norm_param { synchronized: true }");
}

TEST(UnfreezeTest, FourRanksLearnWhatOneLearns) {
  TRAINER_CPU_ONLY("the threads sum arrays of the host");
  const std::string fields =
      "base_lr: 0.1 momentum: 0.9 weight_decay: 0.01 random_seed: 3 max_iter: 12 test_iter: 2 "
      "test_interval: 5 unfreeze_at: 7 ";
  for (const std::string more : {"", "type: 'Adam' ema_decay: 0.9 clip_gradients: 1 "}) {
    const RowsFolder folder;
    const std::string weights = RowsWeights(folder);
    const TunedRanks one = TrainRows(folder.Spec(RowsNet(), fields + more, 12), {}, weights);
    const SolverSpec spec = folder.Spec(RowsNet(), fields + more, 3);
    const std::vector<TunedRanks> all = TrainFour(spec, weights);
    EXPECT_THAT(all[0].weights, Pointwise(FloatNear(2e-5f), one.weights)) << more;
    EXPECT_THAT(all[0].losses, Pointwise(FloatNear(2e-5f), one.losses)) << more;
    EXPECT_THAT(all[0].tests, Pointwise(FloatNear(1e-3f), one.tests)) << more;
    for (const TunedRanks& other : all) {
      EXPECT_THAT(other.weights, ElementsAreArray(all[0].weights)) << "bit for bit";
    }
  }
}

TEST(UnfreezeTest, FourRanksLearnTheSameBitsAsOneWithVirtualRanks) {
  TRAINER_CPU_ONLY("the threads sum arrays of the host");
  const std::string fields =
      "base_lr: 0.1 momentum: 0.9 random_seed: 3 max_iter: 12 virtual_ranks: 4 unfreeze_at: 7 ";
  const RowsFolder folder;
  const std::string weights = RowsWeights(folder);
  const SolverSpec spec = folder.Spec(TunedNet("freeze: true", kTunedRows), fields, 3);
  const TunedRanks one = TrainRows(spec, {}, weights);
  for (const TunedRanks& rank : TrainFour(spec, weights))
    EXPECT_THAT(rank.weights, ElementsAreArray(one.weights));
}

std::string RefusalOf(const std::string& fields, const std::string& net) {
  const auto [code, text] = ErrorOf([&] { SmallRun(fields, net); });
  EXPECT_EQ(code, ErrorCode::kConfig) << text;
  return text;
}

TEST(UnfreezeTest, RefusesWhatCannotChangeDuringARun) {
  EXPECT_THAT(RefusalOf(Join(kTuned, "unfreeze_at: 8 strategy: 'local'"), TunedNet()),
              HasSubstr("unfreeze_at is 8, but strategy 'local' cannot change which layers learn "
                        "during a run; use strategy \"synchronous\", or train twice: first with "
                        "freeze, then with --weights"));
  EXPECT_THAT(RefusalOf("base_lr: 1 lr_policy: 'fixed' max_iter: 4 unfreeze_at: 2 type: 'LBFGS'",
                        TunedNet()),
              HasSubstr("unfreeze_at is 2, but solver type LBFGS approximates the curvature"));
  EXPECT_THAT(RefusalOf(Join(kTuned, "unfreeze_at: -1"), TunedNet()),
              HasSubstr("unfreeze_at is -1; it must be at least 0"));
}

TEST(UnfreezeTest, RefusesANetInWhichNothingLearns) {
  std::string net = TunedNet();
  net.replace(net.find("name: \"ip2\""), 11, "name: \"ip2\" freeze: true");
  EXPECT_THAT(RefusalOf(kTuned, net),
              HasSubstr("net.prototxt: nothing would learn: every layer with weights is frozen or "
                        "has lr_mult 0; remove `freeze: true` from at least one layer"));
}

TEST(UnfreezeTest, WarnsOfFrozenLayersWithoutLoadedWeights) {
  const LogCollector log;
  SmallRun run(kTuned, TunedNet());
  EXPECT_THAT(log.lines, Contains("frozen layers that no weights file has keep the values of their "
                                  "fillers: ip1, bn1, scale1; load their weights with --weights, "
                                  "or do not freeze them"));
  EXPECT_THAT(log.lines, Contains("1 of 3 layers learn, 40 of 121 weights; frozen: ip1, bn1, "
                                  "scale1"));
}

}  // namespace
}  // namespace trainer
