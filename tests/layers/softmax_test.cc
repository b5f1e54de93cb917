#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

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

TEST(SoftmaxTest, GradientMatchesDifferences) {
  for (const char* axis : {"0", "1", "2", "-1"}) {
    LayerRunner softmax(std::string("type: \"Softmax\" softmax_param { axis: ") + axis + " }",
                        {{2, 3, 4, 2}});
    softmax.SetInput(0, LayerRunner::SomeValues(48, 1));
    softmax.ExpectGradient();
  }
}

TEST(SoftmaxTest, GoldenValues) {
  for (const GoldenCase& golden : ReadGolden("softmax.txt")) ExpectGolden(golden);
}

TEST(SoftmaxTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(R"(type: "Softmax")", {{2, 3, 4, 5}});
}

TEST(SoftmaxTest, RefusesAnAxisThatIsNotThere) {
  EXPECT_THAT(RefusalOf("type: \"Softmax\" softmax_param { axis: 3 }", {{2, 3}}),
              HasSubstr("net.prototxt:3:33: layer 'it' (Softmax): axis is 3, but the input (2, 3) "
                        "has 2 axes"));
}

TEST(SoftmaxTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "Softmax")", {{2, 7, 3, 4}}); }

}  // namespace
}  // namespace trainer
