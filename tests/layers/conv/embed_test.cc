#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Embed(const std::string& fields) {
  return "type: \"Embed\"\nembed_param { " + fields + " }";
}

TEST(EmbedTest, HandValuesOfAnIndexThatOccursTwice) {
  LayerRunner layer(Embed("input_dim: 3 num_output: 2"), {{3}});
  layer.SetParam(0, {1, 2, 3, 4, 5, 6});
  layer.SetParam(1, {10, 20});
  EXPECT_THAT(layer.Forward({2, 0, 2}), ElementsAre(15, 26, 11, 22, 15, 26));
  EXPECT_EQ(layer.OutputShape(), Shape({3, 2}));
  layer.Backward({{1, 2, 3, 4, 5, 6}});
  EXPECT_THAT(layer.ParamGradient(0), ElementsAre(3, 4, 0, 0, 6, 8));
  EXPECT_THAT(layer.ParamGradient(1), ElementsAre(9, 12));
}

TEST(EmbedTest, HandValuesOfImagesInPlainOrder) {
  const std::string fields = "input_dim: 4 num_output: 2 bias_term: false";
  const std::vector<float> weight = {0, 1, 10, 11, 20, 21, 30, 31};
  LayerRunner to_image(Embed(fields), {{1, 2, 2}});
  to_image.SetParam(0, weight);
  EXPECT_THAT(to_image.Forward({3, 1, 0, 2}), ElementsAre(30, 31, 10, 11, 0, 1, 20, 21));
  LayerRunner from_image(Embed(fields), {{1, 2, 1, 2}});
  from_image.SetParam(0, weight);
  EXPECT_THAT(from_image.Forward({3, 1, 0, 2}), ElementsAre(30, 31, 10, 11, 0, 1, 20, 21));
}

TEST(EmbedTest, ImagesEqualThePlainOrder) {
  // The vectors of the first shape are an image; the indices of the second one are.
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{3, 2, 2, 5}}) {
    const int64_t count = shape.Count();
    LayerRunner image(Embed("input_dim: 7 num_output: 4"), {shape});
    LayerRunner plain(Embed("input_dim: 7 num_output: 4"), {{count}});
    std::vector<float> indices;
    for (int64_t i = 0; i < count; ++i) indices.push_back(static_cast<float>(i * i % 7));
    for (LayerRunner* const layer : {&image, &plain}) {
      layer->SetParam(0, LayerRunner::SomeValues(28, 1));
      layer->Forward(indices);
      layer->Backward({LayerRunner::SomeValues(4 * count, 2)});
    }
    EXPECT_EQ(image.Output(), plain.Output());
    EXPECT_EQ(image.ParamGradient(0), plain.ParamGradient(0));
    ExpectNear(image.ParamGradient(1), plain.ParamGradient(1), 1e-5f);
  }
}

TEST(EmbedTest, GradientMatchesDifferences) {
  LayerRunner layer(Embed("input_dim: 3 num_output: 4"), {{2, 3, 1}});
  layer.SetInput(0, {0, 2, 2, 1, 0, 2});
  layer.SetParam(0, LayerRunner::SomeValues(12, 1));
  layer.SetParam(1, LayerRunner::SomeValues(4, 2));
  layer.ExpectGradient({.inputs = {}});
}

TEST(EmbedTest, GoldenValues) { ExpectGoldenFile("layers/products/embed.txt"); }

TEST(EmbedTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Embed("input_dim: 4 num_output: 1"), {{2, 1}}, {{3, 1}});
}

TEST(EmbedTest, RefusesBadIndices) {
  LayerRunner layer(Embed("input_dim: 3 num_output: 2"), {{2}});
  EXPECT_THAT(
      [&] {
        layer.Forward({0, 3});
      },
      testing::ThrowsMessage<Error>(HasSubstr("layer 'it' (Embed): bottom 'x0' has the value 3 at "
                                              "index 1; there are 3 vectors (input_dim), 0 to")));
}

TEST(EmbedTest, RunsAgainAfterABadIndexAndThenNamesTheNext) {
  LayerRunner layer(Embed("input_dim: 3 num_output: 2"), {{2}});
  EXPECT_THAT(
      [&] {
        layer.Forward({7, 0});
      },
      testing::ThrowsMessage<Error>(HasSubstr("7 at index")));
  EXPECT_NO_THROW(layer.Forward({2, 0}));
  EXPECT_THAT(
      [&] {
        layer.Forward({0, 5});
      },
      testing::ThrowsMessage<Error>(HasSubstr("5 at index")));
}

TEST(EmbedTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(Embed("input_dim: 3"), {{2}}),
              HasSubstr("num_output is not given; it is the length of a vector"));
  EXPECT_THAT(RefusalOf(Embed("num_output: 3 input_dim: 0"), {{2}}),
              HasSubstr("net.prototxt:4:29: layer 'it' (Embed): input_dim is 0; it must be at "
                        "least 1 and below 2^31"));
  EXPECT_THAT(RefusalOf(Embed("input_dim: 3 num_output: 2") + " propagate_down: true", {{2}}),
              HasSubstr("bottom 'x0' cannot get a gradient from this layer"));
}

}  // namespace
}  // namespace trainer
