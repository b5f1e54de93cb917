#include "trainer/inference/predict/image_preprocessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "inference/small_net.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/inference/predict/class_names.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ImagePreprocessorTest : public testing::Test {
 protected:
  // Writes a grey image of `height` x `width` whose pixels count up from `first`.
  std::string Grey(const std::string& name, int height, int width, int first = 0) const {
    std::string pixels(static_cast<size_t>(height * width), '\0');
    std::iota(pixels.begin(), pixels.end(), static_cast<char>(first));
    WriteText(folder_ / name,
              "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n" + pixels);
    return folder_ / name;
  }
  std::string Mean(std::vector<int> dims, const std::vector<float>& values) const {
    caffe::BlobProto mean;
    for (const int dim : dims) mean.mutable_shape()->add_dim(dim);
    for (const float value : values) mean.add_data(value);
    WriteText(folder_ / "mean.binaryproto", mean.SerializeAsString());
    return folder_ / "mean.binaryproto";
  }
  std::vector<float> Read(const Shape& input, const PreprocessOptions& options,
                          const std::string& path) const {
    ImagePreprocessor reader(input, options);
    std::vector<float> out;
    reader.Read(path, &out);
    return out;
  }
  std::pair<ErrorCode, std::string> Refusal(const Shape& input, const PreprocessOptions& options) {
    return ErrorOf([&] { ImagePreprocessor(input, options); });
  }

  TempFolder folder_;
};

TEST_F(ImagePreprocessorTest, ColoursComeAsBlueGreenRed) {
  WriteText(folder_ / "c.ppm", std::string("P6 2 1 255\n\x01\x02\x03\x0b\x0c\x0d"));
  EXPECT_THAT(Read({1, 3, 1, 2}, {}, folder_ / "c.ppm"), ElementsAre(3, 13, 2, 12, 1, 11));
  EXPECT_THAT(Read({1, 3, 1, 2}, {}, Grey("g.pgm", 1, 2, 7)), ElementsAre(7, 8, 7, 8, 7, 8));
  // 0.299 * 1 + 0.587 * 2 + 0.114 * 3 is 1.8; the second pixel is 11.8.
  EXPECT_THAT(Read({1, 1, 1, 2}, {}, folder_ / "c.ppm"), ElementsAre(2, 12));
}

TEST_F(ImagePreprocessorTest, All16BitsOfAnImageAreUsed) {
  Image image{1, 2, 4, {}};
  for (const int number : {1000, 2000, 3000, 4000, 1000, 2000, 3000, 4000}) {
    image.floats.push_back(static_cast<float>(number) / 257);
  }
  WriteText(folder_ / "deep.png", EncodeImage(image, "png"));
  // 257 of 65535 equals 1 of 255.
  EXPECT_THAT(Read({1, 1, 2, 4}, {.mean_values = {2}, .scale = 257}, folder_ / "deep.png"),
              testing::Pointwise(testing::FloatNear(0.01f), {486.0f, 1486.0f, 2486.0f, 3486.0f,
                                                             486.0f, 1486.0f, 2486.0f, 3486.0f}));
  EXPECT_THAT(Read({1, 1, 1, 2}, {.scale = 257}, folder_ / "deep.png"),
              testing::Pointwise(testing::FloatNear(0.01f), {1500.0f, 3500.0f}));
}

