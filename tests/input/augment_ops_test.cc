// Tests flips, affine maps, blur and the operations of RandAugment and TrivialAugment: as changes
// of records, and compared with torchvision.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "augment/affine_warp.h"
#include "augment/auto_augment.h"
#include "augment/byte_changes.h"
#include "augment/gaussian_blur.h"
#include "record_rng.h"
#include "storage/test_data.h"
#include "support/golden.h"
#include "trainer/base/text/text.h"
#include "trainer/input/transform.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// These values are also in scripts/golden/augment_ops.py.
constexpr PhiloxKey kOpsKey{17, 3};
constexpr uint32_t kOpsFirstPass = 0x31000000, kOpsHash = 41;

// Places the image of a golden case in a larger one, whose other bytes must not change.
class GoldenBytes {
 public:
  explicit GoldenBytes(const GoldenCase& golden) : golden_(golden) {
    const std::vector<float>& shape = golden.Tensor("shape").values;
    part_.channels = static_cast<int>(shape[0]);
    part_.height = static_cast<int64_t>(shape[1]);
    part_.width = static_cast<int64_t>(shape[2]);
    part_.row = part_.width + 2 * kMargin;
    part_.plane = part_.row * (part_.height + 2 * kMargin);
    bytes_.assign(static_cast<size_t>(part_.channels * part_.plane), kOutside);
    part_.pixels = bytes_.data() + kMargin * part_.row + kMargin;
    const auto low = static_cast<uint32_t>(golden.Number("low"));
    const auto levels = static_cast<uint32_t>(golden.Number("levels"));
    ForAll([&](uint8_t& byte, size_t i) {
      byte =
          static_cast<uint8_t>(low + (HashWord(kOpsHash, static_cast<uint32_t>(i)) >> 8) % levels);
    });
  }
  const PixelSpan& part() const { return part_; }

  void ExpectOut(float bound) {
    const std::vector<float>& out = golden_.Tensor("out").values;
    ASSERT_EQ(out.size(), static_cast<size_t>(part_.channels * part_.height * part_.width));
    ForAll([&](uint8_t& byte, size_t i) {
      EXPECT_NEAR(byte, out[i], bound) << golden_.name << ", element " << i;
      byte = kOutside;
    });
    EXPECT_THAT(bytes_, testing::Each(kOutside)) << golden_.name;
  }

 private:
  static constexpr int64_t kMargin = 2;
  static constexpr uint8_t kOutside = 99;

  template <class F>
  void ForAll(const F& use) {
    size_t i = 0;
    for (int c = 0; c < part_.channels; ++c) {
      for (int64_t y = 0; y < part_.height; ++y) {
        for (int64_t x = 0; x < part_.width; ++x) use(part_.Row(c, y)[x], i++);
      }
    }
  }

  const GoldenCase& golden_;
  PixelSpan part_;
  std::vector<uint8_t> bytes_;
};

const std::vector<GoldenCase>& GoldenOps() {
  static const std::vector<GoldenCase> kCases = ReadGolden("images/augment_ops.txt");
  return kCases;
}

// Calls use(case) for each case whose name begins with `prefix`. Returns the number of cases.
template <class F>
int ForGoldenOps(const std::string& prefix, const F& use) {
  int count = 0;
  for (const GoldenCase& golden : GoldenOps()) {
    if (!golden.name.starts_with(prefix)) continue;
    use(golden);
    ++count;
  }
  return count;
}

AutoOperation OperationOf(const GoldenCase& golden) {
  return static_cast<AutoOperation>(golden.Number("operation"));
}

// --- Values from torchvision ---

TEST(AutoAugmentTest, GoldenValuesOfTorchvisionsOperations) {
  std::set<AutoOperation> seen;
  const int cases = ForGoldenOps("operation ", [&](const GoldenCase& golden) {
    GoldenBytes bytes(golden);
    ApplyOperation(OperationOf(golden), golden.Number("magnitude"), {}, bytes.part());
    bytes.ExpectOut(0);
    seen.insert(OperationOf(golden));
  });
  EXPECT_EQ(seen.size(), static_cast<size_t>(kAutoOperations));
  EXPECT_GT(cases, 40);
}

TEST(AutoAugmentTest, GoldenValuesOfTorchvisionsMagnitudes) {
  const int cases = ForGoldenOps("magnitudes ", [&](const GoldenCase& golden) {
    const AutoSpace space = golden.name.find("Rand") == std::string::npos
                                ? AutoSpace::kTrivialAugmentWide
                                : AutoSpace::kRandAugment;
    const AutoOperation operation = OperationOf(golden);
    const std::vector<float>& size = golden.Tensor("size").values;
    for (int i = 0; i < kAutoMagnitudes; ++i) {
      const float want = golden.Tensor("magnitudes").values[static_cast<size_t>(i)];
      EXPECT_NEAR(MagnitudeOf(space, operation, i, static_cast<int64_t>(size[0]),
                              static_cast<int64_t>(size[1])),
                  want, 1e-5 * std::abs(want))
          << golden.name << " " << i;
    }
    EXPECT_EQ(HasSign(operation), golden.Number("signed") == 1) << golden.name;
  });
  EXPECT_EQ(cases, 2 * kAutoOperations);
}

TEST(AutoAugmentTest, GoldenValuesOfDraws) {
  const int cases = ForGoldenOps("draw ", [&](const GoldenCase& golden) {
    GoldenBytes bytes(golden);
    RecordRng draws(kOpsKey, static_cast<uint64_t>(golden.Number("number")), kOpsFirstPass);
    if (golden.name.find("Rand") != std::string::npos) {
      RandAugment(3, 15, {}, &draws, bytes.part());
    } else {
      TrivialAugment({.fill = {77}}, &draws, bytes.part());
    }
    bytes.ExpectOut(0);
  });
  EXPECT_EQ(cases, 48);
}

TEST(AffineWarpTest, GoldenValuesOfTorchvision) {
  const int cases = ForGoldenOps("affine ", [&](const GoldenCase& golden) {
    GoldenBytes bytes(golden);
    AffineChange change;
    change.degrees = golden.Number("degrees");
    change.shift_x = golden.Number("shift_x");
    change.shift_y = golden.Number("shift_y");
    change.scale = golden.Number("scale");
    change.shear_x = golden.Number("shear_x");
    change.shear_y = golden.Number("shear_y");
    const bool bilinear = golden.Number("bilinear") == 1;
    const WarpStyle style{bilinear, {static_cast<uint8_t>(golden.Number("fill"))}};
    WarpAffine(MapOf(change, bytes.part().height, bytes.part().width), style, bytes.part());
    bytes.ExpectOut(bilinear ? 1 : 0);  // Pillow truncates, this code rounds
  });
  EXPECT_EQ(cases, 24);
}

TEST(GaussianBlurTest, GoldenValuesOfTorchvision) {
  const int cases = ForGoldenOps("blur ", [&](const GoldenCase& golden) {
    GoldenBytes bytes(golden);
    GaussianBlur(static_cast<int>(golden.Number("kernel_size")), golden.Number("sigma"),
                 bytes.part());
    bytes.ExpectOut(1);
  });
  EXPECT_EQ(cases, 5);
}

TEST(GaussianBlurTest, KeepsAConstantImage) {
  for (const uint8_t value : {0, 1, 100, 255}) {
    std::vector<uint8_t> bytes(7 * 5, value);
    GaussianBlur(9, 1.7, {bytes.data(), 5, 35, 1, 7, 5});
    EXPECT_THAT(bytes, testing::Each(value));
  }
}

TEST(FlipRowsTest, HandValues) {
  std::vector<uint8_t> bytes{1, 2, 3, 4, 5, 6};
  FlipRows({bytes.data(), 2, 6, 1, 3, 2});
  EXPECT_THAT(bytes, ElementsAre(5, 6, 3, 4, 1, 2));
}

// --- Records ---

