#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "support/layer_runner.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(GeluTest, HandValues) {
  LayerRunner layer(R"(type: "GELU")", {{4}});
  // The normal distribution function is 0.8413447 at 1.
  ExpectNear(layer.Forward({0, 1, -1, 30}), {0, 0.8413447f, -0.1586553f, 30}, 1e-6f);
  layer.Backward({{1, 1, 1, 1}});
  // The normal density at 1 is 0.2419707.
  ExpectNear(layer.InputGradient(), {0.5, 1.0833155f, -0.0833155f, 1}, 1e-6f);
}

TEST(GeluTest, IsNearItsDefinitionInDouble) {
  std::vector<float> values;
  for (int i = -9000; i <= 9000; ++i) values.push_back(static_cast<float>(i) / 997);
  LayerRunner layer(R"(type: "GELU")", {{static_cast<int64_t>(values.size())}});
  const std::vector<float> out = layer.Forward(values);
  layer.Backward({std::vector<float>(values.size(), 1)});
  const std::vector<float> slopes = layer.InputGradient();
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i], below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    EXPECT_NEAR(out[i], x * below, 3e-7 * std::fabs(x)) << x;
    EXPECT_NEAR(slopes[i], below + x * density, 4e-7) << x;
  }
}

TEST(GeluTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "approximate: true"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Join("type: \"GELU\" gelu_param { ", fields, " }"), {{2, 3, 2, 2}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1));
    layer.ExpectGradient();
  }
}

TEST(GeluTest, GoldenValues) { ExpectGoldenFile("layers/activations/gelu.txt"); }

TEST(GeluTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(R"(type: "GELU")", {{2, 3, 4, 5}}); }

TEST(GeluTest, RefusesTwoInputs) {
  EXPECT_THAT(RefusalOf(R"(type: "GELU")", {{2}, {2}}),
              HasSubstr("layer 'it' (GELU): it needs 1 bottom, but 2 are"));
}

TEST(GeluTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "GELU")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
