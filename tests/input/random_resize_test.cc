// Tests random_resize_param and random_aspect_ratio_param, the random sizes of Intel Caffe.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "storage/test_data.h"
#include "trainer/input/transform.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr PhiloxKey kRandomResizeKey{17, 3};

DatumView BytesOfRandomResize(int c, int h, int w, const std::string& bytes) {
  DatumView view;
  view.channels = c;
  view.height = h;
  view.width = w;
  view.bytes = bytes;
  return view;
}

std::vector<float> ApplyRandomResize(const Transform& transform, const DatumView& datum,
                                     uint64_t number = 0) {
  std::vector<float> out(static_cast<size_t>(transform.OutShape(datum, "'r'").Count()), -999.f);
  transform.ToFloats(datum, number, out.data());
  return out;
}

Transform MakeRandomResize(const std::string& fields, caffe::Phase phase = caffe::TEST) {
  const LayerSpec& layer =
      KeptLayer("name: \"d\"\ntype: \"Data\"\ntransform_param { " + fields + " }");
  return Transform(layer, phase, kRandomResizeKey);
}

// Returns 10 h + 2 w + 5 at row h, column w, in one channel, so a part's values give its place.
std::string SlopeOfRandomResize(int height, int width) {
  std::string bytes;
  for (int h = 0; h < height; ++h) {
    for (int w = 0; w < width; ++w) bytes.push_back(static_cast<char>(10 * h + 2 * w + 5));
  }
  return bytes;
}

TEST(RandomResizeTest, AFixedSizeIsThatOfTheShorterSide) {
  const std::string pixels = SlopeOfRandomResize(8, 16);
  const auto out = ApplyRandomResize(
      MakeRandomResize("crop_size: 4 random_resize_param { min_size: 4 max_size: 4 }"),
      BytesOfRandomResize(1, 8, 16, pixels));
  // The size is 4 x 8. Its middle is columns 2 to 5, and pixel (0, 2) is the mean of rows 0 and 1
  // and columns 4 and 5.
  EXPECT_FLOAT_EQ(out[0], 5 + 2 * 4.5f + 5);
  EXPECT_FLOAT_EQ(out[15] - out[0], 3 * 20 + 3 * 4);
}

TEST(RandomResizeTest, DrawsEverySizeOfTheRangeInTestToo) {
  const std::string pixels = SlopeOfRandomResize(8, 8);
  for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
    const Transform transform =
        MakeRandomResize("crop_size: 2 random_resize_param { min_size: 2 max_size: 4 }", phase);
    std::map<int, int> steps;
    for (uint64_t number = 0; number < 600; ++number) {
      const auto out = ApplyRandomResize(transform, BytesOfRandomResize(1, 8, 8, pixels), number);
      ++steps[static_cast<int>(out[2] - out[0])];  // 10 per row, and 8 rows become 2, 3 or 4
    }
    int among = 0;
    for (const auto& [step, times] : steps) among += step >= 20 && step <= 40 ? times : 0;
    EXPECT_EQ(among, 600);
    EXPECT_GT(steps[40], 130);
    EXPECT_GT(steps[20], 130);
  }
}

TEST(RandomResizeTest, ZerosStandForTheSidesOfTheRecord) {
  const std::string pixels = SlopeOfRandomResize(4, 8);
  const Transform transform = MakeRandomResize("crop_size: 4 random_resize_param { }");
  std::set<float> steps;
  for (uint64_t number = 0; number < 100; ++number) {
    const auto out = ApplyRandomResize(transform, BytesOfRandomResize(1, 4, 8, pixels), number);
    steps.insert(out[4] - out[0]);
  }
  EXPECT_EQ(*steps.rbegin(), 10);  // original size
  EXPECT_LT(*steps.begin(), 6);    // twice the size
}

TEST(RandomResizeTest, APartHasAShareOfTheAreaAndIsResizedToTheCrop) {
  const std::string pixels = SlopeOfRandomResize(20, 20);
  const Transform transform = MakeRandomResize(
      "crop_size: 2 random_aspect_ratio_param { min_area_ratio: 0.25 max_area_ratio: 0.25 "
      "aspect_ratio_change: 0.5 }");
  std::set<float> heights;
  for (uint64_t number = 0; number < 500; ++number) {
    const auto out = ApplyRandomResize(transform, BytesOfRandomResize(1, 20, 20, pixels), number);
    const float height = 2 * (out[2] - out[0]) / 10, width = 2 * (out[1] - out[0]) / 2;
    EXPECT_NEAR(height * width, 100, 35) << height << " " << width;  // pixels and greys are whole
    heights.insert(height);
  }
  EXPECT_LT(*heights.begin(), 6);
  EXPECT_GT(*heights.rbegin(), 18);
}

TEST(RandomResizeTest, ThePartMovesAndTheChoiceDependsOnKeyAndNumberOnly) {
  const std::string pixels = SlopeOfRandomResize(20, 20);
  const std::string fields =
      "crop_size: 3 random_aspect_ratio_param { min_area_ratio: 0.08 aspect_ratio_change: 0.75 "
      "resize_param { interp_mode: CUBIC } }";
  std::set<std::vector<float>> seen;
  for (uint64_t number = 0; number < 50; ++number) {
    const auto out =
        ApplyRandomResize(MakeRandomResize(fields), BytesOfRandomResize(1, 20, 20, pixels), number);
    EXPECT_EQ(out, ApplyRandomResize(MakeRandomResize(fields),
                                     BytesOfRandomResize(1, 20, 20, pixels), number));
    seen.insert(out);
  }
  EXPECT_GT(seen.size(), 45u);
}

