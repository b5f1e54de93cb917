// Compares batches of partly decoded JPEG records with the same records decoded completely.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "storage/test_data.h"
#include "support/golden.h"
#include "trainer/base/text/text.h"
#include "trainer/input/source.h"
#include "trainer/input/transform.h"

namespace trainer {
namespace {

constexpr PhiloxKey kDecodedPartsKey{1, 2};
const char* const kNames[] = {"full", "across", "half", "restarts"};  // pictures of 101 x 75 pixels

caffe::Datum Encoded(const std::string& bytes, int label) {
  caffe::Datum datum;
  datum.set_data(bytes);
  datum.set_encoded(true);
  datum.set_label(label);
  return datum;
}

class DecodedPartsTest : public testing::Test {
 protected:
  DecodedPartsTest() {
    Records records;
    std::string list;
    for (int i = 0; i < 4; ++i) {
      const std::string bytes = Picture(Join("waves_", kNames[i], ".jpg"));
      records.emplace_back(Key8(i), Encoded(bytes, i).SerializeAsString());
      WriteBytes(folder_ / Join(i, ".jpg"), bytes);
      list += Join(i, ".jpg ", i, "\n");
    }
    WriteDb("LMDB", folder_ / "lmdb", records);
    WriteBytes(folder_ / "list", list);
  }

  const LayerSpec& Layer(const std::string& transform, bool listed = false) const {
    const std::string tops = "name: 'd' top: 'x' top: 'y' transform_param { " + transform + " } ";
    if (!listed) {
      return KeptLayer(tops + "type: 'Data' data_param { backend: LMDB source: '" +
                       (folder_ / "lmdb") + "' batch_size: 4 }");
    }
    return KeptLayer(tops + "type: 'ImageData' image_data_param { batch_size: 4 source: '" +
                     (folder_ / "list") + "' root_folder: '" + (folder_ / "") + "' }");
  }

  // Returns three batches as the net reads them.
  std::vector<float> Batches(const LayerSpec& layer, caffe::Phase phase, bool bytes = false) const {
    InputEnv env{phase, kDecodedPartsKey, {}, 1};
    env.bytes = bytes;
    const auto source =
        layer.type() == "Data" ? OpenDatabase(layer, env) : OpenImageList(layer, env);
    std::vector<float> all;
    for (int i = 0; i < 3; ++i) {
      const Batch& batch = source->Next();
      if (batch.has_bytes()) {
        all.insert(all.end(), batch.pixels().begin(), batch.pixels().end());
      } else {
        all.insert(all.end(), batch.output(0).begin(), batch.output(0).end());
      }
    }
    return all;
  }

  // Decodes the records completely.
  static std::vector<float> Whole(const LayerSpec& layer, caffe::Phase phase) {
    const Transform transform(layer, phase, kDecodedPartsKey);
    std::vector<float> all;
    for (uint64_t number = 0; number < 12; ++number) {
      Image image;
      DecodeImage(Picture(Join("waves_", kNames[number % 4], ".jpg")), ColorMode::kColor, {}, "it",
                  &image);
      std::vector<float> out(static_cast<size_t>(transform.OutShape(ViewOf(image), "'r'").Count() *
                                                 transform.crops()));
      transform.ToFloats(ViewOf(image), number, out.data());
      all.insert(all.end(), out.begin(), out.end());
    }
    return all;
  }

