// Tests random changes of training images, mixed images, and several crops of test images.

#include "trainer/input/augment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "color_changes.h"
#include "mixup.h"
#include "storage/test_data.h"
#include "support/golden.h"
#include "trainer/base/text/text.h"
#include "trainer/input/batch_queue.h"
#include "trainer/input/source.h"
#include "trainer/input/transform.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr PhiloxKey kAugmentKey{17, 3};

Transform MakeAugment(const std::string& fields, caffe::Phase phase = caffe::TRAIN) {
  return Transform(KeptLayer("name: 'd'\ntype: 'Data'\ntransform_param { " + fields + " }"), phase,
                   kAugmentKey);
}

DatumView BytesOfAugment(int c, int h, int w, const std::string& bytes) {
  DatumView view;
  view.channels = c;
  view.height = h;
  view.width = w;
  view.bytes = bytes;
  return view;
}

// Returns the result with element (h, w, c) at h * width * channels + w * channels + c.
std::vector<float> ApplyAugment(const Transform& transform, const DatumView& datum,
                                uint64_t number = 0) {
  const int64_t count = transform.OutShape(datum, "'r'").Count() * transform.crops();
  std::vector<float> out(static_cast<size_t>(count), -999.f);
  transform.ToFloats(datum, number, out.data());
  return out;
}

std::string Noise(size_t count) {
  std::string bytes;
  for (uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(HashWord(5, i)));
  return bytes;
}

// --- ColorMode ---

TEST(ColorChangesTest, GoldenValuesOfPillowAndColorsys) {
  int cases = 0;
  for (const GoldenCase& golden : ReadGolden("images/augment.txt")) {
    const GoldenTensor& in = golden.Tensor("in");
    std::vector<float> memory;
    FloatImage pixels(3, in.dims[1], in.dims[2], &memory);
    std::ranges::copy(in.values, pixels.Channel(0));
    const auto by = static_cast<float>(golden.numbers.contains("by") ? golden.Number("by") : 0);
    float bound = 1.01f;  // Pillow truncates
    if (golden.name.starts_with("brightness")) ScaleBrightness(by, &pixels);
    if (golden.name.starts_with("contrast")) {
      ScaleContrast(by, &pixels);
      bound = 1.7f;  // and rounds the mean
    }
    if (golden.name.starts_with("saturation")) {
      ScaleSaturation(by, &pixels);
      bound = 1.7f;  // and rounds each grey value
    }
    if (golden.name.starts_with("hue")) {
      TurnHue(by, &pixels);
      bound = 1e-3f;
    }
    if (golden.name.starts_with("lighting")) {
      AddLighting({golden.Number("weight0"), golden.Number("weight1"), golden.Number("weight2")},
                  &pixels);
      bound = 1e-3f;
    }
    const GoldenTensor& out = golden.Tensor("out");
    for (size_t i = 0; i < out.values.size(); ++i) {
      EXPECT_NEAR(memory[i], out.values[i], bound) << golden.name << " " << i;
    }
    ++cases;
  }
  EXPECT_EQ(cases, 20);
}

TEST(AugmentTest, ColorsAreAFunctionOfKeyAndNumberInTrainAlone) {
  const std::string pixels = Noise(3 * 6 * 7);
  const DatumView datum = BytesOfAugment(3, 6, 7, pixels);
  for (const std::string& fields :
       {std::string("color_jitter_param { brightness: 0.4 }"),
        std::string("color_jitter_param { contrast: 0.4 }"),
        std::string("color_jitter_param { saturation: 0.4 }"),
        std::string("color_jitter_param { hue: 0.1 }"), std::string("lighting: 0.5"),
        std::string("random_erasing_param { probability: 1 min_area_ratio: 0.1 }")}) {
    std::set<std::vector<float>> seen;
    for (uint64_t number = 0; number < 20; ++number) {
      const auto out = ApplyAugment(MakeAugment(fields), datum, number);
      EXPECT_EQ(out, ApplyAugment(MakeAugment(fields), datum, number)) << fields;
      seen.insert(out);
    }
    EXPECT_GT(seen.size(), 12u) << fields;
    EXPECT_EQ(ApplyAugment(MakeAugment(fields, caffe::TEST), datum, 3),
              ApplyAugment(MakeAugment("", caffe::TEST), datum, 3));
  }
}

TEST(AugmentTest, LeavesCropsAndFlipsAsTheyWere) {
  const std::string pixels = Noise(3 * 9 * 9);
  const std::string fields = "crop_size: 4 mirror: true mean_value: 10 scale: 0.5 ";
  for (uint64_t number = 0; number < 10; ++number) {
    const auto plain = ApplyAugment(MakeAugment(fields), BytesOfAugment(3, 9, 9, pixels), number);
    // The tiny hue forces the conversion to floats and back, which must not change the values.
    EXPECT_EQ(ApplyAugment(MakeAugment(fields + "color_jitter_param { hue: 1e-30 }"),
                           BytesOfAugment(3, 9, 9, pixels), number),
              plain);
  }
}

TEST(AugmentTest, BrightnessIsUniformBetweenItsLimits) {
  const std::string pixels(1, 100);
  const Transform transform = MakeAugment("color_jitter_param { brightness: 0.5 }");
  double sum = 0;
  float least = 999, most = 0;
  for (uint64_t number = 0; number < 2000; ++number) {
    const float out = ApplyAugment(transform, BytesOfAugment(1, 1, 1, pixels), number)[0];
    sum += out;
    least = std::min(least, out);
    most = std::max(most, out);
  }
  EXPECT_NEAR(sum / 2000, 100, 3);
  EXPECT_EQ(least, 50);
  EXPECT_EQ(most, 150);
}

TEST(AugmentTest, ErasesARectangleOfTheAskedAreaAndShape) {
  const std::string pixels(3 * 40 * 40, 100);
  const Transform transform = MakeAugment(
      "random_erasing_param { probability: 0.5 min_area_ratio: 0.1 max_area_ratio: 0.3 min_aspect: "
      "0.5 value: 7 value: 8 value: 9 }");
  int erased = 0;
  for (uint64_t number = 0; number < 400; ++number) {
    const auto out = ApplyAugment(transform, BytesOfAugment(3, 40, 40, pixels), number);
    int top = 40, bottom = -1, left = 40, right = -1, count = 0;
    for (int h = 0; h < 40; ++h) {
      for (int w = 0; w < 40; ++w) {
        const float* const pixel = &out[static_cast<size_t>((h * 40 + w) * 3)];
        if (pixel[0] == 100) continue;
        EXPECT_THAT(std::vector<float>(pixel, pixel + 3), ElementsAre(7, 8, 9));
        top = std::min(top, h), bottom = std::max(bottom, h);
        left = std::min(left, w), right = std::max(right, w);
        ++count;
      }
    }
    if (count == 0) continue;
    ++erased;
    const int height = bottom - top + 1, width = right - left + 1;
    EXPECT_EQ(count, height * width);  // the erased part is a full rectangle
    EXPECT_NEAR(count / 1600.0, 0.2, 0.125);
    EXPECT_GE(static_cast<double>(height) / width, 0.45);
    EXPECT_LE(static_cast<double>(height) / width, 2.2);
  }
  EXPECT_NEAR(erased, 200, 40);
}

TEST(AugmentTest, BytesThatGoUpToADeviceAreChangedAlike) {
  const std::string pixels = Noise(3 * 8 * 8);
  const DatumView datum = BytesOfAugment(3, 8, 8, pixels);
  const Transform transform = MakeAugment(
      "crop_size: 5 mirror: true mean_value: 20 scale: 0.25 lighting: 0.3 color_jitter_param { "
      "brightness: 0.4 contrast: 0.4 saturation: 0.4 hue: 0.1 } random_erasing_param { }");
  for (uint64_t number = 0; number < 20; ++number) {
    const auto want = ApplyAugment(transform, datum, number);
    std::vector<uint8_t> bytes(want.size());
    CropOffset window;
    transform.CropBytes(datum, number, bytes.data(), &window);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ((static_cast<float>(bytes[i]) - 20) * 0.25f, want[i]);
    }
  }
}

