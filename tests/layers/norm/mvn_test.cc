#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Mvn(const std::string& fields = "") {
  return "type: \"MVN\"\nmvn_param { " + fields + " }";
}

TEST(MvnTest, HandValues) {
  LayerRunner layer(Mvn(), {{1, 2, 1, 2}});
  ExpectNear(layer.Forward({1, 3, 10, 50}), {-1, 1, -1, 1}, 1e-6f);
}

TEST(MvnTest, HandValuesOfTheMeanAlone) {
  LayerRunner layer(Mvn("normalize_variance: false"), {{2, 1, 1, 2}});
  EXPECT_THAT(layer.Forward({1, 3, 10, 50}), ElementsAre(-1, 1, -20, 20));
  layer.Backward({{1, 3, 5, 5}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(-1, 1, 0, 0));
}

TEST(MvnTest, HandValuesAcrossChannels) {
  LayerRunner layer(Mvn("across_channels: true"), {{2, 2, 1, 1}});
  ExpectNear(layer.Forward({1, 3, 10, 50}), {-1, 1, -1, 1}, 1e-6f);
}

TEST(MvnTest, EpsIsAddedToTheDeviation) {
  LayerRunner layer(Mvn("eps: 3"), {{1, 1, 1, 2}});
  ExpectNear(layer.Forward({1, 3}), {-0.25f, 0.25f}, 1e-6f);
}

TEST(MvnTest, EqualValuesGiveZeroAndAFiniteGradient) {
  LayerRunner layer(Mvn("eps: 0.5"), {{1, 1, 2, 2}});
  EXPECT_THAT(layer.Forward({2, 2, 2, 2}), Each(0));
  layer.Backward({{1, 0, 0, 1}});
  EXPECT_THAT(layer.InputGradient(), ElementsAre(1, -1, -1, 1));
}

TEST(MvnTest, GradientMatchesDifferences) {
  for (const char* fields : {"", "eps: 0.5", "across_channels: true", "normalize_variance: false",
                             "across_channels: true normalize_variance: false"}) {
    for (const Shape& shape : {Shape{2, 3, 2, 4}, Shape{2, 3, 5}, Shape{2, 17, 2, 3}}) {
      SCOPED_TRACE(fields + shape.ToString());
      LayerRunner layer(Mvn(fields), {shape});
      layer.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
      layer.ExpectGradient();
    }
  }
}

TEST(MvnTest, GoldenValues) { ExpectGoldenFile("layers/norms/mvn.txt", 5e-5f); }

TEST(MvnTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Mvn(), {{2, 3, 4, 5}});
  ExpectInPlaceEqual(Mvn("normalize_variance: false"), {{2, 3, 4, 5}});
}

TEST(MvnTest, ImagesEqualThePlainOrder) {
  for (const char* fields :
       {"", "eps: 0.5", "across_channels: true", "normalize_variance: false"}) {
    // On a GPU, a thread takes four channels of an image if their number is a multiple of four.
    for (const int64_t channels : {18, 20}) {
      SCOPED_TRACE(fields + std::to_string(channels));
      const int64_t count = 3 * channels * 20;
      LayerRunner image(Mvn(fields), {{3, channels, 4, 5}}),
          plain(Mvn(fields), {{3, channels, 20}});
      for (LayerRunner* const layer : {&image, &plain}) {
        layer->Forward(LayerRunner::SomeValues(count, 1));
        layer->Backward({LayerRunner::SomeValues(count, 2)});
      }
      ExpectNear(image.Output(), plain.Output(), 1e-5f);
      ExpectNear(image.InputGradient(), plain.InputGradient(), 1e-5f);
    }
  }
}

TEST(MvnTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(RefusalOf(Mvn("eps: -1"), {{2, 3}}),
              HasSubstr("net.prototxt:4:13: layer 'it' (MVN): eps is -1; it must not be negative"));
  EXPECT_THAT(RefusalOf(Mvn(), {{2, 3, 1, 1, 1}}), HasSubstr("(N, C), (N, C, L) or (N, C, H, W)"));
}

TEST(MvnTest, Bf16IsNearF32) {
  for (const int64_t channels : {3, 8}) {
    ExpectBf16Near(R"(type: "MVN")", {{2, channels, 5, 6}});
    ExpectBf16Near(R"(type: "MVN" mvn_param { across_channels: true normalize_variance: false })",
                   {{2, channels, 5, 6}});
  }
}

}  // namespace
}  // namespace trainer
