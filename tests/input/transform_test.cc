#include "trainer/input/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "storage/test_data.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr PhiloxKey kTransformKey{17, 3};

DatumView BytesOfTransform(int c, int h, int w, const std::string& bytes) {
  DatumView view;
  view.channels = c;
  view.height = h;
  view.width = w;
  view.bytes = bytes;
  return view;
}

std::string Ramp(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  return bytes;
}

std::vector<float> ApplyTransform(const Transform& transform, const DatumView& datum,
                                  uint64_t number = 0) {
  std::vector<float> out(static_cast<size_t>(transform.OutShape(datum, "'r'").Count()), -999.f);
  transform.ToFloats(datum, number, out.data());
  return out;
}

Transform MakeTransform(const std::string& fields, caffe::Phase phase = caffe::TEST) {
  const LayerSpec& layer =
      KeptLayer("name: \"d\"\ntype: \"Data\"\ntransform_param { " + fields + " }");
  return Transform(layer, phase, kTransformKey);
}

// Computes the result by its definition, element by element, for a given window and flip.
std::vector<float> Naive(const DatumView& d, int top, int left, int height, int width, bool mirror,
                         const std::vector<float>& mean_image, const std::vector<float>& mean_value,
                         float scale) {
  std::vector<float> out;
  for (int h = 0; h < height; ++h) {
    for (int w = 0; w < width; ++w) {
      for (int c = 0; c < d.channels; ++c) {
        const int from_w = left + (mirror ? width - 1 - w : w);
        const auto at = static_cast<size_t>((c * d.height + top + h) * d.width + from_w);
        const float x = d.bytes.empty() ? d.floats[at] : static_cast<uint8_t>(d.bytes[at]);
        float mean = 0;
        if (!mean_image.empty()) mean = mean_image[at];
        if (!mean_value.empty()) mean = mean_value[static_cast<size_t>(c) % mean_value.size()];
        out.push_back((x - mean) * scale);
      }
    }
  }
  return out;
}

std::string WriteMean(const std::string& path, std::vector<int> legacy, std::vector<float> values) {
  caffe::BlobProto blob;
  blob.set_num(legacy[0]);
  blob.set_channels(legacy[1]);
  blob.set_height(legacy[2]);
  blob.set_width(legacy[3]);
  for (const float value : values) blob.add_data(value);
  WriteBytes(path, blob.SerializeAsString());
  return "mean_file: \"" + path + "\" ";
}

TEST(TransformTest, InterleavesChannels) {
  const std::string pixels("\x01\x02\x03\x04\xff\xfe\xfd\xfc", 8);
  EXPECT_THAT(ApplyTransform(MakeTransform(""), BytesOfTransform(2, 2, 2, pixels)),
              ElementsAre(1, 255, 2, 254, 3, 253, 4, 252));
}

TEST(TransformTest, SubtractsTheMeanBeforeScaling) {
  const std::string pixels("\x0a\x14\x1e", 3);
  EXPECT_THAT(
      ApplyTransform(MakeTransform("scale: 0.5 mean_value: 4"), BytesOfTransform(3, 1, 1, pixels)),
      ElementsAre(3, 8, 13));
  EXPECT_THAT(ApplyTransform(MakeTransform("scale: 2 mean_value: 1 mean_value: 2 mean_value: 3"),
                             BytesOfTransform(3, 1, 1, pixels)),
              ElementsAre(18, 36, 54));
}

TEST(TransformTest, CropsTheMiddleInTestRoundedUpAndLeft) {
  const std::string pixels = Ramp(5 * 6);
  const auto out = ApplyTransform(MakeTransform("crop_size: 2"), BytesOfTransform(1, 5, 6, pixels));
  EXPECT_EQ(out, Naive(BytesOfTransform(1, 5, 6, pixels), 1, 2, 2, 2, false, {}, {}, 1));
}

TEST(TransformTest, CutsTheMeanImageWithTheWindow) {
  TempFolder folder;
  std::vector<float> mean;
  for (int i = 0; i < 2 * 4 * 4; ++i) mean.push_back(0.25f * static_cast<float>(i));
  const std::string field = WriteMean(folder / "mean", {1, 2, 4, 4}, mean);
  const std::string pixels = Ramp(32);
  const DatumView datum = BytesOfTransform(2, 4, 4, pixels);
  EXPECT_EQ(ApplyTransform(MakeTransform(field + "crop_size: 2 scale: 0.125"), datum),
            Naive(datum, 1, 1, 2, 2, false, mean, {}, 0.125f));
}

