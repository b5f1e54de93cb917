#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_spec.h"
#include "trainer/inference/export/export_net.h"
#include "trainer/storage/record_writer.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class PreprocessingFlagsTest : public testing::Test {
 protected:
  // Writes grey images of these sizes, (height, width), and their list.
  void WriteImages(const std::vector<std::pair<int, int>>& sizes) const {
    std::string list;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const auto [height, width] = sizes[i];
      const std::string name = folder_ / Join(i, ".pgm");
      WriteText(name, Join("P5 ", width, " ", height, " 255\n",
                           std::string(static_cast<size_t>(height * width), 'x')));
      list += Join(name, " 0\n");
    }
    WriteText(folder_ / "list.txt", list);
  }

  void WriteDatabase(const std::vector<std::pair<int, int>>& sizes) const {
    const std::unique_ptr<RecordWriter> writer = OpenRecordWriter({.path = folder_ / "lmdb"});
    for (size_t i = 0; i < sizes.size(); ++i) {
      caffe::Datum datum;
      datum.set_channels(1);
      datum.set_height(sizes[i].first);
      datum.set_width(sizes[i].second);
      datum.set_data(std::string(static_cast<size_t>(sizes[i].first * sizes[i].second), 'x'));
      datum.set_label(0);
      StoredRecord record = {NumberedKey(static_cast<int64_t>(i)), datum.SerializeAsString()};
      writer->Prepare(&record);
      writer->Put(record);
    }
    writer->Finish();
  }

  // Returns the comment for a net with this data layer.
  std::string Comment(const std::string& type, const std::string& fields) const {
    WriteText(folder_ / "net.prototxt",
              Join("layer { name: \"d\" type: \"", type, "\" top: \"data\" top: \"label\" ", fields,
                   " } layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\" "
                   "inner_product_param { num_output: 2 } } layer { name: \"loss\" "
                   "type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: \"loss\" }"));
    ExportOptions options;
    options.spec.state.set_phase(caffe::TEST);
    options.shape = Shape({1, 4, 4});
    const NetSpec net = LoadNet(folder_ / "net.prototxt");
    return ExportNet(net, *MakeCpuDevice(1), options).preprocessing;
  }
  std::string OfList(const std::string& transform, const std::string& fields = "") const {
    return Comment("ImageData",
                   Join("image_data_param { source: \"", folder_ / "list.txt",
                        "\" is_color: false ", fields, " } transform_param { ", transform, " }"));
  }
  std::string OfDatabase(const std::string& transform) const {
    return Comment("Data", Join("data_param { source: \"", folder_ / "lmdb",
                                "\" backend: LMDB } transform_param { ", transform, " }"));
  }

  TempFolder folder_;
};

TEST_F(PreprocessingFlagsTest, TheCommentResizesToTheCommonSizeOfTheRecords) {
  WriteImages({{6, 8}, {6, 8}});
  EXPECT_THAT(OfList("crop_size: 4"), HasSubstr("trainer predict --resize=6,8"));
  WriteDatabase({{5, 7}, {5, 7}});
  EXPECT_THAT(OfDatabase("crop_size: 4 scale: 0.5"),
              HasSubstr("trainer predict --resize=5,7 --scale=0.5"));
}

TEST_F(PreprocessingFlagsTest, RecordsThatKeptTheirProportionsShareTheShorterSide) {
  WriteImages({{6, 8}, {9, 6}, {6, 6}});
  EXPECT_THAT(OfList("crop_size: 4"), HasSubstr("trainer predict --resize_short=6"));
  WriteDatabase({{7, 5}, {5, 9}});
  EXPECT_THAT(OfDatabase("crop_size: 4"), HasSubstr("trainer predict --resize_short=5"));
}

TEST_F(PreprocessingFlagsTest, FieldsThatResizeWinOverTheSizesOfTheFiles) {
  WriteImages({{6, 8}, {9, 10}});
  EXPECT_THAT(OfList("crop_size: 4", "new_height: 7 new_width: 5"), HasSubstr("--resize=7,5"));
  EXPECT_THAT(OfList("crop_size: 4", "short_side: 5"), HasSubstr("--resize_short=5"));
  EXPECT_THAT(OfList("crop_size: 7 random_resized_crop_param { }"), HasSubstr("--resize_short=8"));
  EXPECT_THAT(OfList("crop_size: 7 random_resized_crop_param { test_size: 9 }"),
              HasSubstr("--resize_short=9"));
}

TEST_F(PreprocessingFlagsTest, ASizeThatNothingGivesIsAnError) {
  WriteImages({{6, 8}, {9, 10}});
  EXPECT_THAT(OfList("crop_size: 4"), HasSubstr("trainer predict --resize=H,W (H,W: "));
  EXPECT_THAT(OfDatabase("crop_size: 4"), HasSubstr("trainer predict --resize=H,W (H,W: "));
  EXPECT_THAT(OfList(""), StartsWith("Images go in as they are"));
}

}  // namespace
}  // namespace trainer
