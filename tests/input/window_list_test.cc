#include "trainer/input/window_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Writes a grey 6x4 picture, whose pixel (x, y) is 10 * x + 60 * y, and a list of its windows.
class WindowListTest : public testing::Test {
 protected:
  WindowListTest() {
    std::string pixels;
    for (int i = 0; i < 24; ++i) pixels += static_cast<char>(10 * i);
    WriteBytes(folder_ / "my image.pgm", "P5 6 4 255\n" + pixels);
    List("1 1.0 1 1 2 2\n0 0.1 0 0 5 3\n3 0.6 2 0 3 1", 3);
  }
  void List(const std::string& windows, int count) {
    WriteBytes(list_, "# 0\nmy image.pgm\n3\n4\n6\n" + std::to_string(count) + "\n" + windows);
  }
  std::unique_ptr<BatchQueue> Make(const std::string& fields, const std::string& transform) {
    const std::string text = "name: \"d\"\ntype: \"WindowData\" top: \"x\" top: \"y\"\n" +
                             ("window_data_param { source: \"" + list_) + "\" root_folder: \"" +
                             (folder_ / "") + "\"\n" + fields + " }\ntransform_param { " +
                             transform + " }";
    return OpenWindowList(KeptLayer(text), {caffe::TRAIN, PhiloxKey{1, 2}, Rank{}});
  }
  Thrown Refusal(const std::string& fields, const std::string& transform = "crop_size: 2") {
    return Catch([&] { Make(fields, transform)->Next(); });
  }
  Thrown BadList(const std::string& text) {
    WriteBytes(list_, text);
    return Catch([&] { ReadWindowList(list_); });
  }

  TempFolder folder_;
  std::string list_ = folder_ / "windows.txt";
};

TEST_F(WindowListTest, ReadsBlocks) {
  WriteBytes(list_, "# 0\r\na b.jpg\r\n3\r\n4\r\n6\r\n1\r\n7 0.5 1 2 3 4\r\n# 1\nc\n1 1 1 0\n");
  const WindowList list = ReadWindowList(list_);
  ASSERT_EQ(list.images.size(), 2u);
  EXPECT_EQ(list.images[0].path, "a b.jpg");
  EXPECT_EQ(list.images[1].path, "c");
  ASSERT_EQ(list.windows.size(), 1u);
  EXPECT_EQ(list.windows[0].label, 7);
  EXPECT_EQ(list.windows[0].overlap, 0.5f);
  EXPECT_EQ(list.windows[0].BoxText(), "1 2 3 4");
  EXPECT_EQ(list.windows[0].line, 7);
}

TEST_F(WindowListTest, RefusesBadListsWithTheLine) {
  EXPECT_THAT(BadList(""), Refuses(ErrorCode::kData, "the list has no windows"));
  EXPECT_THAT(BadList("a.jpg"), Refuses(ErrorCode::kData, "must begin with '# index'"));
  EXPECT_THAT(BadList("# x"), Refuses(ErrorCode::kData, "found 'x', but the image's"));
  EXPECT_THAT(BadList("# 0\na\n3\n0\n6\n1\n"),
              Refuses(ErrorCode::kData, "windows.txt:4: the height is below 1"));
  EXPECT_THAT(BadList("# 0\na\n3\n4\n6\n99999999\n1 1 0 0 1 1\n"),
              Refuses(ErrorCode::kData, "the list ends, but a window's class"));
  EXPECT_THAT(BadList("# 0\na\n3\n4\n6\n1\n1 1 2 0 1 1\n"),
              Refuses(ErrorCode::kData,
                      "windows.txt:7: the window 2 0 1 1 of overlap 1 is not a valid box"));
  EXPECT_THAT(BadList("# 0\na\n3\n4\n6\n1\n1 nan 0 0 1 1\n"),
              Refuses(ErrorCode::kData, "windows.txt:7: the window 0 0 1 1 of overlap nan"));
}

TEST_F(WindowListTest, HandValuesOfAForegroundWindow) {
  List("1 1.0 1 1 2 2", 1);
  const auto source =
      Make("batch_size: 1 fg_fraction: 1 scale: 0.5", "crop_size: 2 mean_value: 10");
  EXPECT_EQ(source->shape(), (Shape{1, 3, 2, 2}));
  const Batch& batch = source->Next();
  // The pixels are 70 80 / 130 140, in three equal interleaved channels.
  EXPECT_THAT(Numbers(batch.output(0)),
              ElementsAre(30, 30, 30, 35, 35, 35, 60, 60, 60, 65, 65, 65));
  EXPECT_THAT(Numbers(batch.output(1)), ElementsAre(1));
}

TEST_F(WindowListTest, ABatchHoldsBackgroundThenForeground) {
  const auto source = Make("batch_size: 4 fg_fraction: 0.5", "crop_size: 2");
  bool seen[4] = {};
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> labels = Numbers(source->Next().output(1));
    EXPECT_EQ(labels[0], 0);
    EXPECT_EQ(labels[1], 0);
    for (const int at : {2, 3}) {
      ASSERT_TRUE(labels[at] == 1 || labels[at] == 3);
      seen[static_cast<int>(labels[at])] = true;
    }
  }
  EXPECT_TRUE(seen[1] && seen[3]);
}

TEST_F(WindowListTest, WhatIsOutsideThePictureIsZeroAfterTheMean) {
  List("1 1.0 0 0 1 1", 1);  // in the corner; 1 pixel of context doubles the box
  const auto source =
      Make("batch_size: 1 fg_fraction: 1 context_pad: 1", "crop_size: 4 mean_value: 250");
  const std::vector<float> data = Numbers(source->Next().output(0));
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 4; ++x) {
      const float value = data[static_cast<size_t>((y * 4 + x) * 3)];
      EXPECT_EQ(value == 0, x < 1 || y < 1) << x << " " << y << " " << value;
    }
  }
}

