#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Flatten(const std::string& fields = "") {
  return "type: \"Flatten\"\nflatten_param { " + fields + " }";
}

TEST(FlattenTest, HandValuesKeepTheRowMajorOrder) {
  const std::pair<const char*, Shape> cases[] = {{"", {2, 60}},
                                                 {"axis: 0", {120}},
                                                 {"axis: 2", {2, 3, 20}},
                                                 {"axis: 0 end_axis: 1", {6, 4, 5}},
                                                 {"axis: 1 end_axis: -2", {2, 12, 5}},
                                                 {"axis: 2 end_axis: 2", {2, 3, 4, 5}}};
  for (const auto& [fields, shape] : cases) {
    SCOPED_TRACE(fields);
    LayerRunner flatten(Flatten(fields), {{2, 3, 4, 5}});
    const std::vector<float> x = LayerRunner::SomeValues(120, 1);
    const std::vector<float> dy = LayerRunner::SomeValues(120, 2);
    EXPECT_EQ(flatten.Forward(x), x);
    EXPECT_EQ(flatten.OutputShape(), shape);
    flatten.Backward({dy});
    EXPECT_EQ(flatten.InputGradient(), dy);
  }
}

TEST(FlattenTest, HandValuesOfAnImageMadeOfFiveAxes) {
  LayerRunner flatten(Flatten("axis: 1 end_axis: 2"), {{2, 2, 3, 4, 5}});
  const std::vector<float> x = LayerRunner::SomeValues(240, 1);
  EXPECT_EQ(flatten.Forward(x), x);
  EXPECT_EQ(flatten.OutputShape(), Shape({2, 6, 4, 5}));
  flatten.Backward({x});
  EXPECT_EQ(flatten.InputGradient(), x);
}

TEST(FlattenTest, GradientMatchesDifferences) {
  LayerRunner flatten(Flatten(), {{2, 3, 2, 2}});
  flatten.SetInput(0, LayerRunner::SomeValues(24, 1));
  flatten.ExpectGradient();
}

TEST(FlattenTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(Flatten(), {{2, 3, 4, 5}}); }

TEST(FlattenTest, RefusesBadAxes) {
  EXPECT_THAT(RefusalOf(Flatten("axis: 4"), {{2, 3}}),
              HasSubstr("net.prototxt:4:17: layer 'it' (Flatten): axis is 4, but the input (2, 3) "
                        "has 2 axes"));
  EXPECT_THAT(RefusalOf(Flatten("axis: 2 end_axis: 1"), {{2, 3, 4}}),
              HasSubstr("end_axis 1 is before axis 2 for an input of shape (2, 3, 4)"));
}

TEST(FlattenTest, Bf16IsNearF32) { ExpectBf16Near(R"(type: "Flatten")", {{2, 3, 5, 6}}); }

}  // namespace
}  // namespace trainer
