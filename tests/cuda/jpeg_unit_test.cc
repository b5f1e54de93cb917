// Pictures that nvJPEG decodes, on an emulated GPU.

#include "cuda/nvjpeg.h"
#include "jpeg_testing.h"
#include "support/log_collector.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

using JpegUnitTest = NvjpegTest;

TEST_F(JpegUnitTest, PicturesAreThoseOfTheHostWithinRounding) {
  const auto gpu = MakeGpuDevice(Asked());
  const auto unit = UnitsOf(*gpu).MakeJpegUnit();
  const std::vector<std::string> files = {Jpeg(40, 56, 3, 0), Jpeg(33, 17, 3, 1),
                                          Jpeg(9, 100, 3, 2)};
  for (const Colors colors : {Colors::kColor, Colors::kGray}) {
    auto tasks = TasksOf(files, colors);
    EXPECT_EQ(unit->Decode(tasks), 3u);
    for (const JpegTask& task : tasks) ExpectPicture(task, colors);
  }
  auto gray = TasksOf({Jpeg(20, 30, 1, 3)}, Colors::kAsStored);
  EXPECT_EQ(unit->Decode(gray), 1u);
  ExpectPicture(gray[0], Colors::kAsStored);
  EXPECT_EQ(emulated_gpu::Count().decoded_pictures, 7);
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

TEST_F(JpegUnitTest, OneThatTheLibraryRefusesLeavesTheOthersAlone) {
  const auto gpu = MakeGpuDevice(Asked());
  const auto unit = UnitsOf(*gpu).MakeJpegUnit();
  std::string bad = Jpeg(40, 56, 3, 0);
  auto tasks = TasksOf({Jpeg(20, 30, 3, 1), bad, Jpeg(24, 18, 3, 2)});
  SpoilTable(&bad);
  tasks[1].bytes = bad;
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(unit->Decode(tasks), 3u);
    ExpectPicture(tasks[0]);
    EXPECT_EQ(tasks[1].pixels, nullptr);
    ExpectPicture(tasks[2]);
  }
}

TEST_F(JpegUnitTest, OneThatTheLibrarySilentlyLeavesOutIsNotTaken) {
  OnMachine({.leaves_out = 1});
  const auto gpu = MakeGpuDevice(Asked());
  const auto unit = UnitsOf(*gpu).MakeJpegUnit();
  const std::string a = Jpeg(20, 30, 3, 1), b = Jpeg(20, 31, 3, 2);
  auto tasks = TasksOf({a, b});
  EXPECT_EQ(unit->Decode(tasks), 2u);
  ExpectPicture(tasks[0]);
  EXPECT_EQ(tasks[1].pixels, nullptr);
}

TEST_F(JpegUnitTest, GoesThroughAsManyAsItHasMemoryForAndPassesOverTheRest) {
  const auto gpu = MakeGpuDevice(Asked());
  const auto unit = UnitsOf(*gpu).MakeJpegUnit();
  const std::string small = Jpeg(20, 30, 3, 1);
  std::vector<JpegTask> tasks(4);
  tasks[1] = {small, {3, 1 << 13, 1 << 13}, {}};  // by its markers larger than the unit's memory
  tasks[2] = {small, {3, 20, 30}, {}};
  EXPECT_EQ(unit->Decode(tasks), 4u);
  EXPECT_EQ(tasks[0].pixels, nullptr) << "nothing to do";
  EXPECT_EQ(tasks[1].pixels, nullptr);
  ExpectPicture(tasks[2]);

  // 64 MiB hold two of this size, which is wrong, so that nothing is in their last rows.
  const PictureForm large{3, 2400, 3200};
  std::vector<JpegTask> five = {{small, {3, 20, 30}, {}},
                                {small, large, {}},
                                {small, large, {}},
                                {small, large, {}},
                                {small, large, {}}};
  EXPECT_EQ(unit->Decode(five), 3u);
  ExpectPicture(five[0]);
  EXPECT_EQ(five[1].pixels, nullptr);
}

TEST_F(JpegUnitTest, AGpuWithoutAnEngineDecodesByItsKernels) {
  OnMachine({.engine = false});
  const auto gpu = MakeGpuDevice(Asked());
  ASSERT_TRUE(UnitsOf(*gpu).HasJpegUnits());
  const std::string file = Jpeg(20, 30, 3, 1);
  auto tasks = TasksOf({file});
  const auto unit = UnitsOf(*gpu).MakeJpegUnit();
  unit->Decode(tasks);
  ExpectPicture(tasks[0]);
}

TEST_F(JpegUnitTest, WithoutTheLibraryOneSentenceSaysSo) {
  OnMachine({.there = false});
  const LogCollector log;
  const auto gpu = MakeGpuDevice(Asked());
  EXPECT_FALSE(UnitsOf(*gpu).HasJpegUnits());
  EXPECT_THAT(log.lines, Contains(HasSubstr("--gpu_decode: nvJPEG 12 or 13 was not found "
                                            "(libnvjpeg.so.13, libnvjpeg.so.12); install it")));
  EXPECT_FALSE(UnitsOf(*MakeGpuDevice({})).HasJpegUnits()) << "nobody asked";
}

TEST_F(JpegUnitTest, AGpuWithoutMemoryForPicturesSaysSo) {
  const auto gpu = MakeGpuDevice(Asked());
  const auto unit = UnitsOf(*gpu).MakeJpegUnit();
  auto tasks = TasksOf({Jpeg(20, 30, 3, 1)});
  emulated_gpu::InjectError(emulated_gpu::CallKind::kMalloc, 0, 2);
  EXPECT_EQ(ErrorOf([&] { unit->Decode(tasks); }).first, ErrorCode::kResource);
  unit->Decode(tasks);
  ExpectPicture(tasks[0]);
}

TEST_F(JpegUnitTest, ALostGpuIsAnErrorAndNoBadPicture) {
  const auto gpu = MakeGpuDevice(Asked());
  const auto unit = UnitsOf(*gpu).MakeJpegUnit();
  const std::string file = Jpeg(20, 30, 3, 1);
  auto tasks = TasksOf({file});
  emulated_gpu::SetStickyError(719);
  EXPECT_EQ(ErrorOf([&] { unit->Decode(tasks); }).first, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace trainer
