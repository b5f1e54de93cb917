#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Pool(const std::string& fields) {
  return "type: \"Pooling\"\npooling_param { " + fields + " }";
}

TEST(PoolingTest, HandValuesOfTheGreatestAndItsPlace) {
  LayerRunner pool(Pool("pool: MAX kernel_size: 2 stride: 2"), {{1, 1, 2, 4}}, {.outputs = 2});
  EXPECT_THAT(pool.Forward({1, 2, 8, 7, 4, 3, 5, 6}), ElementsAre(4, 8));
  EXPECT_THAT(pool.Output(1), ElementsAre(4, 2));
  pool.Backward({{10, 20}});
  EXPECT_THAT(pool.InputGradient(), ElementsAre(0, 0, 20, 0, 10, 0, 0, 0));
}

TEST(PoolingTest, HandValuesOfTheMeanCountPaddingAsZeros) {
  LayerRunner pool(Pool("pool: AVE kernel_size: 3 stride: 3 pad: 1"), {{1, 1, 2, 2}});
  EXPECT_THAT(pool.Forward({9, 18, 27, 36}), ElementsAre(10));
}

TEST(PoolingTest, HandValuesOfGlobalPooling) {
  LayerRunner pool(Pool("pool: AVE global_pooling: true"), {{1, 2, 2, 2}});
  EXPECT_THAT(pool.Forward({1, 2, 3, 6, 10, 10, 20, 20}), ElementsAre(3, 15));
}

Shape PooledShape(const std::string& fields, const Shape& in) {
  return LayerRunner(Pool(fields), {in}).OutputShape();
}

TEST(PoolingTest, OutputSizeRoundsUpUnlessAskedNotTo) {
  EXPECT_EQ(PooledShape("kernel_size: 3 stride: 2", {1, 1, 6, 7}), Shape({1, 1, 3, 3}));
  EXPECT_EQ(PooledShape("kernel_size: 3 stride: 2 round_mode: FLOOR", {1, 1, 6, 7}),
            Shape({1, 1, 2, 3}));
  EXPECT_EQ(PooledShape("kernel_size: 3 stride: 2 torch_pooling: true", {1, 1, 6, 7}),
            Shape({1, 1, 2, 3}));
}

TEST(PoolingTest, CeilModeIsAnotherWordForRoundMode) {
  const std::string windows = "kernel_size: 3 stride: 2 ";
  const Shape in = {1, 1, 6, 7}, up = {1, 1, 3, 3}, down = {1, 1, 2, 3};
  EXPECT_EQ(PooledShape(windows + "ceil_mode: false", in), down);
  EXPECT_EQ(PooledShape(windows + "ceil_mode: true", in), up);
  EXPECT_EQ(PooledShape(windows + "ceil_mode: false round_mode: FLOOR", in), down);
  EXPECT_EQ(PooledShape(windows + "ceil_mode: true round_mode: CEIL", in), up);
  EXPECT_EQ(PooledShape(windows + "ceil_mode: false torch_pooling: true", in), down);
}

TEST(PoolingTest, RefusesContradictionsAboutRounding) {
  const auto refusal = [](const std::string& fields) {
    return RefusalOf(Pool("kernel_size: 3\n" + fields), {{1, 1, 6, 6}});
  };
  EXPECT_THAT(refusal("ceil_mode: false round_mode: CEIL"),
              HasSubstr("net.prototxt:5:1: layer 'it' (Pooling): ceil_mode: false contradicts "
                        "round_mode: CEIL; remove one of them"));
  EXPECT_THAT(refusal("ceil_mode: true round_mode: FLOOR"),
              HasSubstr("ceil_mode: true contradicts round_mode: FLOOR"));
  EXPECT_THAT(refusal("ceil_mode: true torch_pooling: true"),
              HasSubstr("ceil_mode: true contradicts torch_pooling: true"));
}

TEST(PoolingTest, OutputSizeDropsAWindowThatStartsBehindThePaddedImage) {
  EXPECT_EQ(PooledShape("kernel_size: 2 stride: 2 pad: 1", {1, 1, 5, 6}), Shape({1, 1, 3, 4}));
  EXPECT_EQ(PooledShape("kernel_size: 2 stride: 3 pad: 1", {1, 1, 5, 5}), Shape({1, 1, 2, 2}));
}

TEST(PoolingTest, OutputSizeOfAKernelThatReachesBehindTheImage) {
  EXPECT_EQ(PooledShape("kernel_size: 3 stride: 2", {1, 1, 2, 2}), Shape({1, 1, 1, 1}));
}

TEST(PoolingTest, GradientMatchesDifferences) {
  for (const char* fields :
       {"pool: AVE kernel_size: 3 stride: 2 pad: 1", "pool: AVE kernel_size: 2 stride: 1",
        "pool: MAX kernel_size: 2", "pool: MAX kernel_size: 3 stride: 2 pad: 1"}) {
    SCOPED_TRACE(fields);
    LayerRunner pool(Pool(fields), {{2, 2, 5, 4}});
    std::vector<float> x(80);  // all different, so that no step changes a maximum
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 80) / 20;
    pool.SetInput(0, x);
    pool.ExpectGradient();
  }
}

TEST(PoolingTest, GoldenValues) {
  for (const GoldenCase& golden : ReadGolden("layers/shapes/pooling.txt")) {
    GoldenUse use;
    if (golden.tensors.count("winners") > 0) use.outputs = {"y", "winners"};
    ExpectGolden(golden, use);
  }
}

TEST(PoolingTest, HandValuesOfStochasticPoolingInTesting) {
  LayerRunner pool(Pool("pool: STOCHASTIC kernel_size: 2 stride: 2"), {{1, 1, 2, 4}},
                   {.phase = caffe::TEST, .training = false});
  EXPECT_THAT(pool.Forward({1, 2, 0, 0, 3, 4, 0, 0}), ElementsAre(3, 0));
}

