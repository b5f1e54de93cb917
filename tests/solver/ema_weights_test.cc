#include "ema_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "small_run.h"
#include "support/error_of.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

const std::string kRaw =
    "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 display: 1 test_iter: 2 test_interval: 7 ";
const std::string kAveraged = kRaw + "ema_decay: 0.8 ";

// Returns all weights of a file, in layer order.
std::vector<float> WeightsIn(const std::string& file) {
  std::vector<float> all;
  const caffe::NetParameter model = ReadModel(file);
  for (const caffe::LayerParameter& layer : model.layer()) {
    for (const caffe::BlobProto& blob : layer.blobs()) {
      all.insert(all.end(), blob.data().begin(), blob.data().end());
    }
  }
  return all;
}

TEST(WeightAverageTest, FollowsTheWeightsMoreCloselyAtTheStart) {
  SmallRun run(kRaw + "ema_decay: 0.5 max_iter: 20 ");
  std::vector<double> expected;
  for (const float weight : run.Weights()) expected.push_back(weight);
  for (int t = 1; t <= 20; ++t) {
    run.solver->Step();
    const double keep = t < 8 ? (1.0 + t) / (10 + t) : 0.5;
    const std::vector<float> weights = run.Weights();
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = keep * expected[i] + (1 - keep) * weights[i];
    }
  }
  // The net's parameters are in the order of its layers' blobs.
  run.solver->Snapshot();
  const std::vector<float> saved = WeightsIn(run.PathOf("s_iter_20.averaged.caffemodel"));
  ASSERT_EQ(saved.size(), expected.size());
  for (size_t i = 0; i < saved.size(); ++i) EXPECT_NEAR(saved[i], expected[i], 1e-5) << i;
  EXPECT_THAT(WeightsIn(run.PathOf("s_iter_20.caffemodel")), ElementsAreArray(run.Weights()));
}

TEST(WeightAverageTest, ChangesNothingInTraining) {
  SmallRun raw(kRaw + "max_iter: 15 "), averaged(kAveraged + "max_iter: 15 ");
  raw.Solve();
  averaged.Solve();
  EXPECT_THAT(averaged.observer.losses, ElementsAreArray(raw.observer.losses));
  EXPECT_THAT(averaged.Weights(), ElementsAreArray(raw.Weights()));
  EXPECT_THAT(averaged.observer.tests, Not(ElementsAreArray(raw.observer.tests)));
  EXPECT_EQ(ReadText(averaged.PathOf("s_iter_15.caffemodel")),
            ReadText(raw.PathOf("s_iter_15.caffemodel")));
  for (const std::string& name : raw.own_folder->Names()) {
    EXPECT_THAT(name, Not(HasSubstr("averaged")));
  }
}

TEST(WeightAverageTest, TestsComputeWithTheAverage) {
  const std::string fields = "test_initialization: false max_iter: 7 ";
  SmallRun run(kAveraged + fields), raw(kRaw + fields);
  run.Solve();
  raw.Solve();
  ASSERT_EQ(run.observer.tests.size(), 2u);

  SolverOptions options;
  options.weights = {run.PathOf("s_iter_7.averaged.caffemodel")};
  options.test_at_end = false;
  SmallRun reference(kRaw + "max_iter: 1 ", SmallNet(), options);
  reference.Solve();
  EXPECT_THAT(run.observer.tests, ElementsAreArray(reference.observer.tests));
  EXPECT_THAT(run.observer.tests, Not(ElementsAreArray(raw.observer.tests)));
}

