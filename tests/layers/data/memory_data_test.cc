#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "support/layer_checks.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(MemoryDataTest, HasShapesButRefusesToRun) {
  LayerRunner data(
      R"(type: "MemoryData" memory_data_param { batch_size: 2 channels: 3 height: 4 width: 5 })",
      {}, {.outputs = 2});
  EXPECT_EQ(data.OutputShape(0), Shape({2, 3, 4, 5}));
  EXPECT_EQ(data.OutputShape(1), Shape({2}));
  EXPECT_THAT(Catch([&] { data.Forward(); }),
              Refuses(ErrorCode::kConfig, "use Data or ImageData to read images from the disk"));
}

TEST(MemoryDataTest, HandValuesOfAFile) {
  const TempFolder folder;
  WriteBytes(folder / "images", std::string("\1\2\3\4\5\6\7\10", 8));
  WriteBytes(folder / "labels", "3\n4\n");
  LayerRunner data(
      "type: \"MemoryData\" memory_data_param { batch_size: 1 channels: 2 height: 1 "
      "width: 2 source: '" +
          (folder / "images") + "' labels: '" + (folder / "labels") +
          "' } transform_param { scale: 2 }",
      {}, {.outputs = 2});
  data.Forward();
  EXPECT_THAT(data.Output(0), testing::ElementsAre(2, 4, 6, 8));  // (N, C, H, W)
  EXPECT_THAT(data.Output(1), testing::ElementsAre(3));
  data.Forward();
  EXPECT_THAT(data.Output(0), testing::ElementsAre(10, 12, 14, 16));
}

TEST(MemoryDataTest, RefusesSizesBelowOne) {
  EXPECT_THAT(
      RefusalOf(R"(type: "MemoryData" memory_data_param { batch_size: 2 channels: 3
                           height: 0 width: 5 })",
                {}, {.outputs = 2}),
      HasSubstr("net.prototxt:4:28: layer 'it' (MemoryData): height is 0; it must be 1 to"));
  EXPECT_THAT(RefusalOf(R"(type: "MemoryData")", {}, {.outputs = 2}),
              HasSubstr("layer 'it' (MemoryData): batch_size is 0; it must be 1 to 16777216"));
}

}  // namespace
}  // namespace trainer