Transform MakeOps(const std::string& fields, caffe::Phase phase = caffe::TRAIN,
                  const std::string& layer = "") {
  return Transform(
      KeptLayer("name: 'd'\ntype: 'Data'\ntransform_param { " + fields + " } " + layer), phase,
      kOpsKey);
}

DatumView OpsRecord(int channels, int height, int width, const std::string& bytes) {
  DatumView view;
  view.channels = channels;
  view.height = height;
  view.width = width;
  view.bytes = bytes;
  return view;
}

std::string OpsNoise(size_t count) {
  std::string bytes;
  for (uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(HashWord(5, i)));
  return bytes;
}

std::vector<float> ApplyOps(const Transform& transform, const DatumView& datum, uint64_t number) {
  std::vector<float> out(static_cast<size_t>(transform.OutShape(datum, "'r'").Count()), -999.f);
  transform.ToFloats(datum, number, out.data());
  return out;
}

const char* const kOpsFields[] = {
    "vflip: 0.5",
    "random_affine_param { degrees: 30 }",
    "random_affine_param { translate_x: 0.3 translate_y: 0.2 fill: 5 }",
    "random_affine_param { min_scale: 0.5 max_scale: 2 interpolation: BILINEAR }",
    "random_affine_param { shear_x: 20 shear_y: 10 probability: 0.8 fill: 1 fill: 2 fill: 3 }",
    "gaussian_blur_param { }",
    "gaussian_blur_param { kernel_size: 5 min_sigma: 1 probability: 1 }",
    "auto_augment: RANDAUGMENT",
    "auto_augment: RANDAUGMENT auto_augment_param { num_ops: 4 magnitude: 30 fill: 128 }",
    "auto_augment: TRIVIAL auto_augment_param { interpolation: BILINEAR }"};

TEST(AugmentOpsTest, AreAFunctionOfKeyAndNumberInTrainAlone) {
  const std::string pixels = OpsNoise(3 * 10 * 11);
  const DatumView datum = OpsRecord(3, 10, 11, pixels);
  for (const std::string fields : kOpsFields) {
    const Transform transform = MakeOps(fields), again = MakeOps(fields);
    const std::vector<float> plain = ApplyOps(MakeOps(""), datum, 0);
    std::set<std::vector<float>> seen;
    for (uint64_t number = 0; number < 40; ++number) {
      const std::vector<float> out = ApplyOps(transform, datum, number);
      EXPECT_EQ(out, ApplyOps(again, datum, number)) << fields;
      seen.insert(out);
    }
    EXPECT_GT(seen.size(), fields.starts_with("vflip") ? 1u : 12u) << fields;
    EXPECT_EQ(ApplyOps(MakeOps(fields, caffe::TEST), datum, 3), plain) << fields;
    const Transform off = MakeOps(fields, caffe::TRAIN, "data_param { augment: false }");
    EXPECT_EQ(ApplyOps(off, datum, 3), plain) << fields;
  }
}

TEST(AugmentOpsTest, LeaveTheDrawsOfOtherChangesAsTheyWere) {
  const std::string pixels = OpsNoise(3 * 9 * 9);
  const DatumView datum = OpsRecord(3, 9, 9, pixels);
  const std::string fields = "crop_size: 6 mirror: true color_jitter_param { brightness: 0.5 } ";
  const std::string nothing =
      "vflip: 1e-9 random_affine_param { degrees: 1e-6 } gaussian_blur_param { probability: 0 } ";
  for (uint64_t number = 0; number < 10; ++number) {
    EXPECT_EQ(ApplyOps(MakeOps(fields + nothing), datum, number),
              ApplyOps(MakeOps(fields), datum, number));
  }
}

TEST(AugmentOpsTest, ChangeTheWindowOfTheCropAndNothingFromOutside) {
  std::string pixels(9 * 9, static_cast<char>(200));
  const std::string fields =
      "crop_size: 5 random_affine_param { translate_x: 1 translate_y: 1 fill: 7 }";
  int outside = 0;
  for (uint64_t number = 0; number < 50; ++number) {
    for (const float value : ApplyOps(MakeOps(fields), OpsRecord(1, 9, 9, pixels), number)) {
      EXPECT_TRUE(value == 200 || value == 7) << value;
      outside += value == 7;
    }
  }
  EXPECT_NEAR(outside, 50 * 25 * 3 / 4, 200) << "on average, half of each side is shifted out";
}

