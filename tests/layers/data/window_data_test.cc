#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WindowDataTest, HandValuesOfABackgroundAndAForegroundWindow) {
  const TempFolder folder;
  const std::string list = folder / "windows.txt";
  WriteBytes(folder / "a.pgm", "P5 3 1 255\n\x01\x02\x03");
  WriteBytes(list, "# 0\n" + (folder / "a.pgm") + "\n3\n1\n3\n2\n5 0.9 1 0 1 0\n4 0.1 2 0 2 0\n");
  LayerRunner data("type: \"WindowData\" window_data_param { source: '" + list +
                       "' batch_size: 2 fg_fraction: 0.5 scale: 2 } "
                       "transform_param { crop_size: 1 mean_value: 1 }",
                   {}, {.outputs = 2});
  EXPECT_EQ(data.OutputShape(0), Shape({2, 3, 1, 1}));
  data.Forward();
  EXPECT_THAT(data.Output(0), ElementsAre(4, 4, 4, 2, 2, 2));
  EXPECT_THAT(data.Output(1), ElementsAre(0, 5));
  EXPECT_THAT(data.layer().SaveState(), HasSubstr("window 2"));
}

TEST(WindowDataTest, HandValuesOfAnImageComeInPlainOrder) {
  const TempFolder folder;
  const std::string list = folder / "windows.txt";
  WriteBytes(folder / "a.ppm", "P6 2 2 255\n\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c");
  WriteBytes(list, "# 0\n" + (folder / "a.ppm") + "\n3\n2\n2\n2\n5 0.9 0 0 1 1\n4 0.1 0 0 1 1\n");
  LayerRunner data("type: \"WindowData\" window_data_param { source: '" + list +
                       "' batch_size: 1 fg_fraction: 1 } transform_param { crop_size: 2 }",
                   {}, {.outputs = 2});
  data.Forward();
  EXPECT_THAT(data.Output(0), ElementsAre(3, 6, 9, 12, 2, 5, 8, 11, 1, 4, 7, 10));
}

TEST(WindowDataTest, RefusesNoCropSize) {
  const TempFolder folder;
  const std::string list = folder / "w";
  WriteBytes(list, "");
  EXPECT_THAT(
      RefusalOf("type: \"WindowData\" window_data_param { source: '" + list + "' batch_size: 1 }",
                {}, {.outputs = 2}),
      HasSubstr("layer 'it' (WindowData): crop_size is 0; it must be 1 to"));
}

}  // namespace
}  // namespace trainer
