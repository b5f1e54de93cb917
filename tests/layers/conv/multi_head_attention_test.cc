#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_checks.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

const NotChecked kNoImages("MultiHeadAttention", LayerCheck::kImages, "takes sequences (N, L, C)");

std::string Attention(const std::string& fields) {
  return "type: \"MultiHeadAttention\"\nattention_param { " + fields + " }";
}

// Sets the parameters to pseudo-random values times `scale`.
void SetSomeParams(LayerRunner* layer, float scale) {
  for (int i = 0; i < layer->NumParams(); ++i) {
    std::vector<float> values =
        LayerRunner::SomeValues(layer->ParamAt(i).count(), static_cast<uint32_t>(i) + 11);
    for (float& value : values) value *= scale;
    layer->SetParam(i, values);
  }
}

TEST(MultiHeadAttentionTest, HandValuesOfAMean) {
  // q is 0, so all positions have equal weights: y is the mean of v = 2 x + 0.5, times 2, plus 1.
  for (const bool causal : {false, true}) {
    LayerRunner layer(Attention(causal ? "num_heads: 1 causal: true" : "num_heads: 1"),
                      {{1, 2, 1}});
    layer.SetParam(0, {0, 5, 2});
    layer.SetParam(1, {0, 7, 0.5f});
    layer.SetParam(2, {2});
    layer.SetParam(3, {1});
    ExpectNear(layer.Forward({1, 3}), {causal ? 6.0f : 10.0f, 10}, 1e-6f);
  }
}

TEST(MultiHeadAttentionTest, HandValuesOfEachHead) {
  // q is 0 in head 0, so all positions have equal weights. In head 1, the first position has a
  // score of 8,000 for itself, and the second position has only scores of 0.
  LayerRunner layer(Attention("num_heads: 2 bias_term: false"), {{1, 2, 2}});
  layer.SetParam(0, {0, 0, 0, 20, 0, 0, 0, 1, 1, 0, 0, 1});
  layer.SetParam(1, {1, 0, 0, 1});
  ExpectNear(layer.Forward({2, 20, 4, 0}), {3, 20, 3, 10}, 1e-5f);
}

TEST(MultiHeadAttentionTest, GoldenValues) {
  ExpectGoldenFile("layers/products/multi_head_attention.txt");
}

TEST(MultiHeadAttentionTest, GradientMatchesDifferences) {
  for (const char* fields : {"num_heads: 2", "num_heads: 3 causal: true", "num_heads: 1",
                             "num_heads: 6 bias_term: false causal: true"}) {
    SCOPED_TRACE(fields);
    LayerRunner layer(Attention(fields), {{2, 4, 6}});
    layer.SetInput(0, LayerRunner::SomeValues(48, 1));
    SetSomeParams(&layer, 0.5f);
    layer.ExpectGradient();
  }
}

TEST(MultiHeadAttentionTest, HasTheParametersOfPyTorch) {
  LayerRunner layer(Attention("num_heads: 2"), {{1, 3, 4}});
  ASSERT_EQ(layer.NumParams(), 4);
  EXPECT_EQ(layer.ParamAt(0).shape, Shape({12, 4}));
  EXPECT_EQ(layer.ParamAt(1).shape, Shape({12}));
  EXPECT_EQ(layer.ParamAt(2).shape, Shape({4, 4}));
  EXPECT_EQ(layer.ParamAt(3).shape, Shape({4}));
  EXPECT_EQ(LayerRunner(Attention("num_heads: 2 bias_term: false"), {{1, 3, 4}}).NumParams(), 2);
}

TEST(MultiHeadAttentionTest, CausalPositionsDoNotDependOnLaterOnes) {
  LayerRunner layer(Attention("num_heads: 2 causal: true"), {{1, 100, 4}});
  SetSomeParams(&layer, 1);
  std::vector<float> x = LayerRunner::SomeValues(400, 3);
  const std::vector<float> before = layer.Forward(x);
  for (size_t i = 280; i < x.size(); ++i) x[i] += 1;
  const std::vector<float> after = layer.Forward(x);
  for (size_t i = 0; i < 280; ++i) EXPECT_EQ(before[i], after[i]) << i;
  EXPECT_NE(before.back(), after.back());
}

TEST(MultiHeadAttentionTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Attention("num_heads: 2 weight_filler { type: \"xavier\" }"), {{2, 3, 4}});
}

TEST(MultiHeadAttentionTest, RefusesBadHeads) {
  EXPECT_THAT(RefusalOf(Attention(""), {{2, 3, 4}}),
              HasSubstr("layer 'it' (MultiHeadAttention): num_heads is not given; it is the number "
                        "of heads"));
  EXPECT_THAT(RefusalOf(Attention("num_heads: 0"), {{2, 3, 4}}),
              HasSubstr("net.prototxt:4:19: layer 'it' (MultiHeadAttention): num_heads is 0; it "
                        "must be at least 1"));
  EXPECT_THAT(RefusalOf(Attention("num_heads: 3"), {{2, 3, 4}}),
              HasSubstr("num_heads is 3, which does not divide the 4 channels of bottom 'x0'; each "
                        "head gets the same number of channels"));
}

TEST(MultiHeadAttentionTest, RefusesOtherShapes) {
  EXPECT_THAT(RefusalOf(Attention("num_heads: 1"), {{2, 3, 4, 5}}),
              HasSubstr("sequences (N, L, C) of 3 axes"));
  EXPECT_THAT(RefusalOf(Attention("num_heads: 1"), {{2, 3}}), HasSubstr("(N, L, C)"));
}

}  // namespace
}  // namespace trainer