TEST(WeightAverageTest, TwentyIterationsEqualTenAndAResumeOfTen) {
  SmallRun whole(kAveraged + "max_iter: 20 ");
  whole.Solve();
  SmallRun first(kAveraged + "max_iter: 10 ");
  first.Solve();
  SolverOptions options;
  options.snapshot = first.PathOf("s_iter_10.solverstate");
  SmallRun second(kAveraged + "max_iter: 20 ", SmallNet(), options, first.folder_path);
  second.Solve();
  for (const char* file : {"s_iter_20.caffemodel", "s_iter_20.averaged.caffemodel"}) {
    EXPECT_EQ(ReadText(second.PathOf(file)), ReadText(whole.PathOf(file))) << file;
  }
  // The tests at iterations 0, 7 and 14 have two outputs each.
  const std::vector<float>& tests = whole.observer.tests;
  EXPECT_THAT(second.observer.tests,
              ElementsAreArray(std::vector<float>(tests.begin() + 4, tests.end())));
}

const char kWeightAverageNormNet[] = R"(name: "normed"
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 8 dim: 6 } shape { dim: 8 }
        data_filler { type: "gaussian" mean: 3 } data_filler { type: "constant" value: 1 } } }
layer { name: "bn" type: "BatchNorm" bottom: "x" top: "y" }
layer { name: "ip" type: "InnerProduct" bottom: "y" top: "z"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "label" top: "loss" }
)";

TEST(WeightAverageTest, CopiesTheStatisticsOfABatchNorm) {
  SmallRun run(kAveraged + "max_iter: 5 ", kWeightAverageNormNet);
  run.Solve();
  const caffe::NetParameter raw = ReadModel(run.PathOf("s_iter_5.caffemodel"));
  const caffe::NetParameter averaged = ReadModel(run.PathOf("s_iter_5.averaged.caffemodel"));
  for (int i = 0; i < raw.layer_size(); ++i) {
    for (int b = 0; b < raw.layer(i).blobs_size(); ++b) {
      const bool same = raw.layer(i).blobs(b).SerializeAsString() ==
                        averaged.layer(i).blobs(b).SerializeAsString();
      EXPECT_EQ(same, raw.layer(i).name() == "bn") << raw.layer(i).name() << " " << b;
    }
  }
}

TEST(WeightAverageTest, RefusesASnapshotWhoseAverageIsGone) {
  SmallRun run(kAveraged + "max_iter: 5 ");
  run.Solve();
  std::filesystem::remove(run.PathOf("s_iter_5.averaged.caffemodel"));
  SolverOptions options;
  options.snapshot = run.PathOf("s_iter_5.solverstate");
  const auto [code, text] =
      ErrorOf([&] { SmallRun(kAveraged + "max_iter: 9 ", SmallNet(), options); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(text, HasSubstr("the averaged weights of this solver state are missing"));
}

TEST(WeightAverageTest, StartsFromTheWeightsOfASnapshotWithoutAverage) {
  SmallRun run(kRaw + "max_iter: 5 ");
  run.Solve();
  SolverOptions options;
  options.snapshot = run.PathOf("s_iter_5.solverstate");
  testing::internal::CaptureStderr();
  SmallRun resumed(kAveraged + "max_iter: 9 ", SmallNet(), options);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("The snapshot has no averaged weights"));
  resumed.solver->Snapshot();
  EXPECT_THAT(WeightsIn(resumed.PathOf("s_iter_5.averaged.caffemodel")),
              ElementsAreArray(resumed.Weights()));
}

// Asks for a snapshot when the test of iteration 7 starts.
class Interrupter final : public TrainingObserver {
 public:
  void OnTestStart(int iter, int) override {
    if (iter == 7) raise(SIGHUP);
  }
};

TEST(WeightAverageTest, ASnapshotDuringATestHoldsBothKindsOfWeights) {
  SmallRun whole(kAveraged + "max_iter: 7 test_initialization: false ");
  whole.Solve();
  SmallRun files(kAveraged + "max_iter: 8 ");
  Interrupter observer;
  SignalWatch signals({});
  SolverOptions options;
  options.signals = &signals;
  Solver(files.spec, options, *files.device, observer).Solve();
  for (const char* file : {"s_iter_7.caffemodel", "s_iter_7.averaged.caffemodel"}) {
    EXPECT_EQ(ReadText(files.PathOf(file)), ReadText(whole.PathOf(file))) << file;
  }
}

}  // namespace
}  // namespace trainer
