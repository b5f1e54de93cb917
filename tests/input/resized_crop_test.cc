// Tests random_resized_crop_param: parts of random area and shape, drawn as torchvision draws them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "storage/test_data.h"
#include "support/golden.h"
#include "trainer/input/random_resize.h"
#include "trainer/input/transform.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr PhiloxKey kResizedCropKey{13, 3};  // also in scripts/golden/parts.py

class PartDrawer {
 public:
  explicit PartDrawer(const caffe::RandomResizedCropParameter& param) : resize_(Make(param)) {}
  Rect operator()(int height, int width, uint64_t record) const {
    return resize_.Choose(height, width, kResizedCropKey, record).box;
  }

 private:
  static RandomResize Make(const caffe::RandomResizedCropParameter& param) {
    caffe::LayerParameter layer;
    layer.mutable_transform_param()->set_crop_size(1);
    *layer.mutable_transform_param()->mutable_random_resized_crop_param() = param;
    return RandomResize({layer, SourceRef{"test", 1, 1}}, caffe::TRAIN);
  }
  RandomResize resize_;
};

TEST(ResizedCropTest, GoldenValuesOfTorchvision) {
  int compared = 0;
  for (const GoldenCase& golden : ReadGolden("images/resized_crop.txt")) {
    caffe::RandomResizedCropParameter param;
    param.set_min_area_ratio(static_cast<float>(golden.Number("least_area")));
    param.set_max_area_ratio(static_cast<float>(golden.Number("greatest_area")));
    param.set_min_aspect(static_cast<float>(golden.Number("least_aspect")));
    param.set_max_aspect(static_cast<float>(golden.Number("greatest_aspect")));
    const std::vector<float>& size = golden.Tensor("size").values;
    const std::vector<float>& parts = golden.Tensor("parts").values;
    const PartDrawer draw(param);
    for (size_t i = 0; i < parts.size() / 4; ++i, ++compared) {
      const Rect box = draw(static_cast<int>(size[0]), static_cast<int>(size[1]), i);
      EXPECT_THAT((std::vector<int>{box.top, box.left, box.height, box.width}),
                  testing::ElementsAreArray(&parts[4 * i], 4))
          << golden.name << ", record " << i;
    }
  }
  EXPECT_EQ(compared, 1200);
}

TEST(ResizedCropTest, AreasAreUniformAndAspectsUniformInTheirLogarithm) {
  const PartDrawer draw({});
  constexpr int kRecords = 20000, kSide = 1000;
  int small = 0, wide = 0, areas[4] = {}, aspects[4] = {};
  for (uint64_t i = 0; i < kRecords; ++i) {
    const Rect box = draw(kSide, kSide, i);
    const double share = static_cast<double>(box.width) * box.height / (kSide * kSide);
    if (share > 0.7) continue;  // every smaller part fits
    const double aspect = std::log(static_cast<double>(box.width) / box.height) / std::log(4. / 3);
    ++areas[std::clamp(static_cast<int>((share - 0.08) / (0.62 / 4)), 0, 3)];
    ++aspects[std::clamp(static_cast<int>((aspect + 1) * 2), 0, 3)];
    ++small;
    wide += box.width > box.height;
  }
  EXPECT_NEAR(wide, small / 2, 300);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(areas[i], small / 4, 300) << i;
    EXPECT_NEAR(aspects[i], small / 4, 300) << i;
  }
}

Transform MakeResizedCrop(const std::string& fields, caffe::Phase phase) {
  const LayerSpec& layer =
      KeptLayer("name: \"d\"\ntype: \"Data\"\ntransform_param { " + fields + " }");
  return Transform(layer, phase, kResizedCropKey);
}

std::vector<float> ApplyResizedCrop(const Transform& transform, const Image& image,
                                    uint64_t number = 0) {
  std::vector<float> out(static_cast<size_t>(transform.OutShape(ViewOf(image), "'r'").Count()));
  transform.ToFloats(ViewOf(image), number, out.data());
  return out;
}

// Returns 3 h + 2 w + 5 at row h, column w.
Image SlopeOfResizedCrop(int height, int width) {
  Image image{1, height, width, {}};
  for (int h = 0; h < height; ++h) {
    for (int w = 0; w < width; ++w) {
      image.pixels.push_back(static_cast<uint8_t>(3 * h + 2 * w + 5));
    }
  }
  return image;
}

