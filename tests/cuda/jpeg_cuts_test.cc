// Pictures that nvJPEG decodes and that stay on the GPU, of which windows are cut there.

#include "jpeg_testing.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kHeight = 8, kWidth = 11;  // of windows

// Element (h, w, c) of a window of a picture (C, H, W).
std::vector<uint8_t> Cut(const JpegTask& task, const PixelWindow& window) {
  const PictureForm& form = task.form;
  const int top = window.start / form.width, left = window.start % form.width;
  std::vector<uint8_t> cut;
  for (int h = 0; h < kHeight; ++h) {
    for (int w = 0; w < kWidth; ++w) {
      const int column = left + (window.mirrored != 0 ? kWidth - 1 - w : w);
      for (int c = 0; c < form.channels; ++c) {
        cut.push_back(task.pixels[(c * form.height + top + h) * form.width + column]);
      }
    }
  }
  return cut;
}

class JpegCutsTest : public NvjpegTest {
 protected:
  JpegCutsTest() : gpu_(MakeGpuDevice(Asked())), unit_(UnitsOf(*gpu_).MakeJpegUnit()) {}
  ~JpegCutsTest() override {
    unit_.reset();
    if (memory_ != nullptr) UnitsOf(*gpu_).CutMemory().deallocate(memory_, kMemory);
  }

  PixelWindow Window(int top, int left, bool mirrored, const PictureForm& form) const {
    return {top * form.width + left, mirrored ? 1 : 0};
  }
  // A window in each corner of each picture, the lower ones mirrored; all cuts behind each other.
  void WantCorners(std::vector<JpegTask>* tasks) {
    if (memory_ == nullptr) {
      memory_ = static_cast<uint8_t*>(UnitsOf(*gpu_).CutMemory().allocate(kMemory));
    }
    uint8_t* to = memory_;
    for (JpegTask& task : *tasks) {
      const int down = task.form.height - kHeight, right = task.form.width - kWidth;
      std::vector<PixelWindow>& windows = windows_.emplace_back();
      for (const int left : {0, right}) {
        windows.push_back(Window(0, left, false, task.form));
        windows.push_back(Window(down, left, true, task.form));
      }
      task.cuts = {windows, kHeight, kWidth, to};
      to += windows.size() * kHeight * kWidth * static_cast<size_t>(task.form.channels);
    }
  }
  std::vector<uint8_t> CutsOf(const JpegTask& task) const {
    std::vector<uint8_t> cuts(task.cuts.windows.size() * kHeight * kWidth *
                              static_cast<size_t>(task.form.channels));
    emulated_gpu::Peek(cuts.data(), task.cuts.to, cuts.size());
    return cuts;
  }
  // What is at the place of each task is cut of the picture that comes to the host otherwise.
  void ExpectCuts(const std::vector<JpegTask>& tasks) {
    std::vector<JpegTask> whole = tasks;
    for (JpegTask& task : whole) task.cuts = {};
    std::vector<std::vector<uint8_t>> found;
    for (const JpegTask& task : tasks) found.push_back(CutsOf(task));
    unit_->Decode(whole);
    for (size_t i = 0; i < tasks.size(); ++i) {
      ASSERT_EQ(tasks[i].decoded, whole[i].decoded) << "picture " << i;
      if (!tasks[i].decoded) continue;
      std::vector<uint8_t> expected;
      for (const PixelWindow& window : tasks[i].cuts.windows) {
        const std::vector<uint8_t> cut = Cut(whole[i], window);
        expected.insert(expected.end(), cut.begin(), cut.end());
      }
      EXPECT_EQ(found[i], expected) << "picture " << i;
    }
  }

  static constexpr size_t kMemory = size_t{1} << 16;
  std::unique_ptr<Device> gpu_;
  std::unique_ptr<JpegUnit> unit_;
  uint8_t* memory_ = nullptr;
  std::deque<std::vector<PixelWindow>> windows_;
};

TEST_F(JpegCutsTest, WindowsAreThoseOfThePicturesThatComeToTheHost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    emulated_gpu::SetSeed(seed);
    for (const Colors colors : {Colors::kColor, Colors::kGray}) {
      auto tasks = TasksOf(
          {Jpeg(40, 56, 3, 0), Jpeg(kHeight, kWidth, 3, 1), Jpeg(9, 100, 3, 2), Jpeg(8, 300, 3, 3)},
          colors);
      WantCorners(&tasks);
      EXPECT_EQ(unit_->Decode(tasks), 4u);
      for (const JpegTask& task : tasks) {
        EXPECT_TRUE(task.decoded);
        EXPECT_EQ(task.pixels, nullptr) << "it came to the host";
      }
      ExpectCuts(tasks);
    }
  }
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

