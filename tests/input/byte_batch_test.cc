// Tests batches that hold images as bytes, and the conversion of the bytes to values.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/input/batch.h"
#include "trainer/input/source.h"
#include "trainer/input/transform.h"

namespace trainer {
namespace {

constexpr int kHeight = 9, kWidth = 11;

// Returns element i of an image (H, W, C), by the definition of Normalization.
float NumberOf(const Normalization& numbers, const CropOffset& window, const ImageShape& image,
               const std::vector<uint8_t>& pixels, int64_t i) {
  const int64_t c = i % image.channels, w = i / image.channels % image.width;
  const int64_t h = i / (image.channels * image.width);
  float mean = 0;
  if (numbers.mean_plane > 0) {
    const int64_t column = window.mirrored != 0 ? image.width - 1 - w : w;
    mean = numbers.mean[static_cast<size_t>(c * numbers.mean_plane + window.start +
                                            h * numbers.mean_row + column)];
  } else if (!numbers.mean.empty()) {
    mean = numbers.mean[static_cast<size_t>(c) % numbers.mean.size()];
  }
  return (static_cast<float>(pixels[static_cast<size_t>(i)]) - mean) * numbers.scale;
}

TEST(ByteBatchTest, AWindowOfBytesAndItsNumbersAreWhatTheTransformWrites) {
  const TempFolder folder;
  for (const int channels : {1, 2, 3}) {
    std::string bytes;
    caffe::BlobProto mean;
    for (const int dim : {1, channels, kHeight, kWidth}) mean.mutable_shape()->add_dim(dim);
    for (int i = 0; i < channels * kHeight * kWidth; ++i) {
      bytes += static_cast<char>(i * 37 + 11);
      mean.add_data(static_cast<float>(i % 53) * 1.1f);
    }
    WriteBytes(folder / "mean", mean.SerializeAsString());
    const std::string file = "mean_file: '" + (folder / "mean") + "' ";
    DatumView datum;
    datum.channels = channels;
    datum.height = kHeight;
    datum.width = kWidth;
    datum.bytes = bytes;
    for (const std::string& fields :
         {std::string("scale: 0.017 "), std::string("mean_value: 104.5 crop_size: 5 mirror: true "),
          file + "scale: 0.3 crop_size: 6 mirror: true ", file + "mirror: true ",
          std::string("crop_size: 4 mirror: true random_resize_param { min_size: 6 max_size: 8 } "),
          std::string("mean_value: 1 mean_value: 2.5 mean_value: 3.7 ")}) {
      if (fields.find("2.5") != fields.npos && channels != 3) continue;
      const Transform transform(
          KeptLayer("name: 'd' type: 'Data' transform_param { " + fields + " }"), caffe::TRAIN,
          PhiloxKey{17, 3});
      const ImageShape image = transform.OutShape(datum, "'r'");
      const Normalization numbers = transform.normalization();
      for (uint64_t number = 0; number < 20; ++number) {
        std::vector<float> whole(static_cast<size_t>(image.Count()));
        std::vector<uint8_t> pixels(whole.size());
        transform.ToFloats(datum, number, whole.data());
        CropOffset window;
        transform.CropBytes(datum, number, pixels.data(), &window);
        for (int64_t i = 0; i < image.Count(); ++i) {
          ASSERT_EQ(NumberOf(numbers, window, image, pixels, i), whole[static_cast<size_t>(i)])
              << fields << channels << " channels, record " << number << ", element " << i;
        }
      }
    }
  }
}

TEST(ByteBatchTest, BytesStandForTheFirstOutputAlone) {
  const Shape shapes[] = {{4, 3, 5, 6}, {4}};
  const Batch numbers = MakeBatch(shapes);
  EXPECT_FALSE(numbers.has_bytes());
  EXPECT_EQ(numbers.output(0).size(), 360u);
  const Batch bytes = MakeBatch(shapes, nullptr, PixelType::kByte);
  EXPECT_TRUE(bytes.has_bytes());
  EXPECT_EQ(bytes.num_outputs(), 2);
  EXPECT_EQ(bytes.output(0).size(), 0u);
  EXPECT_EQ(bytes.output(1).size(), 4u);
  EXPECT_EQ(bytes.pixels().size(), 360u);
  EXPECT_EQ(bytes.crop_offsets().size(), 4u);
}

TEST(ByteBatchTest, MovingABatchCopiesNothingWhateverMemoryItIsIn) {
  std::pmr::monotonic_buffer_resource memory;
  const Shape shapes[] = {{4, 3, 5, 6}, {4}};
  Batch from = MakeBatch(shapes, &memory, PixelType::kByte), to;
  const void* const pixels = from.pixels().data();
  const void* const labels = from.output(1).data();
  to = std::move(from);
  EXPECT_EQ(to.pixels().data(), pixels);
  EXPECT_EQ(to.output(1).data(), labels);
}

TEST(ByteBatchTest, SourcesOfBytesGiveThemWhereTheyAreAskedFor) {
  const TempFolder folder;
  WriteDb("LMDB", folder / "db", NumberedRecords(5));
  const LayerSpec& layer = KeptLayer(
      Join("name: 'd' type: 'Data' top: 'x' top: 'y' data_param { backend: LMDB batch_size: 2 "
           "source: '",
           folder / "db", "' } transform_param { mean_value: 1.5 scale: 2 }"));
  InputEnv env;
  EXPECT_EQ(OpenDatabase(layer, env)->normalization(), nullptr);
  env.bytes = true;
  const auto source = OpenDatabase(layer, env);
  ASSERT_NE(source->normalization(), nullptr);
  EXPECT_EQ(source->normalization()->scale, 2);
  EXPECT_THAT(source->normalization()->mean, testing::ElementsAre(1.5f));
  EXPECT_THAT(source->Next().pixels(), testing::ElementsAre(0, 1));
  const Batch& second = source->Next();
  EXPECT_THAT(second.pixels(), testing::ElementsAre(2, 3));
  EXPECT_THAT(second.output(1), testing::ElementsAre(2, 3));
}

}  // namespace
}  // namespace trainer
