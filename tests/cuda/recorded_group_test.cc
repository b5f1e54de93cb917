// Sums of the gradients of recorded passes.

#include "cuda/gradient_group_testing.h"
#include "trainer/backend/device/graph_capture.h"
#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// to[i] = *first + slice
struct WriteSlice {
  const float* first;
  float* to;
  int slice;
  HD void operator()(int64_t i) const { to[i] = *first + static_cast<float>(slice); }
};

class RecordedGroupTest : public GradientGroupTest {
 protected:
  // Queues a pass whose gradients depend on one number on the device, so that it can be recorded.
  void QueuePass(Communicator& group) {
    for (int i = 0; i <= kLast; ++i) {
      float* const to = gradients_.data() + static_cast<size_t>(i) * kSlice;
      ForEach(device(), kSlice, WriteSlice{first_.data(), to, i});
      group.OnGradientReady(i, {to, kSlice});
    }
  }

  std::unique_ptr<CapturedGraph> Record(Communicator& group) {
    group.BeginCapture();
    return device().capture()->Capture([&] {
      QueuePass(group);
      group.EndCapture();
    });
  }

  void SetFirst(float value) { device().CopyToDevice(first_.data(), &value, sizeof(value)); }

  void ExpectSums(Communicator& group, float first, float times) {
    for (int i = 0; i <= kLast; ++i) group.WaitGradient(i);
    const std::vector<float> found = gradients_.Read();
    for (size_t i = 0; i < kSlices * kSlice; ++i) {
      ASSERT_EQ(found[i], times * (first + static_cast<float>(i / kSlice))) << i;
    }
  }

  // Runs an ordinary pass, replays a recorded pass twice, and runs another ordinary pass.
  void PlayTwice(Communicator& group, float times) {
    SetFirst(1);
    QueuePass(group);
    ExpectSums(group, 1, times);
    const std::unique_ptr<CapturedGraph> recording = Record(group);
    for (const float first : {100.0f, -7.0f}) {
      SetFirst(first);
      recording->Launch();
      group.OnReplay();
      ExpectSums(group, first, times);
    }
    SetFirst(3);
    QueuePass(group);
    ExpectSums(group, 3, times);
  }

  const OnDevice<float> gradients_{device(), kSlices*kSlice}, first_{device(), 1};
};

TEST_F(RecordedGroupTest, TheHostSumsWhatAPlayedPassMakes) {
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    emulated_gpu::SetSeed(seed);
    PlayTwice(*MakeStagedGroup(device(), Options()), 2);
  }
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

TEST_F(RecordedGroupTest, NcclSumsWhatAPlayedPassMakes) {
  twins_.count = 1;
  for (const uint64_t seed : {1, 2, 3, 4}) {
    emulated_gpu::SetSeed(seed);
    std::string note;
    const auto group = MakeNcclGroup(device(), Options(), &note);
    ASSERT_NE(group, nullptr) << note;
    PlayTwice(*group, 1);
  }
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

TEST_F(RecordedGroupTest, MpiSumsWhatAPlayedPassMakes) {
  GpuGroupOptions options = Options();
  options.sum_by_mpi = [&](std::span<float> values, const std::function<void()>&) {
    std::vector<float> host(values.size());
    device().CopyToHost(host.data(), values.data(), values.size_bytes());
    for (float& value : host) value *= 3;
    device().CopyToDevice(values.data(), host.data(), values.size_bytes());
  };
  twins_.count = 1;
  for (const uint64_t seed : {1, 2, 3, 4}) {
    emulated_gpu::SetSeed(seed);
    std::string note;
    const auto group = MakeMpiGroup(device(), options, &note);
    ASSERT_NE(group, nullptr) << note;
    PlayTwice(*group, 3);
  }
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

// In some run, the last gradient is still missing when the host gets the first bucket.
TEST_F(RecordedGroupTest, TheFirstSumBeginsBeforeTheLastGradientIsThere) {
  const auto group = MakeStagedGroup(device(), Options());
  SetFirst(1);
  QueuePass(*group);
  ExpectSums(*group, 1, 2);
  const std::unique_ptr<CapturedGraph> recording = Record(*group);
  bool overlaps = false;
  twins_.on_ready = [&](int slice) {
    float last = 0;
    emulated_gpu::Peek(&last, gradients_.data() + kSlices * kSlice - 1, sizeof(last));
    overlaps = overlaps || (slice == 0 && last == -1);
  };
  for (uint64_t seed = 1; seed <= 20 && !overlaps; ++seed) {
    emulated_gpu::SetSeed(1000 * seed);  // neighbouring seeds give nearly the same order
    SetFirst(static_cast<float>(seed));
    device().Memset(gradients_.data(), 0, kSlices * kSlice * sizeof(float));
    const float mark = -1;
    device().CopyToDevice(gradients_.data() + kSlices * kSlice - 1, &mark, sizeof(mark));
    device().Synchronize();
    recording->Launch();
    group->OnReplay();
    ExpectSums(*group, static_cast<float>(seed), 2);
  }
  EXPECT_TRUE(overlaps);
}

TEST_F(RecordedGroupTest, APlayedPassIsOneLaunchAndTwoCopiesABucket) {
  const auto group = MakeStagedGroup(device(), Options());
  SetFirst(1);
  QueuePass(*group);
  ExpectSums(*group, 1, 2);
  const std::unique_ptr<CapturedGraph> recording = Record(*group);
  EXPECT_EQ(recording->NumOperations(), 5 + 3) << "kernels; marks of three buckets";
  emulated_gpu::ResetCounters();
  recording->Launch();
  group->OnReplay();
  group->WaitGradient(kLast);
  const emulated_gpu::Counters counters = emulated_gpu::Count();
  EXPECT_EQ(counters.graph_launches, 1);
  EXPECT_EQ(counters.launches, 0);
  EXPECT_EQ(counters.copies, 6);
  EXPECT_EQ(counters.synchronizations, 0);
  EXPECT_EQ(counters.allocations + counters.host_allocations + counters.events, 0);
}

TEST_F(RecordedGroupTest, SlicesOfABucketHaveArrivedTogether) {
  const auto group = MakeStagedGroup(device(), Options());
  SetFirst(1);
  QueuePass(*group);
  group->WaitGradient(0);
  EXPECT_EQ(group->LastReduced(0), 1);
  EXPECT_EQ(group->LastReduced(1), 1);
  group->WaitGradient(kLast);
  EXPECT_EQ(group->LastReduced(3), 3);
  EXPECT_EQ(group->LastReduced(kLast), kLast);
}

TEST_F(RecordedGroupTest, APassThatCannotBeRecordedLeavesNothingBehind) {
  const auto group = MakeStagedGroup(device(), Options());
  SetFirst(1);
  QueuePass(*group);
  ExpectSums(*group, 1, 2);
  for (const auto& [call, name] : {std::pair(0, "cudaStreamBeginCapture"),
                                   {2, "cudaGraphGetNodes"},
                                   {3, "cudaGraphInstantiate"}}) {
    emulated_gpu::InjectError(emulated_gpu::CallKind::kCapture, call, 900);
    EXPECT_THAT(ErrorOf([&] { Record(*group); }).second, HasSubstr(name));
    group->DropCapture();
    SetFirst(2);
    QueuePass(*group);
    ExpectSums(*group, 2, 2);
  }
}

TEST_F(RecordedGroupTest, RefusesToPlayBeforeAllSumsWereWaitedFor) {
  const auto group = MakeStagedGroup(device(), Options());
  SetFirst(1);
  QueuePass(*group);
  ExpectSums(*group, 1, 2);
  const std::unique_ptr<CapturedGraph> recording = Record(*group);
  recording->Launch();
  group->OnReplay();
  group->WaitGradient(0);
  recording->Launch();
  const auto [code, text] = ErrorOf([&] { group->OnReplay(); });
  EXPECT_EQ(code, ErrorCode::kInternal);
  EXPECT_THAT(text, HasSubstr("were not waited for"));
}

// The results are read while the pass is still running.
TEST_F(RecordedGroupTest, AMarkLetsResultsBeReadBeforeTheRestIsDone) {
  const GraphCapture& recorder = *device().capture();
  const std::unique_ptr<CapturedEvent> mark = recorder.NewEvent();
  const std::unique_ptr<AsyncReadback> read = mark->NewReadback();
  std::pmr::vector<float> host(1, &device().PinnedMemory());
  float* const number = gradients_.data();
  float* const last = number + 1;
  const std::unique_ptr<CapturedGraph> recording = recorder.Capture([&] {
    ForEach(device(), 1, WriteSlice{first_.data(), number, 0});
    mark->Record();
    for (int i = 0; i < 8; ++i) ForEach(device(), 1, WriteSlice{first_.data(), last, i});
  });
  bool early = false;
  for (uint64_t seed = 1; seed <= 20 && !early; ++seed) {
    emulated_gpu::SetSeed(1000 * seed);
    const auto first = static_cast<float>(10 * seed);
    SetFirst(first);
    recording->Launch();
    read->Start(host.data(), number, sizeof(float));
    device().Memset(number, 0, sizeof(float));  // queued after the copy
    read->Wait();
    EXPECT_EQ(host[0], first);
    float then = 0;
    emulated_gpu::Peek(&then, last, sizeof(then));
    early = early || then != first + 7;
    device().Synchronize();
  }
  EXPECT_TRUE(early);
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

}  // namespace
}  // namespace trainer