TEST(RandomResizeTest, TakesTheWholeImageWhenNoPartFits) {
  const std::string pixels = SlopeOfRandomResize(2, 20);  // a square of its area is too high
  const auto out = ApplyRandomResize(
      MakeRandomResize("crop_size: 2 random_aspect_ratio_param { min_area_ratio: 1 }"),
      BytesOfRandomResize(1, 2, 20, pixels));
  EXPECT_EQ(out, ApplyRandomResize(MakeRandomResize("crop_size: 2"),
                                   BytesOfRandomResize(1, 2, 20, pixels)));
}

TEST(RandomResizeTest, RefusesWhatMakesNoSense) {
  const auto refusal = [](const std::string& fields) {
    const Thrown thrown = Catch([&] { MakeRandomResize(fields); });
    EXPECT_EQ(thrown.code, static_cast<int>(ErrorCode::kConfig)) << thrown.text;
    return thrown.text;
  };
  const auto sides = [&](const std::string& fields) {
    return refusal("crop_size: 8 random_resize_param { " + fields + " }");
  };
  const auto parts = [&](const std::string& fields) {
    return refusal("crop_size: 8 random_aspect_ratio_param { " + fields + " }");
  };
  EXPECT_THAT(refusal("random_resize_param { }"), HasSubstr("needs a crop_size"));
  EXPECT_THAT(refusal("random_aspect_ratio_param { }"), HasSubstr("needs crop_size"));
  EXPECT_THAT(sides("} random_aspect_ratio_param {"), HasSubstr("are both given; keep one"));
  EXPECT_THAT(refusal("crop_size: 8 mean_file: 'm' random_resize_param { }"),
              HasSubstr("a mean image has a fixed size"));
  EXPECT_THAT(sides("min_size: 9 max_size: 8"), HasSubstr("min_size is 9 and max_size 8"));
  EXPECT_THAT(sides("min_size: 7"), HasSubstr("a shorter side of 7 is requested, but the crop"));
  EXPECT_THAT(sides("max_size: 4294967295"), HasSubstr("the limit is 65536 pixels"));
  EXPECT_THAT(sides("resize_param { interp_mode: LANCZOS4 }"),
              HasSubstr("interp_mode LANCZOS4 is not"));
  EXPECT_THAT(parts("resize_param { resize_mode: FIT_SMALL_SIZE }"),
              HasSubstr("resize_mode FIT_SMALL_SIZE is not"));
  EXPECT_THAT(parts("min_area_ratio: 0.5 max_area_ratio: 0.25"),
              HasSubstr("min_area_ratio is 0.5 and max_area_ratio 0.25"));
  EXPECT_THAT(parts("max_area_ratio: nan"), HasSubstr("max_area_ratio is nan"));
  EXPECT_THAT(parts("aspect_ratio_change: 2"), HasSubstr("aspect_ratio_change is 2; it must be"));
  EXPECT_THAT(parts("max_attempt: 4294967295"), HasSubstr("it must be at most 1000"));
}

TEST(RandomResizeTest, RefusesRecordsThatCannotBeResized) {
  const std::string pixels(60, 'x');
  const DatumView record = BytesOfRandomResize(3, 4, 5, pixels);
  const auto refusal = [](const std::string& fields, const DatumView& datum) {
    return Catch([&] { MakeRandomResize(fields).OutShape(datum, "'00000003'"); });
  };
  const std::string sides = "crop_size: 5 random_resize_param { ";
  EXPECT_THAT(refusal(sides + "}", record),
              Refuses(ErrorCode::kConfig,
                      "record '00000003' is 3x4x5; its shorter side is smaller than the crop of 5: "
                      "give min_size"));
  EXPECT_THAT(refusal("crop_size: 2 random_resize_param { max_size: 3 }", record),
              Refuses(ErrorCode::kConfig, "sizes from 4 to 3 are"));
  EXPECT_THAT(refusal(sides + "min_size: 65536 }", BytesOfRandomResize(1, 1, 60, pixels)),
              Refuses(ErrorCode::kConfig, "sizes from 65536 to 60 are"));
  EXPECT_THAT(
      refusal(sides + "min_size: 65536 max_size: 65536 }", BytesOfRandomResize(1, 1, 60, pixels)),
      Refuses(ErrorCode::kConfig, "it would have more than 134217728 pixels"));
}

// Floats give the values of bytes before rounding.
TEST(RandomResizeTest, FloatsAreResizedAsBytesAre) {
  const std::string pixels = SlopeOfRandomResize(8, 16);
  const DatumView bytes = BytesOfRandomResize(1, 8, 16, pixels);
  std::vector<float> numbers;
  for (const char c : pixels) numbers.push_back(static_cast<uint8_t>(c));
  DatumView floats = bytes;
  floats.bytes = {};
  floats.floats = numbers;
  for (const char* fields : {"crop_size: 5 random_resize_param { min_size: 5 max_size: 7 }",
                             "crop_size: 6 random_aspect_ratio_param { min_area_ratio: 0.2 }",
                             "crop_size: 6 random_resized_crop_param { min_area_ratio: 0.2 }"}) {
    const Transform transform = MakeRandomResize(fields, caffe::TRAIN);
    for (uint64_t number = 0; number < 20; ++number) {
      const std::vector<float> want = ApplyRandomResize(transform, bytes, number);
      const std::vector<float> got = ApplyRandomResize(transform, floats, number);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.51f) << fields;
    }
  }
}

}  // namespace
}  // namespace trainer
