#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_runner.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(SoftmaxTest, HandValues) {
  LayerRunner softmax(R"(type: "Softmax")", {{2, 2}});
  ExpectNear(softmax.Forward({0, 0, 0, 1.0986123f}), {0.5, 0.5, 0.25, 0.75}, 1e-6f);
}

TEST(SoftmaxTest, HandValuesOfGreatScoresStayFinite) {
  LayerRunner softmax(R"(type: "Softmax")", {{1, 3}});
  ExpectNear(softmax.Forward({1e30f, 1e30f, -1e30f}), {0.5, 0.5, 0}, 1e-6f);
}

TEST(SoftmaxTest, HandValuesOfManyClassesAddUpToOne) {
  LayerRunner softmax(R"(type: "Softmax")", {{3, 1001}});
  const std::vector<float> y = softmax.Forward(LayerRunner::SomeValues(3003, 4));
  for (size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 1001; ++i) sum += y[row * 1001 + i];
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

// Compares the layer with the formula in double, along axis 1 of (N, C, T).
void ExpectSoftmaxFormula(int64_t n, int64_t channels, int64_t t) {
  SCOPED_TRACE(Join("(", n, ", ", channels, ", ", t, ")"));
  LayerRunner softmax(R"(type: "Softmax")", {{n, channels, t}});
  const std::vector<float> x = LayerRunner::SomeValues(n * channels * t, 1);
  const std::vector<float> dy = LayerRunner::SomeValues(n * channels * t, 2);
  std::vector<float> y(x.size()), dx(x.size());
  for (int64_t row = 0; row < n * t; ++row) {
    const int64_t first = row / t * channels * t + row % t;
    double sum = 0, dot = 0;
    for (int64_t c = 0; c < channels; ++c) sum += std::exp(double{x[first + c * t]});
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = first + c * t;
      y[at] = static_cast<float>(std::exp(double{x[at]}) / sum);
      dot += std::exp(double{x[at]}) / sum * dy[at];
    }
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t at = first + c * t;
      dx[at] = static_cast<float>(y[at] * (dy[at] - dot));
    }
  }
  ExpectNear(softmax.Forward(x), y, 1e-6f, "y");
  softmax.Backward({dy});
  ExpectNear(softmax.InputGradient(), dx, 1e-6f, "dx");
}

TEST(SoftmaxTest, GoldenValuesOfTheFormulaForAnySteps) {
  for (const int64_t t : {1, 2, 15, 16, 17, 48}) {
    for (const int64_t channels : {1, 3, 16, 37, 130}) ExpectSoftmaxFormula(3, channels, t);
  }
  ExpectSoftmaxFormula(2, 30, 4096);
}

TEST(SoftmaxTest, TheGreatestScoreMayLieAnywhere) {
  for (int64_t count = 1; count < 40; ++count) {
    LayerRunner softmax(R"(type: "Softmax")", {{count, count}});
    std::vector<float> x(count * count, -1e4f), want(count * count, 0.0f);
    for (int64_t i = 0; i < count; ++i) x[i * count + i] = 1e4f, want[i * count + i] = 1;
    EXPECT_EQ(softmax.Forward(x), want);
  }
}

TEST(SoftmaxTest, GradientMatchesDifferences) {
  for (const char* axis : {"0", "1", "2", "-1"}) {
    LayerRunner softmax(std::string("type: \"Softmax\" softmax_param { axis: ") + axis + " }",
                        {{2, 3, 4, 2}});
    softmax.SetInput(0, LayerRunner::SomeValues(48, 1));
    softmax.ExpectGradient();
  }
}

TEST(SoftmaxTest, GoldenValues) {
  for (const GoldenCase& golden : ReadGolden("layers/activations/softmax.txt"))
    ExpectGolden(golden);
}

TEST(SoftmaxTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "Softmax")", {{2, 3, 4, 5}});
}

TEST(SoftmaxTest, RefusesAnAxisThatIsNotThere) {
  EXPECT_THAT(RefusalOf("type: \"Softmax\" softmax_param { axis: 3 }", {{2, 3}}),
              HasSubstr("net.prototxt:3:33: layer 'it' (Softmax): axis is 3, but the input (2, 3) "
                        "has 2 axes"));
}

TEST(SoftmaxTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Softmax")", {{2, 7, 3, 4}});
  ExpectBf16Near(R"(type: "Softmax")", {{2, 7, 32}});
}

}  // namespace
}  // namespace trainer
