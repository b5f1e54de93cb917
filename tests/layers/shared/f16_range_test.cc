// Tests values near the ends of f16's range, [-65504, 65504]. Layers compute in f32, so
// intermediate values outside the range do no harm, and masked values do not affect the result.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/layer_runner.h"
#include "support/test_device.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;
using testing::Pointwise;

constexpr float kInf = std::numeric_limits<float>::infinity();

class F16RangeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestsOnGpu()) GTEST_SKIP() << "the CPU stores no f16";
  }

  static std::vector<float> Run(const std::string& layer, const Shape& shape,
                                const std::vector<float>& x) {
    LayerRunner runner(layer + " forward_type: FLOAT16", {shape});
    return runner.Forward(x);
  }
  // Expects the f32 result within two units in f16's last place.
  static void ExpectAsInF32(const std::string& layer, const Shape& shape,
                            const std::vector<float>& x) {
    const std::vector<float> dy = LayerRunner::SomeValues(shape.Count(), 3);
    std::vector<std::vector<float>> y, dx;
    for (const char* type : {"FLOAT", "FLOAT16"}) {
      LayerRunner runner(layer + " forward_type: " + type, {shape});
      y.push_back(runner.Forward(x));
      runner.Backward({dy});
      dx.push_back(runner.InputGradient());
    }
    ExpectNear(y[1], y[0], 0x1p-10f, "y");
    ExpectNear(dx[1], dx[0], 0x1p-10f, "dx");
  }
};

TEST_F(F16RangeTest, WhatIsTooLargeIsInfiniteAndWhatIsTooSmallIsZero) {
  EXPECT_THAT(
      Run("type: \"Power\" power_param { scale: 2 }", {4}, {40000, -40000, 30000, 0x1p-26f}),
      ElementsAre(kInf, -kInf, 60000, 0));
}

TEST_F(F16RangeTest, SoftmaxGivesAMaskedClassNothingAndTheOthersTheirShare) {
  const std::vector<float> y =
      Run("type: \"Softmax\"", {2, 3}, {-kInf, 1, 1, -70000, 60000, -60000});
  EXPECT_THAT(y, ElementsAre(0, 0.5f, 0.5f, 0, 1, 0));
}

TEST_F(F16RangeTest, PoolsTakeTheirSumsInF32) {
  const std::vector<float> large(9, 60000), masked(9, -kInf);
  const std::string pool = "type: \"Pooling\" pooling_param { kernel_size: 3 pool: ";
  EXPECT_THAT(Run(pool + "AVE }", {1, 1, 3, 3}, large), ElementsAre(60000));
  EXPECT_THAT(Run(pool + "MAX }", {1, 1, 3, 3}, masked), ElementsAre(-kInf));
  EXPECT_THAT(Run(pool + "MAX pad: 1 }", {1, 1, 3, 3}, large), Each(60000));
}

TEST_F(F16RangeTest, NormalisationsTakeSquaresInF32) {
  const Shape image{2, 6, 3, 3};
  std::vector<float> x = LayerRunner::SomeValues(image.Count(), 1);
  for (float& value : x) value *= 20000;
  ExpectAsInF32("type: \"LRN\" lrn_param { local_size: 5 alpha: 0.1 }", image, x);
  ExpectAsInF32("type: \"BatchNorm\"", image, x);
  ExpectAsInF32("type: \"MVN\"", image, x);
  ExpectAsInF32("type: \"Normalize\"", image, x);
}

TEST_F(F16RangeTest, ProductsAreSummedInF32) {
  LayerRunner runner(
      "type: \"InnerProduct\" inner_product_param { num_output: 1 bias_term: false } "
      "forward_type: FLOAT16",
      {{1, 4}});
  runner.SetParam(0, {40, 40, -40, -39});
  EXPECT_THAT(runner.Forward({2000, 2000, 2000, 2000}), ElementsAre(FloatEq(2000)));
}

TEST_F(F16RangeTest, AnInfiniteGradientStaysOutOfWhatAReluCutOff) {
  for (const char* layer : {"type: \"ReLU\"", "type: \"Clip\" clip_param { min: 0 max: 1 }"}) {
    LayerRunner runner(std::string(layer) + " forward_type: FLOAT16", {{3}});
    runner.Forward({-1, 0.5f, -2});
    runner.Backward({{kInf, 2, -kInf}});
    EXPECT_THAT(runner.InputGradient(), ElementsAre(0, 2, 0)) << layer;
  }
}

}  // namespace
}  // namespace trainer
