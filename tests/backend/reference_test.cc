// Compares the reference plans with numbers worked out by hand.

#include <gmock/gmock.h>

#include <cfloat>
#include <limits>

#include "backend/plan_testing.h"
#include "trainer/backend/primitives/conv.h"
#include "trainer/backend/primitives/pool.h"

namespace trainer {
namespace {

using testing::ElementsAre;

// The image is [[1 2 3] [4 5 6] [7 8 9]], the kernel [[1 10] [100 1000]].
ConvDesc Small() {
  return {.batch = 1,
          .in_channels = 1,
          .out_channels = 1,
          .in = {3, 3},
          .kernel = {2, 2},
          .stride = {1, 1},
          .pad = {0, 0},
          .dilation = {1, 1}};
}
const float kKernel[] = {1, 10, 100, 1000};

Values Nine() { return Values::Of({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}); }

TEST(ReferenceConvTest, CrossCorrelatesAndAddsTheBias) {
  TRAINER_CPU_ONLY("the reference computes there");
  const float bias[] = {0.5f};
  const Values y = Values::Unset({1, 1, 2, 2});
  MakeReferenceConv(Small())->Forward(Nine(), kKernel, bias, y, {});
  EXPECT_THAT(y.ToVector(), ElementsAre(5421.5f, 6532.5f, 8754.5f, 9865.5f));
}

TEST(ReferenceConvTest, StepsPadsAndDilates) {
  TRAINER_CPU_ONLY("the reference computes there");
  ConvDesc desc = Small();
  desc.bias = false;
  desc.stride = {2, 1};
  desc.pad = {1, 0};
  desc.dilation = {1, 2};
  const Values y = Values::Unset({1, 1, 2, 1});
  MakeReferenceConv(desc)->Forward(Nine(), kKernel, nullptr, y, {});
  // The windows cover rows (-1, 0) and (1, 2) and start at columns 0 and 2.
  EXPECT_THAT(y.ToVector(), ElementsAre(100 * 1 + 1000 * 3, 4 + 60 + 700 + 9000));
}

TEST(ReferenceConvTest, GroupsSeeTheirChannelsAndImagesAreChannelsLast) {
  TRAINER_CPU_ONLY("the reference computes there");
  ConvDesc desc = Small();
  desc.in_channels = desc.out_channels = desc.group = 2;
  desc.in = {1, 2};
  desc.kernel = {1, 2};
  const float weight[] = {1, 10, 2, 20}, bias[] = {0, 1000};
  // Pixel 0 holds channels (1, 3), pixel 1 holds (5, 7).
  const Values x = Values::Of({1, 2, 1, 2}, {1, 3, 5, 7}), y = Values::Unset({1, 2, 1, 1});
  MakeReferenceConv(desc)->Forward(x, weight, bias, y, {});
  EXPECT_THAT(y.ToVector(), ElementsAre(51, 1146));
}

TEST(ReferenceConvTest, AddsToTheWeightGradientAndOverwritesTheDataGradient) {
  TRAINER_CPU_ONLY("the reference computes there");
  const auto plan = MakeReferenceConv(Small());
  const Values dy = Values::Of({1, 1, 2, 2}, {1, 0, 0, 2}), dx = Values::Unset({1, 1, 3, 3});
  float dweight[] = {100, 0, 0, 0}, dbias[] = {1};
  plan->BackwardWeight(Nine(), dy, dweight, dbias, {});
  EXPECT_THAT(dweight, ElementsAre(100 + 1 + 10, 2 + 12, 4 + 16, 5 + 18));
  EXPECT_THAT(dbias, ElementsAre(4));
  plan->BackwardData(dy, kKernel, dx, {});
  EXPECT_THAT(dx.ToVector(), ElementsAre(1, 10, 0, 100, 1002, 20, 0, 200, 2000));
}

TEST(ReferenceConvTest, LinesAndVolumesAreRowMajor) {
  TRAINER_CPU_ONLY("the reference computes there");
  const ConvDesc line = {.batch = 1,
                         .in_channels = 2,
                         .out_channels = 1,
                         .in = {3},
                         .kernel = {2},
                         .stride = {1},
                         .pad = {0},
                         .dilation = {1},
                         .bias = false};
  const float weight[] = {1, 10, 100, 1000};
  const Values x = Values::Of({1, 2, 3}, {1, 2, 3, 4, 5, 6}), y = Values::Unset({1, 1, 2});
  MakeReferenceConv(line)->Forward(x, weight, nullptr, y, {});
  EXPECT_THAT(y.ToVector(), ElementsAre(5421, 6532));
  const ConvDesc volume = {.batch = 1,
                           .in_channels = 2,
                           .out_channels = 1,
                           .in = {1, 1, 3},
                           .kernel = {1, 1, 2},
                           .stride = {1, 1, 1},
                           .pad = {0, 0, 0},
                           .dilation = {1, 1, 1},
                           .bias = false};
  const Values x5 = Values::Of({1, 2, 1, 1, 3}, {1, 2, 3, 4, 5, 6});
  const Values y5 = Values::Unset({1, 1, 1, 1, 2});
  MakeReferenceConv(volume)->Forward(x5, weight, nullptr, y5, {});
  EXPECT_THAT(y5.ToVector(), ElementsAre(5421, 6532));
}

PoolDesc Windows(PoolMethod method) {
  return {.method = method,
          .batch = 1,
          .channels = 1,
          .in_h = 3,
          .in_w = 3,
          .out_h = 2,
          .out_w = 2,
          .kernel_h = 2,
          .kernel_w = 2,
          .stride_h = 2,
          .stride_w = 2};
}

TEST(ReferencePoolTest, MaxClipsTheLastWindowAndKeepsWinners) {
  TRAINER_CPU_ONLY("the reference computes there");
  const auto plan = MakeReferencePool(Windows(PoolMethod::kMax));
  std::vector<std::byte> workspace(plan->WorkspaceBytes());
  const Values y = Values::Unset({1, 1, 2, 2}), mask = Values::Unset({1, 1, 2, 2});
  plan->Forward(Nine(), y, workspace);
  EXPECT_THAT(y.ToVector(), ElementsAre(5, 6, 8, 9));
  plan->ArgMax(workspace, mask);
  EXPECT_THAT(mask.ToVector(), ElementsAre(4, 5, 7, 8));
  const Values dy = Values::Of({1, 1, 2, 2}, {1, 2, 3, 4}), dx = Values::Unset({1, 1, 3, 3});
  plan->Backward(dy, dx, workspace);
  EXPECT_THAT(dx.ToVector(), ElementsAre(0, 0, 0, 0, 1, 2, 0, 3, 4));
}

TEST(ReferencePoolTest, AverageDividesByTheClippedWindow) {
  TRAINER_CPU_ONLY("the reference computes there");
  const auto plan = MakeReferencePool(Windows(PoolMethod::kAverage));
  const Values y = Values::Unset({1, 1, 2, 2});
  plan->Forward(Nine(), y, {});
  EXPECT_THAT(y.ToVector(), ElementsAre(3, 4.5f, 7.5f, 9));
  const Values dy = Values::Of({1, 1, 2, 2}, {4, 2, 2, 1}), dx = Values::Unset({1, 1, 3, 3});
  plan->Backward(dy, dx, {});
  EXPECT_THAT(dx.ToVector(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(ReferencePoolTest, AverageCountsPaddingAsZeros) {
  TRAINER_CPU_ONLY("the reference computes there");
  PoolDesc desc = Windows(PoolMethod::kAverage);
  desc.pad_h = desc.pad_w = 1;
  const Values y = Values::Unset({1, 1, 2, 2});
  MakeReferencePool(desc)->Forward(Nine(), y, {});
  EXPECT_THAT(y.ToVector(), ElementsAre(0.25f, 1.25f, 2.75f, 7));
}

}  // namespace
}  // namespace trainer
