#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Product(const std::string& fields) {
  return "type: \"InnerProduct\"\ninner_product_param { " + fields + " }";
}

TEST(InnerProductTest, HandValues) {
  LayerRunner layer(Product("num_output: 2"), {{2, 3}});
  layer.SetParam(0, {1, 2, 3, 10, 20, 30});
  layer.SetParam(1, {0.5, -0.5});
  EXPECT_THAT(layer.Forward({1, 1, 1, 2, 0, 1}), ElementsAre(6.5, 59.5, 5.5, 49.5));
}

TEST(InnerProductTest, HandValuesOfAnImageReadTheWeightInTheFilesOrder) {
  LayerRunner layer(Product("num_output: 1 bias_term: false"), {{1, 2, 1, 2}});
  layer.SetParam(0, {1, 10, 100, 1000});
  EXPECT_THAT(layer.Forward({1, 2, 3, 4}), ElementsAre(4321));
  layer.Backward({{1}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(1, 2, 3, 4));
}

TEST(InnerProductTest, GradientMatchesDifferences) {
  const std::pair<const char*, Shape> cases[] = {{"num_output: 3", {4, 5}},
                                                 {"num_output: 3 transpose: true", {4, 5}},
                                                 {"num_output: 3", {2, 3, 2, 2}},
                                                 {"num_output: 3 transpose: true", {2, 3, 2, 2}},
                                                 {"num_output: 2 axis: 2", {2, 3, 2, 2}},
                                                 {"num_output: 2 axis: -1", {2, 3, 2, 2}},
                                                 {"num_output: 2 axis: 0", {2, 3, 2, 2}},
                                                 {"num_output: 2 axis: 3", {2, 3, 2, 2, 2}}};
  for (const auto& [fields, shape] : cases) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Product(fields), {shape});
    layer.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
    layer.SetParam(0, LayerRunner::SomeValues(layer.ParamAt(0).count(), 2));
    layer.SetParam(1, LayerRunner::SomeValues(layer.ParamAt(1).count(), 3));
    layer.ExpectGradient();
  }
}

TEST(InnerProductTest, GoldenValues) {
  for (const GoldenCase& golden : ReadGolden("layers/products/inner_product.txt")) {
    ExpectGolden(golden, {.bound = 1e-4f});
  }
}

TEST(InnerProductTest, OutputShapeKeepsTheAxesBefore) {
  EXPECT_EQ(LayerRunner(Product("num_output: 7"), {{2, 3, 4, 5}}).OutputShape(), Shape({2, 7}));
  EXPECT_EQ(LayerRunner(Product("num_output: 7 axis: 2"), {{2, 3, 4}}).OutputShape(),
            Shape({2, 3, 7}));
  EXPECT_EQ(LayerRunner(Product("num_output: 7 axis: 0"), {{2, 3}}).OutputShape(), Shape({7}));
}

TEST(InnerProductTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Product("num_output: 3"), {{2, 3}});
}

TEST(InnerProductTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(Product("num_output: 0"), {{2, 3}}),
              HasSubstr("net.prototxt:4:23: layer 'it' (InnerProduct): num_output is 0; it must be "
                        "at least 1"));
  EXPECT_THAT(RefusalOf(Product("bias_term: true"), {{2, 3}}),
              HasSubstr("num_output is not given; it is the number of outputs"));
  EXPECT_THAT(RefusalOf(Product("num_output: 1 axis: 2"), {{2, 3}}),
              HasSubstr("net.prototxt:4:37: layer 'it' (InnerProduct): axis is 2, but the input "
                        "(2, 3) has 2 axes"));
}

TEST(InnerProductTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "InnerProduct" inner_product_param { num_output: 5 })", {{2, 3, 5, 6}});
  ExpectBf16Near(R"(type: "InnerProduct" inner_product_param { num_output: 5 transpose: true })",
                 {{6, 20}});
  ExpectBf16Near(R"(type: "InnerProduct" inner_product_param { num_output: 4 axis: 3 })",
                 {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer
