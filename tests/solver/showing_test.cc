// Weights, gradients and images that a run shows to an observer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "small_run.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::IsEmpty;
using testing::Pointwise;

// Records everything that a run shows.
class Watcher final : public TrainingObserver {
 public:
  void OnParam(const ParamReport& report) override {
    if (report.name != "ip1/0") return;
    weights[report.iter] = {report.weights.begin(), report.weights.end()};
    std::vector<float>& mean = gradients[report.iter];
    for (const float sum : report.gradients) mean.push_back(sum * report.gradient_scale);
  }
  void OnBatch(const BatchReport& report) override {
    blobs.push_back(report.blob);
    shape = {report.shape.begin(), report.shape.end()};
    numbers = {report.numbers.begin(), report.numbers.end()};
  }
  void OnStep(int iter) override { steps.push_back(iter); }

  std::map<int, std::vector<float>> weights, gradients;
  std::vector<std::string> blobs;
  std::vector<int64_t> shape;
  std::vector<float> numbers;
  std::vector<int> steps;
};

// Solves `net` with `watcher` as the observer.
void Watch(const std::string& net, const std::string& fields, Watcher* watcher,
           bool shows_numbers = true) {
  SmallRun run(fields + " snapshot_after_train: false", net);
  SolverOptions options;
  options.shows_numbers = shows_numbers;
  Solver solver(run.spec, options, *run.device, *watcher);
  solver.Solve();
}

constexpr char kPlain[] =
    "base_lr: 0.5 lr_policy: 'fixed' max_iter: 5 test_iter: 1 test_interval: 2 iter_size: 2";

TEST(ShowingTest, WhatIsShownIsWhatTheUpdateOfATestedIterationUses) {
  Watcher watcher, every;
  Watch(SmallNet(), kPlain, &watcher);
  ASSERT_EQ(watcher.weights.size(), 3u);  // iterations 0, 2 and 4
  Watch(SmallNet(),
        "base_lr: 0.5 lr_policy: 'fixed' max_iter: 5 test_iter: 1 test_interval: 1 iter_size: 2",
        &every);
  ASSERT_EQ(every.weights.size(), 5u);
  EXPECT_EQ(watcher.weights[2], every.weights[2]);
  std::vector<float> after = every.weights[2];
  for (size_t i = 0; i < after.size(); ++i) after[i] -= 0.5f * every.gradients[2][i];
  EXPECT_THAT(every.weights[3], Pointwise(FloatNear(1e-6f), after));
  EXPECT_THAT(every.steps, ElementsAre(1, 2, 3, 4, 5));
}

TEST(ShowingTest, NothingIsShownUnlessAskedFor) {
  Watcher watcher;
  Watch(SmallNet(), kPlain, &watcher, false);
  EXPECT_THAT(watcher.weights, IsEmpty());
  EXPECT_THAT(watcher.blobs, IsEmpty());
}

// Returns a net with the layers `more` between the images and the convolution.
std::string ImageNet(const std::string& more) {
  return R"(name: "images"
  layer { name: "data" type: "DummyData" top: "data" top: "label"
    dummy_data_param { shape { dim: 20 dim: 1 dim: 6 dim: 6 } shape { dim: 20 }
      data_filler { type: "uniform" min: 1 max: 2 } data_filler { type: "constant" value: 1 } } }
  )" + more +
         R"(
  layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
          convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
          inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" })";
}

TEST(ShowingTest, TheFirstImagesOfTheFirstBatchAreShownOnce) {
  Watcher watcher;
  Watch(ImageNet(""), kPlain, &watcher);
  EXPECT_THAT(watcher.blobs, ElementsAre("data"));
  EXPECT_THAT(watcher.shape, ElementsAre(16, 1, 6, 6));
  for (const float number : watcher.numbers) {
    EXPECT_GE(number, 1);
    EXPECT_LE(number, 2);
  }
}

TEST(ShowingTest, ImagesWhoseMemoryAnotherLayerTookAreNotShown) {
  Watcher watcher;
  Watch(ImageNet(R"(layer { name: "minus" type: "Power" bottom: "data" top: "data"
                           power_param { scale: -1 } })"),
        kPlain, &watcher);
  EXPECT_THAT(watcher.numbers, testing::Each(testing::Ge(1.0f)));
}

}  // namespace
}  // namespace trainer
