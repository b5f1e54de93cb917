#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_runner.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Lrn(const std::string& fields) { return "type: \"LRN\"\nlrn_param { " + fields + " }"; }

TEST(LrnTest, HandValuesAcrossChannels) {
  LayerRunner layer(Lrn("local_size: 3 alpha: 3 beta: 1 k: 2"), {{1, 4, 1, 1}});
  ExpectNear(layer.Forward({1, 2, 0, 3}), {1 / 7.0f, 2 / 7.0f, 0, 3 / 11.0f}, 1e-6f);
}

TEST(LrnTest, HandValuesWithinAChannelIgnoreK) {
  LayerRunner layer(Lrn("local_size: 3 alpha: 9 beta: 1 k: 5 norm_region: WITHIN_CHANNEL"),
                    {{1, 1, 1, 4}});
  ExpectNear(layer.Forward({1, 2, 0, 3}), {1 / 6.0f, 2 / 6.0f, 0, 3 / 10.0f}, 1e-6f);
}

TEST(LrnTest, HandValuesOfADefaultExponent) {
  LayerRunner layer(Lrn("local_size: 1 alpha: 15"), {{1, 1, 1, 2}});
  ExpectNear(layer.Forward({1, -1}), {0.125f, -0.125f}, 1e-6f);  // 16^-0.75
}

// Caffe computes x * inf^-beta. The default exponent has its own code, so another is tested too.
TEST(LrnTest, HandValuesOfAnInfiniteSumAreZero) {
  for (const char* fields :
       {"local_size: 1", "local_size: 1 beta: 0.5", "local_size: 1 norm_region: WITHIN_CHANNEL"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Lrn(fields), {{1, 1, 1, 2}});
    EXPECT_THAT(layer.Forward({1e30f, -1e25f}), testing::ElementsAre(0, 0));
    EXPECT_TRUE(std::isnan(layer.Forward({NAN, 1})[0]));
  }
}

TEST(LrnTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "local_size: 3", "local_size: 7 beta: 0.5", "local_size: 1",
                             "local_size: 3 norm_region: WITHIN_CHANNEL",
                             "local_size: 5 beta: 1.5 norm_region: WITHIN_CHANNEL"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Lrn(fields), {{2, 6, 3, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(72, 1));
    layer.ExpectGradient();
  }
}

TEST(LrnTest, GoldenValues) { ExpectGoldenFile("layers/norms/lrn.txt", 2e-5f); }

TEST(LrnTest, WindowsWiderThanTheInputTakeAllOfIt) {
  const std::vector<float> x = {0.5f, -1, 2, 1, 1, -2, 0.25f, 1};
  LayerRunner all(Lrn("local_size: 3 alpha: 3"), {{4, 2, 1, 1}});
  LayerRunner wide(Lrn("local_size: 9 alpha: 9"), {{4, 2, 1, 1}});
  ExpectNear(wide.Forward(x), all.Forward(x), 1e-6f);
}

// Computes the formula across channels in double, with n odd neighbours and k = 2.
struct Across {
  int64_t pixels, channels;
  int n;
  double alpha, beta;

  // Returns s at index i. Neighbouring channels are `pixels` elements apart.
  double Base(const std::vector<float>& x, int64_t i) const {
    double sum = 0;
    ForNeighbours(i, [&](int64_t j) { sum += double{x[j]} * x[j]; });
    return 2 + alpha / n * sum;
  }
  template <class F>
  void ForNeighbours(int64_t i, F f) const {
    const int64_t c = i / pixels % channels;
    for (int64_t d = -(n / 2); d <= n / 2; ++d) {
      if (c + d >= 0 && c + d < channels) f(i + d * pixels);
    }
  }
  std::vector<float> Forward(const std::vector<float>& x) const {
    std::vector<float> y;
    for (int64_t i = 0; i < std::ssize(x); ++i) y.push_back(x[i] * std::pow(Base(x, i), -beta));
    return y;
  }
  std::vector<float> Backward(const std::vector<float>& x, const std::vector<float>& dy) const {
    std::vector<float> dx;
    for (int64_t i = 0; i < std::ssize(x); ++i) {
      double shares = 0;
      ForNeighbours(
          i, [&](int64_t j) { shares += double{dy[j]} * x[j] * std::pow(Base(x, j), -beta - 1); });
      dx.push_back(dy[i] * std::pow(Base(x, i), -beta) - 2 * alpha / n * beta * x[i] * shares);
    }
    return dx;
  }
};