TEST_F(JpegCutsTest, OneThatTheLibraryRefusesLeavesTheOthersAlone) {
  std::string bad = Jpeg(40, 56, 3, 0);
  auto tasks = TasksOf({Jpeg(20, 30, 3, 1), bad, Jpeg(24, 18, 3, 2)});
  WantCorners(&tasks);
  SpoilTable(&bad);
  tasks[1].bytes = bad;
  EXPECT_EQ(unit_->Decode(tasks), 3u);
  EXPECT_FALSE(tasks[1].decoded);
  ExpectCuts(tasks);
  std::vector<JpegTask> alone = {tasks[1]};
  EXPECT_EQ(unit_->Decode(alone), 1u);
  EXPECT_FALSE(alone[0].decoded);
}

TEST_F(JpegCutsTest, OneThatTheLibrarySilentlyLeavesOutIsNotTaken) {
  unit_.reset();
  OnMachine({.leaves_out = 1});
  gpu_ = MakeGpuDevice(Asked());
  unit_ = UnitsOf(*gpu_).MakeJpegUnit();
  auto tasks = TasksOf({Jpeg(20, 30, 3, 1), Jpeg(20, 31, 3, 2), Jpeg(21, 31, 3, 2)});
  WantCorners(&tasks);
  unit_->Decode(tasks);
  EXPECT_TRUE(tasks[0].decoded);
  EXPECT_FALSE(tasks[1].decoded);
  EXPECT_TRUE(tasks[2].decoded);
}

// A row of the colour that stands for unwritten memory does not hide the rest of a picture, unless
// it is all of its first or last row.
TEST_F(JpegCutsTest, APictureIsTakenWhereOneOfEachRowsPixelsIsAnything) {
  constexpr int kSize = 16, kUnwritten = 0xA5;
  Image image{1, kSize, kSize, std::vector<uint8_t>(kSize * kSize, kUnwritten)};
  const auto decodes = [&] {
    auto tasks = TasksOf({EncodeImage(image, "jpg", 100)}, Colors::kAsStored);
    WantCorners(&tasks);
    unit_->Decode(tasks);
    return tasks[0].decoded;
  };
  EXPECT_FALSE(decodes());
  image.pixels[kSize - 1] = 0;
  EXPECT_FALSE(decodes()) << "the last row is all of the colour";
  image.pixels[(kSize - 1) * kSize] = 0;
  EXPECT_TRUE(decodes());
}

TEST_F(JpegCutsTest, OnlyWindowsAndFlagsCrossTheBusAndNothingIsAllocatedTwice) {
  auto tasks = TasksOf({Jpeg(40, 56, 3, 0), Jpeg(33, 17, 3, 1), Jpeg(9, 100, 3, 2)});
  WantCorners(&tasks);
  unit_->Decode(tasks);
  emulated_gpu::ResetCounters();
  constexpr int kPasses = 5;
  for (int pass = 0; pass < kPasses; ++pass) unit_->Decode(tasks);
  const emulated_gpu::Counters counts = emulated_gpu::Count();
  EXPECT_EQ(counts.launches, kPasses) << "one kernel for all windows";
  EXPECT_EQ(counts.synchronizations, kPasses);
  EXPECT_EQ(counts.allocations + counts.frees, 0);
  EXPECT_EQ(counts.host_allocations + counts.host_frees, 0);
  const int64_t windows = kPasses * 3 * 4;
  EXPECT_LE(counts.bus_bytes, windows * 48);
  EXPECT_EQ(counts.bus_bytes, counts.copied_bytes);
}

TEST_F(JpegCutsTest, AGpuWithoutMemoryForPicturesSaysSo) {
  auto tasks = TasksOf({Jpeg(20, 30, 3, 1)});
  WantCorners(&tasks);
  for (const int call : {0, 1}) {
    emulated_gpu::InjectError(emulated_gpu::CallKind::kMalloc, call, 2);
    const auto error = ErrorOf([&] { unit_->Decode(tasks); });
    EXPECT_EQ(error.first, ErrorCode::kResource);
    EXPECT_THAT(error.second,
                HasSubstr("of memory left for pictures that it decodes; lower batch_size or "
                          "data_param's prefetch, or decode on the host: --nogpu_decode"));
  }
  unit_->Decode(tasks);
  ExpectCuts(tasks);
}

TEST_F(JpegCutsTest, ALostGpuIsAnErrorAndNoBadPicture) {
  auto tasks = TasksOf({Jpeg(20, 30, 3, 1)});
  WantCorners(&tasks);
  unit_->Decode(tasks);
  for (const auto kind : {emulated_gpu::CallKind::kLaunch, emulated_gpu::CallKind::kCopy}) {
    emulated_gpu::InjectError(kind, 0, 700);
    EXPECT_THROW(unit_->Decode(tasks), Error);
    unit_->Decode(tasks);
    ExpectCuts(tasks);
  }
  emulated_gpu::InjectBreakdown(emulated_gpu::CallKind::kLaunch, 0, 719);
  EXPECT_EQ(ErrorOf([&] { unit_->Decode(tasks); }).first, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace trainer