TEST(ResizedCropTest, APartIsResizedToTheCrop) {
  const Image image = SlopeOfResizedCrop(40, 40);
  const Transform transform = MakeResizedCrop(
      "crop_size: 4 random_resized_crop_param { min_area_ratio: 0.25 max_area_ratio: 0.25 }",
      caffe::TRAIN);
  caffe::RandomResizedCropParameter param;
  param.set_min_area_ratio(0.25f);
  param.set_max_area_ratio(0.25f);
  const PartDrawer draw(param);
  for (uint64_t number = 0; number < 200; ++number) {
    const Rect box = draw(40, 40, number);
    const auto out = ApplyResizedCrop(transform, image, number);
    ASSERT_EQ(out.size(), 16u);
    float mean = 0;
    for (const float value : out) mean += value / 16;
    EXPECT_NEAR(mean,
                5 + 3 * (box.top + (box.height - 1) / 2.0) + 2 * (box.left + (box.width - 1) / 2.0),
                1.5)
        << number;
  }
}

TEST(ResizedCropTest, InTestTheMiddleOfAResizedImage) {
  const Image image = SlopeOfResizedCrop(16, 32);
  // The image is 8 x 16; the crop covers rows 2 to 5 and columns 6 to 9.
  for (const char* fields : {"crop_size: 4 random_resized_crop_param { test_size: 8 }",
                             "crop_size: 7 random_resized_crop_param { }"}) {
    const Transform transform = MakeResizedCrop(fields, caffe::TEST);
    const auto out = ApplyResizedCrop(transform, image);
    EXPECT_EQ(out, ApplyResizedCrop(transform, image, 7)) << "nothing is random";
    const auto side = static_cast<size_t>(std::lround(std::sqrt(out.size())));
    const int top = (8 - static_cast<int>(side)) / 2, left = (16 - static_cast<int>(side)) / 2;
    EXPECT_NEAR(out[0], 5 + 3 * (2 * top + 0.5) + 2 * (2 * left + 0.5), 2) << fields;
    EXPECT_NEAR(out[1] - out[0], 2 * 2, 1);
    EXPECT_NEAR(out[side] - out[0], 3 * 2, 1);
  }
}

TEST(ResizedCropTest, RefusesWhatMakesNoSense) {
  const auto refusal = [](const std::string& fields) {
    const Thrown thrown = Catch([&] { MakeResizedCrop(fields, caffe::TRAIN); });
    EXPECT_EQ(thrown.code, static_cast<int>(ErrorCode::kConfig)) << thrown.text;
    return thrown.text;
  };
  const auto crop = [&](const std::string& fields) {
    return refusal("crop_size: 8 random_resized_crop_param { " + fields + " }");
  };
  EXPECT_THAT(refusal("random_resized_crop_param { }"),
              HasSubstr("random_resized_crop_param needs crop_size"));
  EXPECT_THAT(crop("} random_aspect_ratio_param {"),
              HasSubstr("random_aspect_ratio_param and random_resized_crop_param are both given"));
  EXPECT_THAT(crop("} mean_file: 'm' color_jitter_param {"),
              HasSubstr("a mean image has a fixed size"));
  EXPECT_THAT(crop("min_area_ratio: 0"), HasSubstr("min_area_ratio is 0 and max_area_ratio 1"));
  EXPECT_THAT(crop("max_area_ratio: 1.5"), HasSubstr("max_area_ratio 1.5"));
  EXPECT_THAT(crop("min_aspect: 2"), HasSubstr("min_aspect is 2 and max_aspect 1.33333"));
  EXPECT_THAT(crop("max_aspect: 101"), HasSubstr("max_aspect 101"));
  EXPECT_THAT(crop("min_aspect: 0"), HasSubstr("min_aspect is 0"));
  EXPECT_THAT(crop("test_size: 7"), HasSubstr("test_size is 7; it must be at least crop_size, 8"));
}

TEST(ResizedCropTest, RefusesAnImageThatWouldGetTooLarge) {
  const Image sliver{1, 1, 60000, std::vector<uint8_t>(60000)};
  const Transform transform =
      MakeResizedCrop("crop_size: 200 random_resized_crop_param { }", caffe::TEST);
  EXPECT_THAT(Catch([&] { transform.OutShape(ViewOf(sliver), "'r'"); }),
              Refuses(ErrorCode::kConfig, "it would have more than 134217728 pixels"));
}

}  // namespace
}  // namespace trainer