void ExpectLrnFormula(int64_t channels, int n, double beta, int64_t height = 5) {
  SCOPED_TRACE(Join(channels, " channels, size ", n, ", beta ", beta));
  const Shape shape = {1, channels, height, 7};
  const Across across = {height * 7, channels, n, 3, beta};
  LayerRunner layer(Lrn(Join("k: 2 alpha: 3 local_size: ", n, " beta: ", beta)), {shape});
  const std::vector<float> x = LayerRunner::SomeValues(shape.Count(), 1);
  const std::vector<float> dy = LayerRunner::SomeValues(shape.Count(), 2);
  ExpectNear(layer.Forward(x), across.Forward(x), 2e-6f, "y");
  layer.Backward({dy});
  ExpectNear(layer.InputGradient(), across.Backward(x, dy), 5e-6f, "dx");
}

TEST(LrnTest, GoldenValuesOfTheFormulaForManyWidths) {
  for (const int64_t channels : {1, 2, 3, 5, 16, 31, 64, 96, 300, 1024, 1025}) {
    for (const int n : {1, 5, 7, 33}) ExpectLrnFormula(channels, n, 0.75);
  }
  ExpectLrnFormula(20, 35, 0.75);
  ExpectLrnFormula(20, 5, 1.5);
  ExpectLrnFormula(1030, 5, 0.5);
}

TEST(LrnTest, GoldenValuesOfABatchLargerThanTheCaches) {
  TRAINER_CPU_ONLY("what it writes past its caches");
  ExpectLrnFormula(96, 5, 0.75, 5001);
}

TEST(LrnTest, TinyAndHugeSumsOfSquaresKeepTheirPower) {
  LayerRunner layer(Lrn("local_size: 1 alpha: 1 k: 0"), {{1, 1, 1, 4}});
  const std::vector<float> x = {1e-18f, 1e-3f, 1e4f, 1e18f};  // y = x^-0.5
  const std::vector<float> y = layer.Forward(x);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i] * std::sqrt(x[i]), 1, 1e-6) << x[i];
}

TEST(LrnTest, ANotANumberSpreadsToItsNeighboursAlone) {
  LayerRunner layer(Lrn("local_size: 3"), {{1, 6, 1, 1}});
  const std::vector<float> y = layer.Forward({1, 1, NAN, 1, 1, 1});
  for (size_t c = 0; c < y.size(); ++c) EXPECT_EQ(std::isnan(y[c]), c >= 1 && c <= 3) << c;
}

TEST(LrnTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Lrn(""), {{2, 7, 4, 5}});
  ExpectInPlaceEqual(Lrn("local_size: 3 norm_region: WITHIN_CHANNEL"), {{2, 3, 4, 5}});
}

TEST(LrnTest, RefusesAnEvenSize) {
  EXPECT_THAT(RefusalOf(Lrn("local_size: 4"), {{1, 4, 1, 1}}),
              HasSubstr("net.prototxt:4:13: layer 'it' (LRN): local_size is 4; it must be odd, so "
                        "that both sides have the same number of neighbours"));
}

TEST(LrnTest, RefusesWhatIsNoImage) {
  EXPECT_THAT(RefusalOf(Lrn(""), {{4, 5}}), HasSubstr("images (N, C, H, W)"));
}

TEST(LrnTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "LRN")", {{2, 7, 4, 5}});
  ExpectBf16Near(R"(type: "LRN" lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL })",
                 {{2, 7, 4, 5}});
}

}  // namespace
}  // namespace trainer
