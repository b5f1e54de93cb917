#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_data.h"
#include "support/layer_checks.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

const NotChecked kNoValues("MemoryData", LayerCheck::kValues, "is for planning only");
const NotChecked kNoImages("MemoryData", LayerCheck::kImages, "is for planning only");

TEST(MemoryDataTest, HasShapesButRefusesToRun) {
  LayerRunner data(
      R"(type: "MemoryData" memory_data_param { batch_size: 2 channels: 3 height: 4 width: 5 })",
      {}, {.outputs = 2});
  EXPECT_EQ(data.OutputShape(0), Shape({2, 3, 4, 5}));
  EXPECT_EQ(data.OutputShape(1), Shape({2}));
  EXPECT_THAT(Catch([&] { data.Forward(); }),
              Refuses(ErrorCode::kConfig,
                      "use Data or ImageData to read images from the disk, or "
                      "Input for a net without data"));
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