// Training cropped images that kept their proportions, so no image may be stretched here.
TEST_F(ImagePreprocessorTest, TheShorterSideIsResizedInProportion) {
  PreprocessOptions options;
  options.short_side = 2;
  ImagePreprocessor reader({1, 1, 2, 2}, options);
  std::vector<float> out;
  reader.Read(Grey("wide.pgm", 2, 4), &out);  // middle columns of rows 0 1 2 3 and 4 5 6 7
  EXPECT_THAT(out, ElementsAre(1, 2, 5, 6));
  out.clear();
  reader.Read(Grey("tall.pgm", 4, 2), &out);
  EXPECT_THAT(out, ElementsAre(2, 3, 4, 5));
  out.clear();
  WriteText(folder_ / "large.pgm", "P5 8 4 255\n" + std::string(32, '\x07'));
  reader.Read(folder_ / "large.pgm", &out);
  EXPECT_THAT(out, ElementsAre(7, 7, 7, 7));
  options.oversample = true;
  EXPECT_EQ(Read({1, 1, 2, 2}, options, Grey("ten.pgm", 2, 4)).size(), 40u);
  options.height = options.width = 3;
  EXPECT_THAT(Refusal({1, 1, 2, 2}, options).second, HasSubstr("cannot both be given"));
  PreprocessOptions small;
  small.short_side = 1;
  EXPECT_EQ(Refusal({1, 1, 2, 2}, small).second,
            "images of 1x1 are smaller than the net's input, 2x2; give a larger --resize_short");
}

TEST_F(ImagePreprocessorTest, TheMeanComesBetweenTheTwoScales) {
  PreprocessOptions options;
  options.mean_values = {1};
  options.raw_scale = 510;  // doubles the values
  options.scale = 0.5f;
  EXPECT_THAT(Read({1, 1, 1, 3}, options, Grey("g.pgm", 1, 3, 10)), ElementsAre(9.5, 10.5, 11.5));
}

TEST_F(ImagePreprocessorTest, TheMiddleOfTheResizedPictureIsCutOut) {
  PreprocessOptions options;
  options.height = options.width = 4;
  const std::string path = Grey("g.pgm", 4, 4);
  EXPECT_THAT(Read({1, 1, 2, 2}, options, path), ElementsAre(5, 6, 9, 10));
  EXPECT_THAT(Read({1, 1, 1, 3}, options, path), ElementsAre(4, 5, 6)) << "rounded up and left";
  // After resizing to 2 x 2, each pixel is the mean of four.
  EXPECT_THAT(Read({1, 1, 2, 2}, {}, path), ElementsAre(3, 5, 11, 13));
}

TEST_F(ImagePreprocessorTest, TenPartsAreCornersAndMiddleAndTheseMirrored) {
  PreprocessOptions options;
  options.height = 3;
  options.width = 4;
  options.oversample = true;
  ImagePreprocessor reader({5, 1, 1, 2}, options);
  EXPECT_EQ(reader.crops(), 10);
  EXPECT_THAT(Read({5, 1, 1, 2}, options, Grey("g.pgm", 3, 4)),
              ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 5, 6,  //
                          1, 0, 3, 2, 9, 8, 11, 10, 6, 5));
}

TEST_F(ImagePreprocessorTest, AMeanFileCountsAsItsSizeSays) {
  PreprocessOptions options;
  options.height = 1;
  options.width = 4;
  const std::string path = Grey("g.pgm", 1, 4, 100);
  options.mean_file = Mean({1, 1, 1, 4}, {0, 10, 20, 30});
  EXPECT_THAT(Read({1, 1, 1, 2}, options, path), ElementsAre(91, 82)) << "off the whole image";
  options.mean_file = Mean({1, 1, 1, 2}, {1, 2});
  EXPECT_THAT(Read({1, 1, 1, 2}, options, path), ElementsAre(100, 100)) << "off the part";
  options.mean_file = Mean({1, 1, 5}, {1, 2, 3, 4, 5});
  EXPECT_THAT(Read({1, 1, 1, 2}, options, path), ElementsAre(98, 99)) << "its mean";
  options.oversample = true;
  options.mean_file = Mean({1, 1, 1, 4}, {0, 10, 20, 30});
  const std::vector<float> parts = Read({1, 1, 1, 2}, options, path);
  EXPECT_THAT(std::vector(parts.begin() + 8, parts.begin() + 14),
              ElementsAre(91, 82, 91, 100, 73, 82))
      << "mirrored with its pixel";
}

