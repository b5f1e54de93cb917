#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Writes two grey pictures of 2x1 pixels: 1 2, and 3 4.
class ImageDataTest : public testing::Test {
 protected:
  ImageDataTest() {
    WriteBytes(folder_ / "a.pgm", "P5 2 1 255\n\x01\x02");
    WriteBytes(folder_ / "b c.pgm", "P5 2 1 255\n\x03\x04");
    WriteBytes(list_, "a.pgm 7\nb c.pgm 8\n");
  }
  std::string Layer(const std::string& fields, const std::string& more = "") const {
    return "type: \"ImageData\"\nimage_data_param { source: '" + list_ + "' root_folder: '" +
           (folder_ / "") + "' " + fields + " }\n" + more;
  }

  TempFolder folder_;
  std::string list_ = folder_ / "list.txt";
};

TEST_F(ImageDataTest, HandValuesComeInNchwOrderAndGoRound) {
  LayerRunner data(Layer("batch_size: 2"), {}, {.outputs = 2});
  EXPECT_EQ(data.OutputShape(0), Shape({2, 3, 1, 2}));
  EXPECT_EQ(data.OutputShape(1), Shape({2}));
  for (int pass = 0; pass < 2; ++pass) {
    data.Forward();
    EXPECT_THAT(data.Output(0), ElementsAre(1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4));
    EXPECT_THAT(data.Output(1), ElementsAre(7, 8));
  }
}

TEST_F(ImageDataTest, HandValuesOfATransform) {
  LayerRunner data(Layer("is_color: false", "transform_param { scale: 0.5 mean_value: 2 }"), {},
                   {.outputs = 2});
  data.Forward();
  EXPECT_THAT(data.Output(0), ElementsAre(-0.5, 0));
}

TEST_F(ImageDataTest, HandValuesOfSeveralLabels) {
  WriteBytes(list_, "a.pgm 7 0.25 -1\nb c.pgm 8 0.5 1\n");
  LayerRunner data(Layer("batch_size: 2 is_color: false"), {}, {.outputs = 2});
  EXPECT_EQ(data.OutputShape(1), Shape({2, 3}));
  data.Forward();
  EXPECT_THAT(data.Output(0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(data.Output(1), ElementsAre(7, 0.25f, -1, 8, 0.5f, 1));
}

TEST_F(ImageDataTest, ASavedPositionGoesOnWithTheNextImage) {
  const std::string layer = Layer("is_color: false shuffle: true");
  LayerRunner first(layer, {}, {.outputs = 2});
  first.Forward();
  first.Forward();
  first.Forward();
  const std::string state = first.layer().SaveState();
  first.Forward();
  LayerRunner second(layer, {}, {.outputs = 2});
  second.layer().RestoreState(state);
  second.Forward();
  EXPECT_EQ(second.Output(0), first.Output(0));
  EXPECT_EQ(second.layer().SaveState(), first.layer().SaveState());
}

TEST_F(ImageDataTest, RefusesOneTopAndAMissingList) {
  EXPECT_THAT(RefusalOf(Layer(""), {}), HasSubstr("top"));
  EXPECT_THAT(RefusalOf("type: \"ImageData\" image_data_param { source: 'no such list' }", {},
                        {.outputs = 2}),
              HasSubstr("no such list"));
}

}  // namespace
}  // namespace trainer
