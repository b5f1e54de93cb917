#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string GroupNorm(const std::string& fields = "") {
  return "type: \"GroupNorm\"\ngroup_norm_param { " + fields + " }";
}

TEST(GroupNormTest, HandValues) {
  // The groups {1, 3} and {2, 10} have the deviations 1 and 4.
  LayerRunner layer(GroupNorm("groups: 2 eps: 0"), {{1, 4}});
  ExpectNear(layer.Forward({1, 3, 2, 10}), {-1, 1, -1, 1}, 1e-6f);
  layer.SetParam(0, {1, 2, 3, 4});
  layer.SetParam(1, {0, 0, 5, 5});
  ExpectNear(layer.Forward({1, 3, 2, 10}), {-1, 2, 2, 9}, 1e-6f);
}

TEST(GroupNormTest, HandValuesOfEqualNumbersAreTheOffset) {
  LayerRunner layer(GroupNorm("groups: 1 bias_filler { value: 2 }"), {{1, 2, 1, 2}});
  ExpectNear(layer.Forward({7, 7, 7, 7}), {2, 2, 2, 2}, 0);
}

TEST(GroupNormTest, GradientMatchesDifferences) {
  for (const char* fields : {"groups: 2 eps: 0.1", "groups: 2 eps: 0.1 scale_bias: false"}) {
    for (const Shape& shape : {Shape{2, 4, 2, 3}, Shape{3, 6}, Shape{2, 4, 3}}) {
      SCOPED_TRACE(fields + shape.ToString());
      LayerRunner layer(GroupNorm(fields), {shape});
      layer.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
      if (layer.NumParams() > 0) layer.SetParam(0, LayerRunner::SomeValues(shape[1], 2, 0, 0.25f));
      layer.ExpectGradient();
    }
  }
}

TEST(GroupNormTest, GoldenValues) { ExpectGoldenFile("layers/norms/group_norm.txt", 5e-5f); }

TEST(GroupNormTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(GroupNorm("groups: 3"), {{2, 6, 4, 5}});
}

TEST(GroupNormTest, ImagesEqualThePlainOrder) {
  for (const char* fields : {"groups: 2", "groups: 2 scale_bias: false"}) {
    // On a GPU, a thread takes four channels of an image if their number is a multiple of four.
    for (const int64_t channels : {18, 20}) {
      SCOPED_TRACE(fields + std::to_string(channels));
      const int64_t count = 3 * channels * 20;
      LayerRunner image(GroupNorm(fields), {{3, channels, 4, 5}});
      LayerRunner plain(GroupNorm(fields), {{3, channels, 20}});
      for (LayerRunner* const layer : {&image, &plain}) {
        for (int i = 0; i < layer->NumParams(); ++i) {
          layer->SetParam(i, LayerRunner::SomeValues(channels, 3 + static_cast<uint32_t>(i)));
        }
        layer->Forward(LayerRunner::SomeValues(count, 1));
        layer->Backward({LayerRunner::SomeValues(count, 2)});
      }
      ExpectNear(image.Output(), plain.Output(), 1e-5f);
      ExpectNear(image.InputGradient(), plain.InputGradient(), 1e-5f);
      for (int i = 0; i < image.NumParams(); ++i) {
        ExpectNear(image.ParamGradient(i), plain.ParamGradient(i), 1e-5f);
      }
    }
  }
}

TEST(GroupNormTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(GroupNorm(), {{2, 48, 3, 3}}),
              HasSubstr("layer 'it' (GroupNorm): groups is 32; it must divide the 48 channels of "
                        "the input"));
  EXPECT_THAT(RefusalOf(GroupNorm("groups: 0"), {{2, 3}}),
              HasSubstr("net.prototxt:4:20: layer 'it' (GroupNorm): groups is 0; it must divide "
                        "the 3 channels"));
  EXPECT_THAT(RefusalOf(GroupNorm("groups: 1 eps: -1"), {{2, 3}}),
              HasSubstr("eps is -1; it must not be negative"));
  EXPECT_THAT(RefusalOf(GroupNorm(), {{5}}), HasSubstr("(N, C, ...)"));
}

TEST(GroupNormTest, Bf16IsNearF32) {
  for (const int64_t channels : {4, 6}) {
    ExpectBf16Near(R"(type: "GroupNorm" group_norm_param { groups: 2 })", {{2, channels, 5, 6}});
  }
}

}  // namespace
}  // namespace trainer