  TempFolder folder_;
};

TEST_F(DecodedPartsTest, GiveTheNumbersOfWholePictures) {
  for (const char* fields :
       {"crop_size: 32", "crop_size: 32 mirror: true scale: 0.5 mean_value: 9",
        "crop_h: 11 crop_w: 60", "crop_size: 75", "crop_size: 16 test_crops: 5", "mirror: true",
        "crop_size: 30 color_jitter_param { brightness: 0.4 } random_erasing_param { }",
        "crop_size: 30 vflip: 0.5 random_affine_param { degrees: 20 } auto_augment: TRIVIAL",
        "crop_size: 60 random_resized_crop_param { min_area_ratio: 0.2 }",
        "crop_size: 60 mirror: true random_aspect_ratio_param { min_area_ratio: 0.3 }",
        "crop_size: 60 random_resize_param { min_size: 60 max_size: 90 }"}) {
    for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
      const std::vector<float> whole = Whole(Layer(fields), phase);
      EXPECT_EQ(Batches(Layer(fields), phase), whole) << fields;
      EXPECT_EQ(Batches(Layer(fields, true), phase), whole) << fields;
    }
  }
}

TEST_F(DecodedPartsTest, GiveTheBytesOfWholePictures) {
  for (const char* fields :
       {"crop_size: 32", "crop_size: 32 mirror: true", "crop_size: 30 random_erasing_param { }",
        "crop_size: 30 auto_augment: RANDAUGMENT gaussian_blur_param { }",
        "crop_size: 60 random_resized_crop_param { min_area_ratio: 0.2 }"}) {
    EXPECT_EQ(Batches(Layer(fields), caffe::TRAIN, true), Whole(Layer(fields), caffe::TRAIN))
        << fields;
  }
}

TEST_F(DecodedPartsTest, WindowsAreThoseOfWholePictures) {
  Image whole;
  DecodeImage(Picture("waves_half.jpg"), ColorMode::kColor, {}, "it", &whole);
  std::string pixels = Join("P6 ", whole.width, " ", whole.height, " 255\n");
  for (int64_t i = 0; i < whole.Plane(); ++i) {
    for (const int c : {2, 1, 0}) {
      pixels += static_cast<char>(whole.pixels[static_cast<size_t>(c * whole.Plane() + i)]);
    }
  }
  WriteBytes(folder_ / "whole.ppm", pixels);
  WriteBytes(folder_ / "part.jpg", Picture("waves_half.jpg"));
  std::vector<std::vector<float>> batches;
  for (const char* name : {"whole.ppm", "part.jpg"}) {
    const std::string list = folder_ / Join(name, ".txt");
    WriteBytes(list, Join("# 0\n", folder_ / name,
                          "\n3\n75\n101\n4\n1 0.9 10 12 40 60\n2 0.8 61 3 100 74\n"
                          "3 0.7 33 33 35 34\n0 0.1 0 0 50 20\n"));
    const LayerSpec& layer = KeptLayer(
        "name: 'd' type: 'WindowData' top: 'x' top: 'y' transform_param { crop_size: 20 mirror: "
        "true } window_data_param { batch_size: 8 fg_fraction: 0.5 context_pad: 2 source: '" +
        list + "' }");
    const auto source = OpenWindowList(layer, {caffe::TRAIN, kDecodedPartsKey, {}, 1});
    std::vector<float>& all = batches.emplace_back();
    for (int i = 0; i < 5; ++i) {
      const std::vector<float> batch = Numbers(source->Next().output(0));
      all.insert(all.end(), batch.begin(), batch.end());
    }
  }
  EXPECT_EQ(batches[1], batches[0]);
}

// Each place of the slope has its own grey, so a part that is off by a pixel is detected.
TEST_F(DecodedPartsTest, AShrunkPartOfASlopeIsThatOfTheWholePicture) {
  Image slope{1, 121, 163, {}};
  for (int y = 0; y < slope.height; ++y) {
    for (int x = 0; x < slope.width; ++x)
      slope.pixels.push_back(static_cast<uint8_t>(20 + x + y / 2));
  }
  const std::string bytes = EncodeImage(slope, "jpg", 98);
  const Transform transform(
      Layer("crop_size: 12 random_resized_crop_param { min_area_ratio: 0.3 }"), caffe::TRAIN,
      kDecodedPartsKey);
  int shrunk = 0;
  for (uint64_t number = 0; number < 200; ++number) {
    const CropChooser choose = [&](int height, int width) {
      return transform.CropFor(height, width, number);
    };
    Image image, whole;
    DecodedRegion held;
    DecodeImage(bytes, ColorMode::kAsStored, {}, "it", &image, BitDepth::kBytes, &choose, &held);
    DecodeImage(bytes, ColorMode::kAsStored, {}, "it", &whole);
    shrunk += held.scale_denom > 1;
    std::vector<float> of_part(144), of_whole(144);
    transform.ToFloats(ViewOf(image, held), number, of_part.data());
    transform.ToFloats(ViewOf(whole), number, of_whole.data());
    for (size_t i = 0; i < 144; ++i) ASSERT_NEAR(of_part[i], of_whole[i], 2) << number << " " << i;
  }
  EXPECT_EQ(shrunk, 200);
}

TEST_F(DecodedPartsTest, DamageBelowThePartIsNotSeenAndADamagedPartIsABadRecord) {
  std::string bytes = Picture("waves_restarts.jpg");
  bytes[bytes.find("\xff\xd2") + 1] = '\xd6';  // damaged after 48 of 75 rows
  WriteDb("LMDB", folder_ / "bad", {{"00000000", Encoded(bytes, 0).SerializeAsString()}});
  int refused = 0;
  const Transform transform(Layer("crop_size: 8"), caffe::TRAIN, kDecodedPartsKey);
  for (uint64_t number = 0; number < 100; ++number) {
    const CropChooser choose = [&](int height, int width) {
      return transform.CropFor(height, width, number);
    };
    Image image;
    DecodedRegion held;
    const Thrown thrown = Catch([&] {
      DecodeImage(bytes, ColorMode::kColor, {}, "it", &image, BitDepth::kBytes, &choose, &held);
    });
    const CropRequest need = transform.CropFor(75, 101, number);
    const bool above = need.box.top + need.box.height <= 31, below = need.box.top >= 48;
    if (above || below) {
      EXPECT_EQ(thrown.code, below ? 65 : 0) << need.box.top;
    }
    refused += thrown.code == 65;
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 80);
}

}  // namespace
}  // namespace trainer
