// Data layers whose pictures a GPU decodes, against those of the host.

#include "layers/gpu_decode_testing.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "trainer/net/states.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST_F(GpuDecodeTest, BatchesAreThoseOfTheHostWithinTwoLevels) {
  const std::string database = Database();
  const std::string transforms[] = {
      "crop_size: 6 mirror: true", "crop_size: 6 force_gray: true scale: 0.5",
      "crop_size: 5 mean_value: 104 mean_value: 117 mean_value: 123 force_color: true",
      "crop_size: 6 mixup: 1 mixup_classes: 11"};
  for (const std::string& transform : transforms) {
    for (const char* data : {"", "shuffle: true", "threads: 3"}) {
      const std::string text = NetOf(database, transform, data);
      Made host(text, *cpu_), gpu(text, *gpu_);
      EXPECT_GT(ExpectAlike(&host, &gpu, 5), 0) << "the GPU decoded nothing, " << transform;
    }
  }
}

TEST_F(GpuDecodeTest, ARunThatIsResumedWithinAnEpochGoesOnBitForBit) {
  const std::string text = NetOf(Database(), "crop_size: 6 mirror: true", "shuffle: true");
  Made whole(text, *gpu_), first(text, *gpu_), second(text, *gpu_);
  for (int batch = 0; batch < 4; ++batch) EXPECT_EQ(first.Next(), whole.Next());
  Restore(*second.net, 4, SaveLayerStates(*first.net));
  for (int batch = 0; batch < 5; ++batch) EXPECT_EQ(second.Next(), whole.Next());
}

TEST_F(GpuDecodeTest, TheNumberOfThreadsChangesNothing) {
  const std::string database = Database();
  Made one(NetOf(database, "crop_size: 6", "threads: 1"), *gpu_);
  Made four(NetOf(database, "crop_size: 6", "threads: 4"), *gpu_);
  for (int batch = 0; batch < 6; ++batch) EXPECT_EQ(one.Next(), four.Next());
}

TEST_F(GpuDecodeTest, ABadRecordEndsTheRunAsOnTheHost) {
  const std::string good = Picture("waves_half.jpg");
  std::string no_table = good;
  no_table[no_table.find("\xff\xc4") + 5] = '\x7f';
  const std::string bad[] = {good.substr(0, good.size() - 40), no_table, "no picture", ""};
  for (size_t i = 0; i < std::size(bad); ++i) {
    const std::string text = NetOf(Database({{5, bad[i]}}, Join("bad", i)), "crop_size: 6");
    Made host(text, *cpu_), gpu(text, *gpu_);
    ExpectAlike(&host, &gpu, 1);
    const auto error = ErrorOf([&] { host.Next(); });
    EXPECT_THAT(error.second, HasSubstr("record '00000005'"));
    EXPECT_EQ(ErrorOf([&] { gpu.Next(); }), error);
  }
}

TEST_F(GpuDecodeTest, TheNextGoodRecordComesInThePlaceOfABadOneAsOnTheHost) {
  SkipBadRecords(100);
  const std::string good = Picture("waves_half.jpg");
  std::string no_table = good;
  no_table[no_table.find("\xff\xc4") + 5] = '\x7f';
  const std::string database = Database({{1, good.substr(0, good.size() - 40)}, {6, no_table}});
  for (const char* data : {"", "threads: 3"}) {
    const std::string text = NetOf(database, "crop_size: 6 mirror: true", data);
    Made host(text, *cpu_), gpu(text, *gpu_);
    EXPECT_GT(ExpectAlike(&host, &gpu, 6), 0);
  }
}

TEST_F(GpuDecodeTest, PicturesThatAreResizedAtRandomStayOnTheHost) {
  const LogCollector log;
  const std::string text =
      NetOf(Database(), "crop_size: 5 random_resized_crop_param { min_area_ratio: 0.5 }");
  Made host(text, *cpu_), gpu(text, *gpu_);
  EXPECT_EQ(ExpectAlike(&host, &gpu, 3), 0);
  EXPECT_THAT(log.lines, Contains(HasSubstr(": of pictures that are resized at random ")));
}

TEST_F(GpuDecodeTest, FilesOfAListStayOnTheHost) {
  const LogCollector log;
  WriteBytes(folder_ / "a.jpg", Picture("rgb.jpg"));
  WriteBytes(folder_ / "list", "a.jpg 0\n");
  Made gpu("layer { name: 'd' type: 'ImageData' top: 'x' top: 'y' image_data_param { source: '" +
               (folder_ / "list") + "' root_folder: '" + (folder_ / "") + "' batch_size: 2 } }",
           *gpu_);
  gpu.Next();
  EXPECT_THAT(log.lines, Contains(HasSubstr(": each picture is in a file of its own; ")));
}

}  // namespace
}  // namespace trainer