TEST(AugmentTest, RefusesFieldsAndRecordsThatMakeNoSense) {
  const auto refusal = [](const std::string& fields) {
    const Thrown thrown = Catch([&] { MakeAugment(fields); });
    EXPECT_EQ(thrown.code, static_cast<int>(ErrorCode::kConfig)) << thrown.text;
    EXPECT_THAT(thrown.text, HasSubstr("net.prototxt:3:"));
    return thrown.text;
  };
  EXPECT_THAT(refusal("color_jitter_param { hue: 0.6 }"), HasSubstr("hue is 0.6; it must be 0 to"));
  EXPECT_THAT(refusal("color_jitter_param { contrast: nan }"), HasSubstr("contrast is nan"));
  EXPECT_THAT(refusal("lighting: -1"), HasSubstr("lighting is -1; it must be 0 to 10"));
  const auto erasing = [&](const std::string& field) {
    return refusal("random_erasing_param { " + field + " }");
  };
  EXPECT_THAT(erasing("probability: 2"), HasSubstr("probability is 2"));
  EXPECT_THAT(erasing("max_area_ratio: 0.01"), HasSubstr("min_area_ratio is 0.02"));
  EXPECT_THAT(erasing("min_aspect: 0"), HasSubstr("min_aspect is 0"));
  EXPECT_THAT(erasing("value: 300"), HasSubstr("value is 300; it must be a pixel value"));
  EXPECT_THAT(refusal("mixup: 0.2"), HasSubstr("mixup needs mixup_classes"));
  EXPECT_THAT(refusal("mixup: -1 mixup_classes: 2"), HasSubstr("mixup is -1"));
  EXPECT_THAT(refusal("test_crops: 3"), HasSubstr("test_crops is 3; it must be 1, 5 or 10"));
  EXPECT_THAT(refusal("test_crops: 5"), HasSubstr("test_crops needs crop_size"));
  const std::string pixels(4 * 4, 'x');
  const auto record = [&](const std::string& fields, const DatumView& datum) {
    return Catch([&] { MakeAugment(fields).OutShape(datum, "'r'"); });
  };
  EXPECT_THAT(record("color_jitter_param { hue: 0.1 }", BytesOfAugment(4, 2, 2, pixels)),
              Refuses(ErrorCode::kConfig, "record 'r' is 4x2x2; color changes need 1 or 3"));
  EXPECT_THAT(record("lighting: 0.1", BytesOfAugment(1, 4, 4, pixels)),
              Refuses(ErrorCode::kConfig, "lighting needs 3 channels: set force_color"));
  EXPECT_THAT(record("random_erasing_param { value: 1 value: 2 }", BytesOfAugment(1, 4, 4, pixels)),
              Refuses(ErrorCode::kConfig, "2 values for 1 channels"));
  DatumView floats = BytesOfAugment(1, 4, 4, "");
  const std::vector<float> numbers(16);
  floats.floats = numbers;
  EXPECT_THAT(record("random_erasing_param { }", floats),
              Refuses(ErrorCode::kData, "record 'r' has float values, but"));
}

// --- Crops ---

TEST(TestCropsTest, AreTheCornersTheMiddleAndTheseMirrored) {
  std::string pixels;
  for (int i = 0; i < 16; ++i) pixels.push_back(static_cast<char>(i));
  const DatumView datum = BytesOfAugment(1, 4, 4, pixels);
  const std::string fields = "crop_size: 2 mirror: true test_crops: ";
  const auto five = ApplyAugment(MakeAugment(fields + "5", caffe::TEST), datum);
  EXPECT_THAT(five, ElementsAre(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 5, 6, 9, 10));
  const auto ten = ApplyAugment(MakeAugment(fields + "10", caffe::TEST), datum);
  ASSERT_EQ(ten.size(), 40u);
  EXPECT_TRUE(std::equal(five.begin(), five.end(), ten.begin()));
  EXPECT_THAT(std::vector<float>(ten.begin() + 20, ten.begin() + 24), ElementsAre(1, 0, 5, 4));
  EXPECT_EQ(MakeAugment(fields + "10", caffe::TRAIN).crops(), 1);
}

class CropBatchTest : public testing::Test {
 protected:
  std::unique_ptr<BatchQueue> Data(const std::string& transform, caffe::Phase phase, int threads,
                                   int parts = 1, bool bytes = false) const {
    if (!std::filesystem::exists(folder_ / "db")) {
      Records records;
      for (int i = 0; i < 7; ++i) {
        std::string pixels;
        for (int p = 0; p < 9; ++p) pixels.push_back(static_cast<char>(20 * i + p));
        records.emplace_back(Key8(i), MakeDatum(1, 3, 3, pixels, i).SerializeAsString());
      }
      WriteDb("LMDB", folder_ / "db", records);
    }
    InputEnv env{phase, {1, 2}, {0, parts}, threads};
    env.virtual_ranks = parts;
    env.bytes = bytes;
    return OpenDatabase(
        KeptLayer("name: 'd' type: 'Data' top: 'x' top: 'y' data_param { backend: LMDB batch_size: "
                  "3 source: '" +
                  (folder_ / "db") + "' } transform_param { " + transform + " }"),
        env);
  }
  TempFolder folder_;
};

TEST_F(CropBatchTest, CropsOfARecordLieBehindEachOtherAndLabelsStayOnePerRecord) {
  const auto one = Data("crop_size: 2", caffe::TEST, 1);
  for (const int threads : {1, 3}) {
    const auto ten = Data("crop_size: 2 test_crops: 10", caffe::TEST, threads);
    EXPECT_EQ(ten->shape(0), (Shape{30, 1, 2, 2}));
    EXPECT_EQ(ten->shape(1), (Shape{3}));
    const Batch& batch = ten->Next();
    EXPECT_THAT(Numbers(batch.output(1)), ElementsAre(0, 1, 2));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(batch.output(0)[i * 40], 20 * static_cast<float>(i));
      EXPECT_EQ(batch.output(0)[i * 40 + 20], 20 * static_cast<float>(i) + 1);
    }
  }
}