TEST_F(ImagePreprocessorTest, RefusesWhatDoesNotFit) {
  PreprocessOptions options;
  EXPECT_THAT(Refusal({1, 2, 4, 4}, {}).second, HasSubstr("1 channel (grey) or 3 (colour)"));
  EXPECT_EQ(Refusal({1, 3}, {}).first, ErrorCode::kConfig);
  options.height = 3;
  EXPECT_THAT(Refusal({1, 3, 4, 4}, options).second,
              HasSubstr("images of 3x4 are smaller than the net's input, 4x4"));
  options = {};
  options.mean_values = {1, 2};
  EXPECT_THAT(Refusal({1, 3, 4, 4}, options).second,
              HasSubstr("2 values, but the net's input has 3 channels"));
  options.mean_file = Mean({1, 1, 4, 4}, std::vector<float>(16, 1));
  EXPECT_THAT(Refusal({1, 3, 4, 4}, options).second, HasSubstr("cannot both be given"));
  options.mean_values.clear();
  EXPECT_THAT(Refusal({1, 3, 4, 4}, options).second,
              HasSubstr("the mean is 1x4x4, but the net has 3 channels"));
  EXPECT_EQ(Refusal({1, 3, 4, 4}, options).first, ErrorCode::kUsage);
  const auto [missing, text] = ErrorOf([&] { Read({1, 3, 4, 4}, {}, folder_ / "none.png"); });
  EXPECT_EQ(missing, ErrorCode::kNoInput);
  WriteText(folder_ / "text.png", "no image");
  const auto [bad, message] = ErrorOf([&] { Read({1, 3, 4, 4}, {}, folder_ / "text.png"); });
  EXPECT_EQ(bad, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("text.png: the file is not an image"));
}

TEST_F(ImagePreprocessorTest, ASourceFillsBatchesAcrossPictures) {
  const SmallNet small(
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 1 dim: 1 dim: 1 "
      "} } }");
  PreprocessOptions options;
  options.width = 2;
  options.height = 1;
  options.oversample = true;
  const auto source = MakeImageSource(
      ImagePaths({Grey("a.pgm", 1, 2, 1), Grey("b.pgm", 1, 2, 5)}, ""), options, *small.net);
  std::vector<float> all;
  std::vector<int64_t> real;
  for (int64_t n; (n = source->Fill(*small.net)) > 0;) {
    real.push_back(n);
    const std::vector<float> batch = small.Get("x");
    all.insert(all.end(), batch.begin(), batch.begin() + n);
  }
  EXPECT_THAT(real, ElementsAre(4, 4, 4, 4, 4));
  EXPECT_THAT(all, ElementsAre(1, 2, 1, 2, 1, 1, 2, 1, 2, 1, 5, 6, 5, 6, 5, 5, 6, 5, 6, 5));
  const SmallNet two(
      "layer { name: 'in' type: 'Input' top: 'x' top: 'y' input_param { shape { "
      "dim: 1 } } }");
  EXPECT_THAT(ErrorOf([&] { ImageInput(*two.net); }).second, HasSubstr("has 2 inputs"));
}

TEST_F(ImagePreprocessorTest, NamesOfClassesAreOneALine) {
  WriteText(folder_ / "names", "tabby cat\r\ndog \n\nlast\n\n");
  EXPECT_THAT(ReadClassNames(folder_ / "names", 4), ElementsAre("tabby cat", "dog", "", "last"));
  const auto [code, message] = ErrorOf([&] { ReadClassNames(folder_ / "names", 5); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(message, HasSubstr("4 names for 5"));
  std::filesystem::create_directories(folder_ / "photos/dog");
  std::filesystem::create_directories(folder_ / "photos/cat");
  EXPECT_THAT(ReadClassNames(folder_ / "photos", 2), ElementsAre("cat", "dog"));
  EXPECT_THAT(ErrorOf([&] { ReadClassNames(folder_ / "photos", 3); }).second,
              HasSubstr("the folder has 2 subfolders for 3 classes"));
  EXPECT_EQ(ErrorOf([&] { ReadClassNames(folder_ / "none", 5); }).first, ErrorCode::kNoInput);
}

}  // namespace
}  // namespace trainer
