// lr_policy "plateau" in whole runs with a learning rate so small that the losses are mostly noise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "small_run.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;

constexpr int kPlateauIterations = 24;
const std::string kPlateauFields = Join(
    "base_lr: 0.001 lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 3 plateau_winsize: 2 "
    "momentum: 0.9 display: 1 average_loss: 2 max_iter: ",
    kPlateauIterations, " ");

// Computes the rates by NVIDIA Caffe's rule from the smoothed losses of the log.
std::vector<float> ExpectedRates(const std::vector<float>& losses, int warmup = 0) {
  const std::vector<int> windows = {3, 2};
  std::vector<float> rates;
  float least = INFINITY;
  size_t steps = 0;
  int last = 0;
  for (int i = 0; i < kPlateauIterations; ++i) {
    if (i < warmup) {
      rates.push_back(0.001f * static_cast<float>(i) / static_cast<float>(warmup));
      continue;
    }
    if (losses[static_cast<size_t>(i)] < least) {
      least = losses[static_cast<size_t>(i)];
      last = i;
    }
    if (steps < windows.size() && i - last >= windows[steps]) {
      ++steps;
      last = i;
    }
    rates.push_back(0.001f * std::pow(0.5f, static_cast<float>(steps)));
  }
  return rates;
}

std::vector<float> RatesOf(const SmallRun& run) {
  const std::vector<float>& all = run.observer.hyper;
  return {all.begin(), all.begin() + kPlateauIterations};
}

TEST(PlateauTest, TakesAStepWhenTheLossReachesNoNewMinimum) {
  SmallRun run(kPlateauFields);
  run.Solve();
  const std::vector<float> expected = ExpectedRates(run.observer.losses);
  EXPECT_THAT(RatesOf(run), testing::Pointwise(testing::FloatNear(1e-9f), expected));
  EXPECT_FLOAT_EQ(expected.back(), 0.00025f)
      << "the losses of this run fall too long to test steps";
  const auto step = std::ranges::find(expected, 0.0005f) - expected.begin();
  EXPECT_THAT(run.observer.notes,
              testing::Contains(Join("Plateau Status: Iteration ", step, ", step = 1")));
}

TEST(PlateauTest, IterationsOfTheWarmupDoNotCount) {
  SmallRun run(kPlateauFields + "warmup_iter: 8 ");
  run.Solve();
  EXPECT_THAT(RatesOf(run),
              testing::Pointwise(testing::FloatNear(1e-9f), ExpectedRates(run.observer.losses, 8)));
}

TEST(PlateauTest, WithoutALogTheRunLearnsTheSame) {
  const std::string display = "display: 1 ";
  std::string fields = kPlateauFields;
  fields.erase(fields.find(display), display.size());
  SmallRun shown(kPlateauFields), quiet(fields);
  shown.Solve();
  quiet.Solve();
  EXPECT_THAT(quiet.Weights(), ElementsAreArray(shown.Weights()));
}

TEST(PlateauTest, AResumedRunLearnsTheSameBitForBit) {
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    const std::string fields = Join(kPlateauFields, "snapshot: 4 snapshot_format: ", format, " ");
    SmallRun whole(fields);
    whole.Solve();
    for (int iter = 4; iter < kPlateauIterations; iter += 4) {
      SolverOptions options;
      options.snapshot = whole.PathOf(
          Join("s_iter_", iter, ".solverstate", std::string(format) == "HDF5" ? ".h5" : ""));
      SmallRun rest(fields, SmallNet(), options, whole.folder_path);
      rest.Solve();
      EXPECT_THAT(rest.Weights(), ElementsAreArray(whole.Weights())) << format << iter;
      const std::vector<float>& rates = whole.observer.hyper;
      EXPECT_THAT(rest.observer.hyper,
                  ElementsAreArray(std::vector<float>(rates.begin() + iter, rates.end())))
          << format << iter;
    }
  }
}

}  // namespace
}  // namespace trainer