TEST(TransformTest, FindsTheMeanFileBesideTheNet) {
  TempFolder folder;
  WriteMean(folder / "m.binaryproto", {1, 1, 1, 1}, {7});
  caffe::LayerParameter proto;
  proto.mutable_transform_param()->set_mean_file("m.binaryproto");
  const LayerSpec layer(proto, {folder / "net.prototxt", 1, 1});
  EXPECT_THAT(ApplyTransform(Transform(layer, caffe::TEST, kTransformKey),
                             BytesOfTransform(1, 1, 1, "\x08")),
              ElementsAre(1));
}

// Compares every loop of the kernel with the definition, for sizes around the vector lengths.
TEST(TransformTest, AgreesWithTheDefinitionForAllShapesBitForBit) {
  TempFolder folder;
  for (const int channels : {1, 2, 3, 4, 5}) {
    for (const int width : {1, 7, 16, 28, 33, 70}) {
      const int height = 5, count = channels * height * width;
      const std::string pixels = Ramp(count);
      std::vector<float> mean, floats, values;
      for (int i = 0; i < count; ++i) {
        mean.push_back(0.1f * static_cast<float>(i % 91));
        floats.push_back(0.3f * static_cast<float>(i % 53) - 5);
      }
      for (int c = 0; c < channels; ++c) values.push_back(1.25f * static_cast<float>(c + 1));
      const std::string file = WriteMean(folder / "mean", {1, channels, height, width}, mean);
      std::string value_field;
      for (const float v : values) value_field += "mean_value: " + std::to_string(v) + " ";
      DatumView as_floats = BytesOfTransform(channels, height, width, "");
      as_floats.floats = floats;
      for (const DatumView& datum :
           {BytesOfTransform(channels, height, width, pixels), as_floats}) {
        for (const bool crop : {false, true}) {
          const int h = crop ? 3 : height, w = crop ? (width + 1) / 2 : width;
          const int top = (height - h) / 2, left = (width - w) / 2;
          const std::string size =
              crop ? "crop_h: 3 crop_w: " + std::to_string(w) + " mirror: true scale: 0.7"
                   : "mirror: true scale: 0.7";
          const auto check = [&](const std::string& fields, const std::vector<float>& image,
                                 const std::vector<float>& value) {
            const Transform transform = MakeTransform(fields + size);
            std::set<bool> seen;
            for (uint64_t number = 0; number < 12; ++number) {
              const auto out = ApplyTransform(transform, datum, number);
              const bool flipped = out == Naive(datum, top, left, h, w, true, image, value, 0.7f);
              const bool plain = out == Naive(datum, top, left, h, w, false, image, value, 0.7f);
              ASSERT_TRUE(flipped || plain) << channels << " " << width << " " << fields + size;
              seen.insert(flipped && !plain);
            }
            EXPECT_EQ(seen.size(), w > 1 ? 2u : 1u);
          };
          check("", {}, {});
          check(file, mean, {});
          check(value_field, {}, values);
        }
      }
    }
  }
}

TEST(TransformTest, MirrorsHalfOfTheRecordsInTestToo) {
  const Transform transform = MakeTransform("mirror: true");
  int flipped = 0;
  for (uint64_t number = 0; number < 1000; ++number) {
    const auto out = ApplyTransform(transform, BytesOfTransform(1, 1, 2, "\x01\x02"), number);
    ASSERT_EQ(out[0] + out[1], 3);
    flipped += out[0] == 2;
  }
  EXPECT_GT(flipped, 430);
  EXPECT_LT(flipped, 570);
}

TEST(TransformTest, CropsAtEveryPositionEquallyOftenInTraining) {
  const Transform transform = MakeTransform("crop_size: 2", caffe::TRAIN);
  const std::string pixels = Ramp(4 * 3);
  const DatumView datum = BytesOfTransform(1, 4, 3, pixels);
  std::map<std::vector<float>, int> seen;
  for (uint64_t number = 0; number < 6000; ++number)
    ++seen[ApplyTransform(transform, datum, number)];
  ASSERT_EQ(seen.size(), 6u);
  for (int top = 0; top < 3; ++top) {
    for (int left = 0; left < 2; ++left) {
      const int times = seen[Naive(datum, top, left, 2, 2, false, {}, {}, 1)];
      EXPECT_GT(times, 850);
      EXPECT_LT(times, 1150);
    }
  }
}

TEST(TransformTest, ChoicesDependOnKeyAndNumberOnly) {
  const Transform one = MakeTransform("crop_size: 1 mirror: true", caffe::TRAIN);
  const Transform same = MakeTransform("crop_size: 1 mirror: true", caffe::TRAIN);
  const Transform own = MakeTransform("crop_size: 1 random_seed: 5", caffe::TRAIN);
  const std::string pixels = Ramp(64);
  const DatumView datum = BytesOfTransform(1, 8, 8, pixels);
  int differ = 0;
  for (uint64_t number = 0; number < 100; ++number) {
    EXPECT_EQ(ApplyTransform(one, datum, number), ApplyTransform(same, datum, number));
    differ += ApplyTransform(one, datum, number) != ApplyTransform(own, datum, number);
  }
  EXPECT_GT(differ, 50);
}