TEST(AugmentOpsTest, FlipTheAskedShareOfImages) {
  const std::string pixels("\x01\x02", 2);
  int flipped = 0;
  const Transform transform = MakeOps("vflip: 0.3");
  for (uint64_t number = 0; number < 1000; ++number) {
    flipped += ApplyOps(transform, OpsRecord(1, 2, 1, pixels), number)[0] == 2;
  }
  EXPECT_NEAR(flipped, 300, 50);
}

TEST(AugmentOpsTest, BytesForADeviceAreChangedAlike) {
  const std::string pixels = OpsNoise(3 * 10 * 11);
  const DatumView datum = OpsRecord(3, 10, 11, pixels);
  for (const std::string fields : kOpsFields) {
    const Transform transform = MakeOps("crop_size: 8 mirror: true " + fields);
    for (uint64_t number = 0; number < 10; ++number) {
      const std::vector<float> want = ApplyOps(transform, datum, number);
      std::vector<uint8_t> bytes(want.size());
      CropOffset window;
      transform.CropBytes(datum, number, bytes.data(), &window);
      EXPECT_EQ(std::vector<float>(bytes.begin(), bytes.end()), want) << fields;
    }
  }
}

TEST(AugmentOpsTest, KeepASinglePixelAndFlipFourChannels) {
  const std::string pixels("\x0a\x14\x1e\x28\x32\x3c\x46\x50", 8);
  const std::string all = "vflip: 1 random_affine_param { degrees: 180 } gaussian_blur_param { }";
  for (const int channels : {1, 3, 4}) {
    const std::string one = pixels.substr(0, static_cast<size_t>(channels));
    const DatumView datum = OpsRecord(channels, 1, 1, one);
    for (uint64_t number = 0; number < 9; ++number) {
      EXPECT_EQ(ApplyOps(MakeOps(all), datum, number), ApplyOps(MakeOps(""), datum, number));
    }
  }
  EXPECT_THAT(ApplyOps(MakeOps("vflip: 1"), OpsRecord(4, 2, 1, pixels), 0),
              ElementsAre(20, 40, 60, 80, 10, 30, 50, 70));
}

