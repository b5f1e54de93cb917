#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string MatMul(const std::string& fields = "") {
  return "type: \"MatMul\"\nmatmul_param { " + fields + " }";
}

TEST(MatMulTest, HandValues) {
  LayerRunner layer(MatMul(), {{2, 2}, {2, 1}});
  layer.SetInput(0, {1, 2, 3, 4});
  layer.SetInput(1, {10, 1});
  layer.Forward();
  EXPECT_EQ(layer.OutputShape(), Shape({2, 1}));
  EXPECT_THAT(layer.Output(), ElementsAre(12, 34));
  layer.Backward({{1, 2}});
  EXPECT_THAT(layer.InputGradient(0), ElementsAre(10, 1, 20, 2));
  EXPECT_THAT(layer.InputGradient(1), ElementsAre(7, 10));
}

TEST(MatMulTest, GoldenValues) { ExpectGoldenFile("layers/products/matmul.txt"); }

TEST(MatMulTest, GradientMatchesDifferences) {
  const std::string left = "transpose_a: true ", right = "transpose_b: true";
  for (const std::string& fields : {std::string(), left, right, left + right}) {
    SCOPED_TRACE(fields);
    const bool a = fields.find("_a") != std::string::npos,
               b = fields.find("_b") != std::string::npos;
    LayerRunner layer(MatMul(fields),
                      {a ? Shape{2, 3, 4} : Shape{2, 4, 3}, b ? Shape{2, 5, 3} : Shape{2, 3, 5}});
    layer.SetInput(0, LayerRunner::SomeValues(24, 1));
    layer.SetInput(1, LayerRunner::SomeValues(30, 2));
    layer.ExpectGradient({.inputs = {0, 1}});
  }
}

// A product of one pixel is in row-major order even if its factors are stored as images.
TEST(MatMulTest, ImagesEqualThePlainOrder) {
  for (const auto& [m, k, n] :
       std::vector<std::array<int64_t, 3>>{{4, 5, 2}, {1, 5, 1}, {1, 1, 3}}) {
    SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
    std::vector<std::vector<float>> y, da, db;
    for (const bool image : {true, false}) {
      LayerRunner layer(MatMul(), {image ? Shape{2, 3, m, k} : Shape{6, m, k},
                                   image ? Shape{2, 3, k, n} : Shape{6, k, n}});
      layer.SetInput(0, LayerRunner::SomeValues(6 * m * k, 1));
      layer.SetInput(1, LayerRunner::SomeValues(6 * k * n, 2));
      layer.Forward();
      layer.Backward({LayerRunner::SomeValues(6 * m * n, 3)});
      y.push_back(layer.Output());
      da.push_back(layer.InputGradient(0));
      db.push_back(layer.InputGradient(1));
    }
    EXPECT_EQ(y[0], y[1]);
    EXPECT_EQ(da[0], da[1]);
    EXPECT_EQ(db[0], db[1]);
  }
}

TEST(MatMulTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(MatMul(), {{2, 3, 4, 5}, {2, 3, 5, 5}});
}

TEST(MatMulTest, Bf16IsNearF32) { ExpectBf16Near(MatMul(), {{2, 8, 16}, {2, 16, 4}}); }

TEST(MatMulTest, RefusesMatricesThatDoNotFit) {
  EXPECT_THAT(RefusalOf(MatMul("transpose_b: true"), {{2, 3, 4}, {2, 4, 5}}),
              HasSubstr("layer 'it' (MatMul): the matrices of bottom 'x0' (2, 3, 4) have 4 "
                        "columns, but those of bottom 'x1' (2, 4, 5) have 5 columns (transpose_b); "
                        "the numbers must be equal: check transpose_a and transpose_b"));
  EXPECT_THAT(RefusalOf(MatMul("transpose_a: true"), {{3, 4}, {4, 5}}),
              HasSubstr("have 3 rows (transpose_a), but those of bottom 'x1' (4, 5) have 4 rows;"));
}

TEST(MatMulTest, RefusesOtherNumbersOfItems) {
  EXPECT_THAT(RefusalOf(MatMul(), {{2, 3, 4}, {4, 5}}),
              HasSubstr("bottom 'x1' has shape (4, 5), but bottom 'x0' has (2, 3, 4); all axes but "
                        "the last two must be equal: repeat a matrix with Tile, or use "
                        "InnerProduct for one that is learned"));
  EXPECT_THAT(RefusalOf(MatMul(), {{2, 3, 4}, {3, 4, 5}}), HasSubstr("must be equal"));
  EXPECT_THAT(RefusalOf(MatMul(), {{3}, {3, 4}}), HasSubstr("matrices in its last two axes"));
}

}  // namespace
}  // namespace trainer
