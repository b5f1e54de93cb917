#include "trainer/solver/solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>

#include "small_run.h"
#include "support/error_of.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

const std::string kSolverFields =
    "base_lr: 0.1 lr_policy: \"inv\" gamma: 0.01 power: 0.75 momentum: 0.9 weight_decay: 0.001 "
    "display: 1 average_loss: 3 max_iter: 20 test_interval: 7 test_iter: 2 ";

std::string Changed(std::string fields, const std::string& from, const std::string& to) {
  return fields.replace(fields.find(from), from.size(), to);
}

class SolverResumeTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(In, SolverResumeTest, testing::Values("FLOAT", "BFLOAT16", "FLOAT16"),
                         [](const auto& type) { return type.param; });

TEST_P(SolverResumeTest, TwentyIterationsEqualTenAndAResumeOfTen) {
  const std::string fields = Join(kSolverFields, "default_forward_type: ", GetParam(), " ");
  SmallRun whole(fields);
  EXPECT_EQ(whole.Solve(), SolveResult::kFinished);

  SmallRun first(Changed(fields, "max_iter: 20", "max_iter: 10"));
  first.Solve();
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_10.solverstate");
  SmallRun second(fields, SmallNet(), options, first.folder_path);
  EXPECT_EQ(second.solver->iter(), 10);
  second.Solve();

  EXPECT_THAT(second.Weights(), ElementsAreArray(whole.Weights()));
  EXPECT_EQ(ReadText(second.PathOf("s_iter_20.caffemodel")),
            ReadText(whole.PathOf("s_iter_20.caffemodel")));
  const auto rest = [](const std::vector<float>& all, size_t from) {
    return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(from), all.end());
  };
  EXPECT_THAT(second.observer.losses, ElementsAreArray(rest(whole.observer.losses, 10)));
  // The whole run also tested at 0 and 7, with two outputs each.
  EXPECT_THAT(second.observer.tests, ElementsAreArray(rest(whole.observer.tests, 4)));
}

TEST(SolverTest, WeightsOfA16BitRunAreF32) {
  SmallRun run(kSolverFields + "default_forward_type: FLOAT16 ");
  run.Solve();
  EXPECT_EQ(run.solver->train_net().Value("ip1").dtype, TestsOnGpu() ? DType::kF16 : DType::kBF16);
  caffe::NetParameter saved;
  ASSERT_TRUE(saved.ParseFromString(ReadText(run.PathOf("s_iter_20.caffemodel"))));
  const caffe::BlobProto& weight = saved.layer(1).blobs(0);
  EXPECT_EQ(saved.layer(1).name(), "ip1");
  const auto fine = [](float value) { return (std::bit_cast<uint32_t>(value) & 0xffffu) != 0; };
  EXPECT_GT(std::ranges::count_if(weight.data(), fine), weight.data_size() / 2);
}

TEST(SolverTest, IterSizeEqualsOneLargerBatchOfTheSameData) {
  const std::string data = R"(layer { name: "data" type: "DummyData" top: "x" top: "label"
     dummy_data_param { shape { dim: N dim: 5 } shape { dim: N }
     data_filler { type: "constant" value: 0.7 } data_filler { type: "constant" value: 1 } } }
   layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
     inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
   layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
  auto net = [&](const std::string& n) {
    return Changed(Changed(data, "dim: N", "dim: " + n), "dim: N", "dim: " + n);
  };
  const std::string fields = "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 max_iter: 5 ";
  SmallRun large(fields, net("12"));
  SmallRun pieces(fields + "iter_size: 3 ", net("4"));
  large.Solve();
  pieces.Solve();
  const std::vector<float> a = large.Weights(), b = pieces.Weights();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

TEST(SolverTest, TheLossShownIsTheMeanOfTheLast) {
  SmallRun plain(Changed(kSolverFields, "average_loss: 3", "average_loss: 1"));
  SmallRun smooth(kSolverFields);
  plain.Solve();
  smooth.Solve();
  const std::vector<float>& raw = plain.observer.losses;
  EXPECT_FLOAT_EQ(smooth.observer.losses[0], raw[0]);
  EXPECT_NEAR(smooth.observer.losses[1], (raw[0] + raw[1]) / 2, 1e-6);
  EXPECT_NEAR(smooth.observer.losses[9], (raw[7] + raw[8] + raw[9]) / 3, 1e-6);
}

TEST(SolverTest, ClippingHoldsTheGradientsNormAndSaysSo) {
  SmallRun run(kSolverFields + "clip_gradients: 0.001 ");
  run.Solve();
  ASSERT_FALSE(run.observer.notes.empty());
  EXPECT_THAT(run.observer.notes[0],
              HasSubstr("Gradient clipping: scaling down gradients (L2 norm "));
  EXPECT_THAT(run.observer.notes[0], HasSubstr(" > 0.001) by scale factor "));
}

TEST(SolverTest, MultistepSaysEachStep) {
  SmallRun run(
      "base_lr: 0.1 lr_policy: \"multistep\" gamma: 0.1 stepvalue: 2 stepvalue: 4 max_iter: 6 "
      "display: 1 ");
  run.Solve();
  EXPECT_THAT(run.observer.notes, ElementsAre("MultiStep Status: Iteration 2, step = 1",
                                              "MultiStep Status: Iteration 4, step = 2"));
  EXPECT_THAT(run.observer.hyper, testing::Contains(testing::FloatNear(0.001f, 1e-9f)));
}

TEST(SolverTest, SnapshotsComeEverySoManyIterationsAndAtTheEnd) {
  SmallRun run(kSolverFields + "snapshot: 6 ");
  run.Solve();
  EXPECT_THAT(run.observer.snapshots, ElementsAre(6, 12, 18, 20));
}

TEST(SolverTest, NoSnapshotAfterTrainWhenToldSo) {
  SmallRun run(kSolverFields + "snapshot_after_train: false ");
  run.Solve();
  EXPECT_THAT(run.observer.snapshots, testing::IsEmpty());
}

TEST(SolverTest, ALossThatIsNotFiniteStopsBeforeItIsSaved) {
  SmallRun run(Changed(kSolverFields, "base_lr: 0.1", "base_lr: 1e30") + "snapshot: 1 ");
  const auto [code, text] = ErrorOf([&] { run.Solve(); });
  EXPECT_EQ(code, ErrorCode::kDiverged);
  EXPECT_THAT(text, HasSubstr("Try a lower base_lr"));
  for (const std::string& name : run.own_folder->Names()) {
    EXPECT_THAT(name, testing::Not(HasSubstr("tmp")));
  }
}

// oneDNN's ReLU after a convolution turns NaN into 0, so the loss stays finite.
TEST(SolverTest, AWeightThatIsNotFiniteStopsWhereTheLossHidesIt) {
  TRAINER_CPU_ONLY("oneDNN hides it");
  const std::string net = R"(layer { name: "data" type: "DummyData" top: "x" top: "label"
     dummy_data_param { shape { dim: 4 dim: 16 dim: 9 dim: 9 } shape { dim: 4 } data_filler { value: 1 } } }
   layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
     convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
   layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
   layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
     inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
   layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
  SmallRun run("base_lr: 0.1 lr_policy: \"fixed\" display: 2 max_iter: 9 snapshot: 1 ", net);
  run.solver->Step();
  WriteFloats(*run.device, std::vector<float>{std::nanf("")},
              run.solver->train_net().params()[0]->weight + 2);
  run.solver->Step();
  const auto [code, text] = ErrorOf([&] { run.Solve(); });
  EXPECT_EQ(code, ErrorCode::kDiverged);
  EXPECT_THAT(text, HasSubstr("iteration 2: the loss is "));
  EXPECT_THAT(text, HasSubstr("the weights of layer 'conv' (parameter 0) are not finite"));
}

// The last update breaks the weights, and no later step would detect it.
TEST(SolverTest, ALossThatIsNotFiniteAfterTheLastUpdateIsNamed) {
  const std::string net = R"(layer { name: "data" type: "DummyData" top: "x" top: "label"
     dummy_data_param { shape { dim: 4 dim: 5 } shape { dim: 4 } data_filler { value: 1 } } }
   layer { name: "low" type: "InnerProduct" bottom: "x" top: "low"
     inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
   layer { name: "high" type: "InnerProduct" bottom: "low" top: "high"
     inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
   layer { name: "loss" type: "SoftmaxWithLoss" bottom: "high" bottom: "label" top: "loss" })";
  SmallRun run("base_lr: 1e30 lr_policy: \"fixed\" display: 1 max_iter: 1 ", net);
  const auto [code, text] = ErrorOf([&] { run.Solve(); });
  EXPECT_EQ(code, ErrorCode::kDiverged);
  EXPECT_THAT(text, HasSubstr("iteration 1: the loss is "));
  EXPECT_THAT(text, HasSubstr("The snapshot of iteration 1 has the weights that gave this loss"));
}

TEST(SolverTest, TheLogNamesTheSeedThatWasDrawnWhichRepeatsTheRun) {
  SmallRun files(kSolverFields);
  const auto weights = [&](int64_t seed) {
    files.spec.proto.set_random_seed(seed);
    Solver solver(files.spec, {}, *files.device, files.observer);
    solver.Solve();
    return WeightsOf(solver, *files.device);
  };
  testing::internal::CaptureStderr();
  const std::vector<float> drawn = weights(-1);
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string mark = "to repeat this run: --set random_seed=";
  const size_t at = log.find(mark);
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_THAT(weights(std::stoll(log.substr(at + mark.size()))), ElementsAreArray(drawn));
}

class SolverSignalTest : public testing::Test {
 protected:
  // Raises a signal when iteration `at` is reported.
  class Raiser final : public TrainingObserver {
   public:
    void OnIteration(const IterationReport& e) override {
      if (e.iter == at) raise(signal);
    }
    void OnSnapshot(const SnapshotReport& e) override { snapshots.push_back(e.iter); }
    int at = 4, signal = SIGTERM;
    std::vector<int> snapshots;
  };

  SolveResult Run(int signal, const SignalWatch::Effects& effects) {
    SmallRun files(kSolverFields);
    SignalWatch watch(effects);
    SolverOptions options;
    options.signals = &watch;
    raiser_.signal = signal;
    Solver solver(files.spec, options, *files.device, raiser_);
    const SolveResult result = solver.Solve();
    iter_ = solver.iter();
    return result;
  }
  Raiser raiser_;
  int iter_ = 0;
};

TEST_F(SolverSignalTest, TermAndUsr1AndIntSnapshotAndStop) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    raiser_.snapshots.clear();
    EXPECT_EQ(Run(signal, {}), SolveResult::kStopped);
    EXPECT_EQ(iter_, 5);
    EXPECT_THAT(raiser_.snapshots, ElementsAre(5));
  }
}

TEST_F(SolverSignalTest, HupSnapshotsAndGoesOn) {
  EXPECT_EQ(Run(SIGHUP, {}), SolveResult::kFinished);
  EXPECT_EQ(iter_, 20);
  EXPECT_THAT(raiser_.snapshots, ElementsAre(5, 20));
}

TEST_F(SolverSignalTest, NoneIgnoresTheSignal) {
  EXPECT_EQ(Run(SIGINT, {.sigint = Request::kNone}), SolveResult::kFinished);
  EXPECT_THAT(raiser_.snapshots, ElementsAre(20));
}