TEST(PoolingTest, HandValuesOfStochasticPoolingDrawInProportion) {
  const int64_t windows = 4000;
  LayerRunner pool(Pool("pool: STOCHASTIC kernel_h: 1 kernel_w: 4 stride_h: 1 stride_w: 4"),
                   {{1, 1, 1, 4 * windows}});
  std::vector<float> x;
  for (int64_t i = 0; i < windows; ++i) x.insert(x.end(), {1, 0, 2, 5});
  const std::vector<float> y = pool.Forward(x);
  EXPECT_EQ(std::count(y.begin(), y.end(), 0.0f), 0);
  EXPECT_NEAR(static_cast<double>(std::count(y.begin(), y.end(), 1.0f)), 500, 80);
  EXPECT_NEAR(static_cast<double>(std::count(y.begin(), y.end(), 5.0f)), 2500, 120);
  pool.Backward({std::vector<float>(windows, 1)});
  const std::vector<float> dx = pool.InputGradient();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t drawn = y[i] == 1 ? 0 : y[i] == 2 ? 2 : 3;
    for (size_t k = 0; k < 4; ++k) EXPECT_EQ(dx[4 * i + k], k == drawn ? 1 : 0);
  }
}

TEST(PoolingTest, HandValuesOfStochasticPoolingAddUpWhereWindowsOverlap) {
  LayerRunner pool(Pool("pool: STOCHASTIC kernel_size: 2 stride: 1"), {{1, 1, 3, 3}});
  pool.Forward({0, 0, 0, 0, 1, 0, 0, 0, 0});
  EXPECT_THAT(pool.Output(), Each(1));
  pool.Backward({{1, 10, 100, 1000}});
  EXPECT_THAT(pool.InputGradient(), ElementsAre(0, 0, 0, 0, 1111, 0, 0, 0, 0));
}

TEST(PoolingTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Pool("kernel_size: 3 pad: 1"), {{2, 3, 4, 5}});
}

TEST(PoolingTest, RefusesBadWindows) {
  const Shape in{1, 1, 4, 4};
  EXPECT_THAT(RefusalOf(Pool("kernel_size: 2 pad: 2"), {in}),
              HasSubstr("net.prototxt:4:32: layer 'it' (Pooling): a pad of 2x2 is not smaller "
                        "than the kernel of 2x2: a window could contain padding only"));
  EXPECT_THAT(RefusalOf(Pool("kernel_size: 9"), {in}),
              HasSubstr("a kernel of 9x9 does not fit into images of 4x4 with pad 0x0; use a "
                        "smaller kernel or more pad"));
  EXPECT_THAT(RefusalOf(Pool("kernel_size: 2 stride: 0"), {in}),
              HasSubstr("net.prototxt:4:32: layer 'it' (Pooling): stride is 0; it must be at least "
                        "1"));
  EXPECT_THAT(RefusalOf(Pool("kernel_h: 0 kernel_w: 1"), {in}),
              HasSubstr("kernel_h is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Pool("pool: MAX"), {in}),
              HasSubstr("kernel_size is not given; write it, or kernel_h and kernel_w, or "
                        "global_pooling: true"));
  EXPECT_THAT(RefusalOf(Pool("kernel_size: 2 kernel_h: 2 kernel_w: 2"), {in}),
              HasSubstr("kernel_h and kernel_size are both given; keep one of them"));
  EXPECT_THAT(RefusalOf(Pool("kernel_h: 2"), {in}),
              HasSubstr("kernel_h is given without kernel_w; give both"));
}

TEST(PoolingTest, RefusesWhatContradictsGlobalPooling) {
  const Shape in{1, 1, 4, 4};
  EXPECT_THAT(RefusalOf(Pool("global_pooling: true kernel_size: 4"), {in}),
              HasSubstr("kernel_size is given, but with global_pooling the window is the whole "
                        "image; remove one of them"));
  EXPECT_THAT(RefusalOf(Pool("global_pooling: true pad: 1"), {in}),
              HasSubstr("global_pooling does not allow padding; remove the pad"));
  EXPECT_THAT(RefusalOf(Pool("global_pooling: true stride: 2"), {in}),
              HasSubstr("global_pooling has one window, so its stride is 1; remove the stride"));
}

TEST(PoolingTest, RefusesWhatAMethodCannotDo) {
  const Shape in{1, 1, 4, 4};
  EXPECT_THAT(
      RefusalOf(Pool("pool: AVE kernel_size: 2"), {in}, {.outputs = 2}),
      HasSubstr("only MAX has a second top (the indices of the largest values); remove it"));
  EXPECT_THAT(RefusalOf(Pool("pool: STOCHASTIC kernel_size: 2 pad: 1"), {in}),
              HasSubstr("STOCHASTIC pooling does not allow padding; remove the pad, or use MAX or "
                        "AVE"));
  EXPECT_THAT(RefusalOf(Pool("kernel_size: 2"), {{4, 4}}),
              HasSubstr("bottom 'x0' has shape (4, 4), but this layer needs images (N, C, H,"));
}

TEST(PoolingTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Pooling" pooling_param { kernel_size: 3 stride: 2 })", {{2, 3, 7, 8}});
  ExpectBf16Near(R"(type: "Pooling" pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 })",
                 {{2, 20, 7, 8}});
  std::vector<float> positive(96);
  for (size_t i = 0; i < positive.size(); ++i) positive[i] = static_cast<float>(i % 15) / 16;
  ExpectBf16Near(R"(type: "Pooling" pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 })",
                 {{2, 3, 4, 4}}, {.inputs = {positive}});
}

}  // namespace
}  // namespace trainer