// --- Mixed images ---

TEST(MixupTest, TheShareFollowsABetaDistribution) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    constexpr int kDraws = 4000;
    for (uint64_t number = 0; number < kDraws; ++number) {
      const double share = DrawMixWeight(kAugmentKey, number, alpha);
      ASSERT_GE(share, 0);
      ASSERT_LE(share, 1);
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.03) << alpha;
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * alpha + 1)), 0.012) << alpha;
  }
}

TEST_F(CropBatchTest, MixesEachImageAndLabelWithTheNextOfItsBatch) {
  const auto plain = Data("", caffe::TRAIN, 1);
  for (const int threads : {1, 3}) {
    const auto mixed = Data("mixup: 1 mixup_classes: 7", caffe::TRAIN, threads);
    EXPECT_EQ(mixed->shape(1), (Shape{3, 7}));
    for (uint64_t batch = 0; batch < 5; ++batch) {
      const auto fresh = Data("", caffe::TRAIN, 1);
      for (uint64_t i = 0; i < batch; ++i) fresh->Next();
      const Batch &was = fresh->Next(), &is = mixed->Next();
      for (size_t i = 0; i < 3; ++i) {
        const size_t next = (i + 1) % 3;
        const auto share = static_cast<float>(DrawMixWeight({1, 2}, batch * 3 + i, 1));
        for (size_t p = 0; p < 9; ++p) {
          EXPECT_FLOAT_EQ(is.output(0)[i * 9 + p], share * was.output(0)[i * 9 + p] +
                                                       (1 - share) * was.output(0)[next * 9 + p]);
        }
        std::vector<float> want(7, 0.0f);
        want[static_cast<size_t>(was.output(1)[i])] += share;
        want[static_cast<size_t>(was.output(1)[next])] += 1 - share;
        for (size_t c = 0; c < 7; ++c) EXPECT_FLOAT_EQ(is.output(1)[i * 7 + c], want[c]);
      }
    }
  }
}

TEST_F(CropBatchTest, PartsAreMixedByThemselves) {
  const auto two = Data("mixup: 1 mixup_classes: 7", caffe::TRAIN, 2, 2);
  InputEnv env;
  const Batch& both = two->Next();
  EXPECT_EQ(both.output(1).size(), 2u * 3 * 7);
  // The first half has records 0, 2 and 4, mixed only with each other.
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(both.output(1)[i * 7 + 1] + both.output(1)[i * 7 + 3] + both.output(1)[i * 7 + 5], 0);
  }
}

TEST_F(CropBatchTest, MixedBatchesAreBytesWhereADevicePrefersThem) {
  EXPECT_FALSE(Data("", caffe::TRAIN, 1, 1, true)->normalization()->mixed);
  const std::string transform = "mixup: 1 mixup_classes: 7";
  for (const int threads : {1, 3}) {
    const auto plain = Data("", caffe::TRAIN, threads, 1, true);
    const auto bytes = Data(transform, caffe::TRAIN, threads, 1, true);
    const auto numbers = Data(transform, caffe::TRAIN, threads);
    ASSERT_NE(bytes->normalization(), nullptr);
    EXPECT_TRUE(bytes->normalization()->mixed);
    for (uint64_t batch = 0; batch < 5; ++batch) {
      const Batch &was = plain->Next(), &is = bytes->Next();
      EXPECT_THAT(is.pixels(), ElementsAreArray(was.pixels())) << "as they were, and";
      EXPECT_THAT(is.output(1), ElementsAreArray(numbers->Next().output(1)));
      for (uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(is.mix_weights()[i], static_cast<float>(DrawMixWeight({1, 2}, batch * 3 + i, 1)));
      }
    }
  }
}

TEST(MixupTest, AnImageAloneStaysAsItIs) {
  const uint64_t number[] = {3};
  float item[] = {1.5f, -2.0f};
  for (const MixOptions& options : {MixOptions{.mixup = 1}, MixOptions{.cutmix = 1}}) {
    const ImageMix mix = DrawMixes(kAugmentKey, options, number, 1, 2).at(0);
    EXPECT_EQ(mix.label_weight, 1.0f);
    MixImages({&mix.pixel_weight, 1}, {&mix.box, 1}, 2, 1, item);
  }
  EXPECT_THAT(item, ElementsAre(1.5f, -2.0f));
}

TEST_F(CropBatchTest, ALabelThatIsNoClassIsNamed) {
  const auto mixed = Data("mixup: 1 mixup_classes: 4", caffe::TRAIN, 1);
  mixed->Next();
  EXPECT_THAT(
      Catch([&] { mixed->Next(); }),
      Refuses(ErrorCode::kData, "has label 4, but mixup_classes is 4, so labels must be 0 to"));
}

}  // namespace
}  // namespace trainer