TEST(SignalEffectTest, UnknownEffectsAreRefused) {
  const auto [code, text] = ErrorOf([] { ParseSignalEffect("sigint_effect", "halt"); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_EQ(text, "--sigint_effect=halt: not an effect of a signal; give stop, snapshot or none");
}

// Returns the error of resuming another run from this run's snapshot.
std::pair<ErrorCode, std::string> ResumeRefusal(const std::string& fields, const std::string& net) {
  SmallRun run(Changed(kSolverFields, "max_iter: 20", "max_iter: 2"));
  run.Solve();
  SolverOptions options;
  options.snapshot = run.PathOf("s_iter_2.solverstate");
  return ErrorOf([&] { SmallRun(fields, net, options); });
}

TEST(SolverTest, RefusesASnapshotOfAnotherRule) {
  const auto [code, text] = ResumeRefusal(kSolverFields + "type: \"Nesterov\" ", SmallNet());
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(text, HasSubstr("the snapshot is from a solver of type 'SGD', but this solver has "
                              "type 'Nesterov'"));
}

TEST(SolverTest, RefusesASnapshotOfAnotherNet) {
  std::string wider = Changed(SmallNet(), "num_output: 9", "num_output: 8");
  const auto [code, text] = ResumeRefusal(kSolverFields, wider);
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(
      text, HasSubstr("layer 'ip1', blob 0 has the shape 9 6 (54) in the file and 8 6 (48) in the "
                      "net; its weights"));

  std::string renamed = Changed(SmallNet(), "name: \"ip1\"", "name: \"first\"");
  EXPECT_THAT(ResumeRefusal(kSolverFields, renamed).second,
              HasSubstr("layer 'first' is not in the file"));
}

TEST(SolverTest, WeightsThatMatchNoLayerAreAnError) {
  SmallRun run(Changed(kSolverFields, "max_iter: 20", "max_iter: 1"));
  run.Solve();
  SolverOptions options;
  options.weights = {run.PathOf("s_iter_1.caffemodel")};
  const std::string other = R"(
    layer { name: "d" type: "DummyData" top: "x" top: "y"
      dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
    layer { name: "only" type: "InnerProduct" bottom: "x" top: "z"
      inner_product_param { num_output: 2 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "y" top: "loss" })";
  const auto [code, text] =
      ErrorOf([&] { SmallRun("base_lr: 0.1 lr_policy: \"fixed\" max_iter: 1 ", other, options); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(text, HasSubstr("no layer name in this file matches a layer of the net"));
  EXPECT_THAT(text, HasSubstr("ip1, ip2"));
}

TEST(SolverTest, AMissingSnapshotFolderIsFoundBeforeTheFirstIteration) {
  SmallRun files(kSolverFields);
  SolverSpec& spec = files.spec;
  spec.proto.set_snapshot_prefix(files.PathOf("missing/s"));
  RecordingObserver observer;
  const auto [code, text] = ErrorOf([&] { Solver(spec, {}, *files.device, observer); });
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(text, HasSubstr("missing"));
}

TEST(SolverTest, ATooLongNameIsFoundBeforeTheFirstIteration) {
  SmallRun files(kSolverFields);
  files.spec.proto.set_snapshot_prefix(files.PathOf(std::string(230, 's')));
  RecordingObserver observer;
  SolverOptions options;
  const auto make = [&] { Solver(files.spec, options, *files.device, observer); };
  const auto [code, text] = ErrorOf(make);
  EXPECT_EQ(code, ErrorCode::kCannotCreate);
  EXPECT_THAT(text, HasSubstr("choose a shorter one"));
  options.saves = false;
  make();
}

TEST(SolverTest, ARunThatIsAlreadyDoneEndsAtOnce) {
  SmallRun run(Changed(kSolverFields, "max_iter: 20", "max_iter: 2"));
  run.Solve();
  SolverOptions options;
  options.snapshot = run.PathOf("s_iter_2.solverstate");
  SmallRun again(Changed(kSolverFields, "max_iter: 20", "max_iter: 2"), SmallNet(), options,
                 run.folder_path);
  EXPECT_EQ(again.Solve(), SolveResult::kFinished);
  EXPECT_THAT(again.observer.snapshots, testing::IsEmpty());
}

}  // namespace
}  // namespace trainer
