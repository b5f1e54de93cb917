#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Exp(const std::string& fields) { return "type: \"Exp\"\nexp_param { " + fields + " }"; }

TEST(ExpTest, HandValues) {
  LayerRunner layer(Exp("base: 2 scale: 3 shift: 1"), {{3}});
  ExpectNear(layer.Forward({0, 1, -1}), {2, 16, 0.25}, 1e-6f);
}

TEST(ExpTest, HandValuesAtTheEndsOfTheRange) {
  LayerRunner layer(Exp("base: -1"), {{6}});
  const std::vector<float> y = layer.Forward({88.7f, 89, 1000, -87, -104, -1000});
  EXPECT_NEAR(y[0] / 3.3259785e38f, 1, 1e-5);
  EXPECT_TRUE(std::isinf(y[1]) && std::isinf(y[2]));
  EXPECT_NEAR(y[3] / 1.6458115e-38f, 1, 1e-5);
  EXPECT_NEAR(y[4], 0, 1e-44);
  EXPECT_EQ(y[5], 0);
}

TEST(ExpTest, HandValuesAgreeWithTheLibraryToAFewUnits) {
  const int n = 4001;
  LayerRunner layer(Exp("base: -1"), {{n}});
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i - 2000) * 0.04f;
  const std::vector<float> y = layer.Forward(x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(y[i] / std::exp(static_cast<double>(x[i])), 1, 3e-7) << x[i];
  }
}

TEST(ExpTest, GradientMatchesDifferences) {
  LayerRunner layer(Exp("base: 2 scale: 0.5 shift: -1"), {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(ExpTest, GoldenValues) { ExpectGoldenFile("layers/activations/exp.txt"); }

TEST(ExpTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(Exp("base: 3"), {{2, 3, 4, 5}}); }

TEST(ExpTest, RefusesBadBases) {
  EXPECT_THAT(RefusalOf(Exp("base: 0"), {{2}}),
              HasSubstr("net.prototxt:4:13: layer 'it' (Exp): base is 0; it must be above 0, or -1 "
                        "for e"));
  EXPECT_THAT(RefusalOf(Exp("base: -2"), {{2}}), HasSubstr("base is -2; it must be above 0"));
}

TEST(ExpTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "Exp")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