TEST(FitWindowTest, HandValues) {
  // The 2x2 box at (1, 1) has the centre (2, 2); doubled it covers 0 to 4, five pixels to four.
  const Window window{.x1 = 1, .y1 = 1, .x2 = 2, .y2 = 2};
  WindowRegion region = FitWindow(window, 100, 100, {.size = 4, .context_pad = 1}, false);
  EXPECT_THAT(
      (std::vector{region.from.left, region.from.top, region.from.width, region.from.height}),
      ElementsAre(0, 0, 5, 5));
  EXPECT_THAT((std::vector{region.left, region.top, region.width, region.height}),
              ElementsAre(0, 0, 4, 4));
  // A picture of 3x4 clips the box: columns 1 to 3 lose the last one.
  for (const bool mirror : {false, true}) {
    region = FitWindow(window, 4, 3, {.size = 10, .context_pad = 0, .square = true}, mirror);
    EXPECT_THAT(
        (std::vector{region.from.left, region.from.top, region.from.width, region.from.height}),
        ElementsAre(1, 1, 2, 3));
    EXPECT_EQ(region.left, mirror ? 3 : 0);
    EXPECT_EQ(region.width, 7);
    EXPECT_EQ(region.height, 10);
  }
}

TEST_F(WindowListTest, MirrorsHalfOfTheWindows) {
  List("1 1.0 1 1 2 2", 1);
  const auto source = Make("batch_size: 1 fg_fraction: 1", "crop_size: 2 mirror: true");
  int mirrored = 0;
  for (int i = 0; i < 40; ++i) {
    const std::vector<float> data = Numbers(source->Next().output(0));
    ASSERT_TRUE((data[0] == 70 && data[3] == 80) || (data[0] == 80 && data[3] == 70));
    mirrored += data[0] == 80;
  }
  EXPECT_GT(mirrored, 8);
  EXPECT_LT(mirrored, 32);
}

TEST_F(WindowListTest, TakesTransformParamsScaleWithAWarning) {
  List("1 1.0 1 1 2 2", 1);
  const LogLines log;
  const auto source = Make("batch_size: 1 fg_fraction: 1", "crop_size: 1 scale: 0.5");
  EXPECT_THAT(log.Get(), testing::Contains(HasSubstr("scaled by transform_param's 0.5")));
  EXPECT_THAT(Numbers(source->Next().output(0)), Each(52.5));  // the mean of 70 80 130 140
  const auto both = Make("batch_size: 1 fg_fraction: 1 scale: 2", "crop_size: 1 scale: 0.5");
  EXPECT_THAT(Numbers(both->Next().output(0)), Each(210));
}

TEST_F(WindowListTest, GoesOnBitForBitFromASavedPosition) {
  const char* fields = "batch_size: 3 fg_fraction: 0.5 context_pad: 1";
  const char* transform = "crop_size: 5 mirror: true";
  const auto whole = Make(fields, transform);
  for (int i = 0; i < 3; ++i) whole->Next();
  const std::string position = whole->position().Encode();
  const std::vector<float> want = Numbers(whole->Next().output(0));
  const auto resumed = Make(fields, transform);
  resumed->Restore(Position::Decode(position));
  EXPECT_EQ(Numbers(resumed->Next().output(0)), want);
}

TEST_F(WindowListTest, RefusesBadFieldsAndWindows) {
  EXPECT_THAT(Refusal("batch_size: 1", ""), Refuses(ErrorCode::kConfig, "crop_size is 0"));
  EXPECT_THAT(Refusal("batch_size: 1 context_pad: 1"),
              Refuses(ErrorCode::kConfig, "context_pad is 1 on both sides of a crop of 2 pixels"));
  EXPECT_THAT(Refusal("batch_size: 1 crop_mode: \"round\""),
              Refuses(ErrorCode::kConfig, "crop_mode is 'round'; it must be warp or square"));
  EXPECT_THAT(Refusal("batch_size: 1 fg_fraction: 1.5"),
              Refuses(ErrorCode::kConfig, "fg_fraction is 1.5; it must be 0 to 1"));
  EXPECT_THAT(Refusal("batch_size: 1", "crop_size: 2 mean_value: 1 mean_value: 2"),
              Refuses(ErrorCode::kConfig, "2 mean values for 3 channels"));
  EXPECT_THAT(Refusal("batch_size: 1", "crop_size: 2 mean_value: 1 mean_file: 'm'"),
              Refuses(ErrorCode::kConfig, "mean_file and mean_value cannot both be given"));
  EXPECT_THAT(Refusal("batch_size: 1", "crop_size: 2 img_rand_resize_lower: 3"),
              Refuses(ErrorCode::kConfig, "img_rand_resize_lower is not supported"));
  EXPECT_THAT(Refusal(""), Refuses(ErrorCode::kConfig, "batch_size is 0"));
  EXPECT_THAT(Refusal("batch_size: 4 bg_threshold: 0.05"),
              Refuses(ErrorCode::kData,
                      "no background windows, but each batch needs 3: none has an overlap below "
                      "bg_threshold = 0.05"));
  List("0 1.0 1 1 2 2", 1);
  EXPECT_THAT(
      Refusal("batch_size: 1"),
      Refuses(ErrorCode::kData, "windows.txt:7: a foreground window (overlap 1) of class 0"));
  List("0 0 1 1 2 9", 1);
  EXPECT_THAT(Refusal("batch_size: 1"),
              Refuses(ErrorCode::kData,
                      "windows.txt:7: the window 1 1 2 9 reaches outside 'my "
                      "image.pgm', which has 6x4 pixels"));
}

}  // namespace
}  // namespace trainer