TEST(AugmentOpsTest, RefuseFieldsThatMakeNoSense) {
  const auto refusal = [](const std::string& fields) {
    const Thrown thrown = Catch([&] { MakeOps(fields); });
    EXPECT_EQ(thrown.code, static_cast<int>(ErrorCode::kConfig)) << thrown.text;
    EXPECT_THAT(thrown.text, HasSubstr("net.prototxt:3:"));
    return thrown.text;
  };
  EXPECT_THAT(refusal("vflip: 1.5"), HasSubstr("vflip is 1.5; it must be 0 to 1"));
  const auto affine = [&](const std::string& field) {
    return refusal("random_affine_param { " + field + " }");
  };
  EXPECT_THAT(affine("degrees: 181"), HasSubstr("degrees is 181; it must be 0 to 180"));
  EXPECT_THAT(affine("degrees: nan"), HasSubstr("degrees is nan"));
  EXPECT_THAT(affine("translate_x: -0.1"), HasSubstr("translate_x is -0.1; it must be 0 to 1"));
  EXPECT_THAT(affine("translate_y: 2"), HasSubstr("translate_y is 2; it must be 0 to 1"));
  EXPECT_THAT(affine("shear_x: 90"), HasSubstr("shear_x is 90; it must be 0 to 80"));
  EXPECT_THAT(affine("shear_y: 90"), HasSubstr("shear_y is 90; it must be 0 to 80"));
  EXPECT_THAT(affine("probability: 2"), HasSubstr("probability is 2; it must be 0 to 1"));
  EXPECT_THAT(affine("fill: 256"), HasSubstr("fill is 256; it must be a pixel value from 0 to"));
  EXPECT_THAT(affine("min_scale: 2"),
              HasSubstr("min_scale is 2 and max_scale 1; both must be 0.01 to 100, and the first"));
  EXPECT_THAT(affine("min_scale: 0"), HasSubstr("min_scale is 0 and max_scale 1"));
  EXPECT_THAT(refusal("auto_augment_param { magnitude: 5 }"),
              HasSubstr("auto_augment_param has no effect without auto_augment; give auto_augment: "
                        "RANDAUGMENT, or TRIVIAL"));
  const auto automatic = [&](const std::string& field) {
    return refusal("auto_augment: RANDAUGMENT auto_augment_param { " + field + " }");
  };
  EXPECT_THAT(automatic("num_ops: 0"), HasSubstr("num_ops is 0; it must be 1 to 16"));
  EXPECT_THAT(automatic("magnitude: 31"), HasSubstr("magnitude is 31; it must be 0 to 30"));
  EXPECT_THAT(automatic("fill: -1"), HasSubstr("fill is -1; it must be a pixel value"));
  const auto blur = [&](const std::string& field) {
    return refusal("gaussian_blur_param { " + field + " }");
  };
  EXPECT_THAT(blur("kernel_size: 4"),
              HasSubstr("kernel_size is 4; it must be odd and at most 255"));
  EXPECT_THAT(blur("kernel_size: 257"), HasSubstr("kernel_size is 257"));
  EXPECT_THAT(blur("min_sigma: 3"),
              HasSubstr("min_sigma is 3 and max_sigma 2; both must be above 0 and at most 40"));
  EXPECT_THAT(blur("min_sigma: 0"), HasSubstr("min_sigma is 0 and max_sigma 2"));
  EXPECT_THAT(blur("probability: -1"), HasSubstr("probability is -1; it must be 0 to 1"));
}

TEST(AugmentOpsTest, RefuseRecordsThatTheyCannotChange) {
  const std::string pixels = OpsNoise(64);
  const auto refusal = [&](const std::string& fields, const DatumView& datum) {
    return Catch([&] { MakeOps(fields).OutShape(datum, "'r'"); });
  };
  EXPECT_THAT(refusal("auto_augment: TRIVIAL", OpsRecord(4, 4, 4, pixels)),
              Refuses(ErrorCode::kConfig,
                      "record 'r' is 4x4x4; auto_augment needs 1 or 3 channels: set force_color"));
  EXPECT_THAT(
      refusal("random_affine_param { degrees: 9 fill: 1 fill: 2 }", OpsRecord(1, 8, 8, pixels)),
      Refuses(ErrorCode::kConfig, "2 values for 1 channels (record 'r'); give one, or one"));
  EXPECT_THAT(
      refusal("auto_augment: TRIVIAL auto_augment_param { fill: 1 fill: 2 }",
              OpsRecord(1, 8, 8, pixels)),
      Refuses(ErrorCode::kConfig, "2 values for 1 channels (record 'r'); give one, or one"));
  EXPECT_THAT(
      refusal("crop_size: 4 gaussian_blur_param { kernel_size: 9 }", OpsRecord(1, 8, 8, pixels)),
      Refuses(ErrorCode::kConfig,
              "kernel_size is 9, but record 'r' gives a 1x4x4 image; it must be less than "
              "twice each side"));
  DatumView floats = OpsRecord(1, 8, 8, "");
  const std::vector<float> numbers(64);
  floats.floats = numbers;
  for (const std::string field : {"vflip: 1", "random_affine_param { degrees: 1 }",
                                  "auto_augment: TRIVIAL", "gaussian_blur_param { }"}) {
    const std::string name = field.substr(0, field.find_first_of(": "));
    EXPECT_THAT(
        refusal(field, floats),
        Refuses(ErrorCode::kData,
                Join("record 'r' has float values, but ", name,
                     " changes 8-bit pixels only; store the images with 8 bits per channel, "
                     "or remove this field")));
  }
}

}  // namespace
}  // namespace trainer