// --- Refusals ---

class TransformRefusalTest : public testing::Test {
 protected:
  Thrown Refusal(const std::string& fields, const DatumView& datum) {
    return Catch([&] { MakeTransform(fields).OutShape(datum, "'00000003'"); });
  }
  TempFolder folder_;
  std::string pixels_ = Ramp(3 * 4 * 5);
  DatumView datum_ = BytesOfTransform(3, 4, 5, pixels_);
};

TEST_F(TransformRefusalTest, MeanFileAndMeanValueTogether) {
  const std::string mean = WriteMean(folder_ / "m", {1, 1, 1, 1}, {0});
  EXPECT_THAT(Refusal(mean + "mean_value: 1", datum_),
              Refuses(ErrorCode::kConfig, "mean_file and mean_value cannot both be given"));
}

TEST_F(TransformRefusalTest, ForceColorAndForceGrayTogether) {
  EXPECT_THAT(Refusal("force_color: true force_gray: true", datum_),
              Refuses(ErrorCode::kConfig, "force_color and force_gray cannot both be given"));
}

TEST_F(TransformRefusalTest, AMeanOfAnotherShapeNamingBoth) {
  const std::string mean = WriteMean(folder_ / "m", {1, 1, 2, 2}, {0, 0, 0, 0});
  const Thrown thrown = Refusal(mean, datum_);
  EXPECT_THAT(thrown, Refuses(ErrorCode::kConfig, "is 1x2x2, but record '00000003' is 3x4x5"));
  EXPECT_THAT(thrown.text, HasSubstr("net.prototxt:3:"));
}

TEST_F(TransformRefusalTest, ACropLargerThanTheImage) {
  EXPECT_THAT(Refusal("crop_size: 5", datum_),
              Refuses(ErrorCode::kConfig,
                      "a crop of 5x5 is larger than record '00000003', which is 3x4x5"));
  EXPECT_THAT(Refusal("crop_h: 4 crop_w: 6", datum_), Refuses(ErrorCode::kConfig, "a crop of 4x6"));
  EXPECT_THAT(Refusal("crop_h: 4", datum_),
              Refuses(ErrorCode::kConfig, "crop_h and crop_w need each other"));
}

TEST_F(TransformRefusalTest, AWrongNumberOfMeanValues) {
  EXPECT_THAT(Refusal("mean_value: 1 mean_value: 2", datum_),
              Refuses(ErrorCode::kConfig, "2 mean values for 3 channels"));
}

TEST_F(TransformRefusalTest, RandomResizing) {
  EXPECT_THAT(Refusal("img_rand_resize_lower: 256", datum_),
              Refuses(ErrorCode::kConfig,
                      "img_rand_resize_lower is not supported: resize the images when the database "
                      "is made."));
  for (const char* field : {"rand_resize_ratio_upper: 2", "vertical_stretch_upper: 1.5",
                            "horizontal_stretch_lower: 0.5"}) {
    EXPECT_THAT(Refusal(field, datum_), Refuses(ErrorCode::kConfig, "is not supported: resize"));
  }
}

TEST_F(TransformRefusalTest, AFieldThatIsNotSupportedMayHoldItsDefault) {
  EXPECT_THAT(Refusal("vertical_stretch_upper: 1 crop_h: 4", datum_),
              Refuses(ErrorCode::kConfig, "crop_h and crop_w need each other"));
}

TEST_F(TransformRefusalTest, AMissingOrBrokenMeanFile) {
  EXPECT_THAT(Refusal("mean_file: \"" + folder_ / "none" + "\"", datum_),
              Refuses(ErrorCode::kNoInput, "none"));
  WriteBytes(folder_ / "bad", "not a mean");
  EXPECT_THAT(
      Refusal("mean_file: \"" + folder_ / "bad" + "\"", datum_),
      Refuses(ErrorCode::kData, "not a mean file: its 10 bytes are not a BlobProto message"));
  EXPECT_THAT(Refusal(WriteMean(folder_ / "m", {2, 3, 4, 5}, std::vector<float>(120)), datum_),
              Refuses(ErrorCode::kData, "the mean must have the shape 1 C H W, not 2 3 4 5"));
  EXPECT_THAT(Refusal(WriteMean(folder_ / "m", {1, 3, 4, 5}, std::vector<float>(59)), datum_).code,
              static_cast<int>(ErrorCode::kData));
}

}  // namespace
}  // namespace trainer
