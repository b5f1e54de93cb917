// The exchange of a GPU's gradients with the other ranks.

#include "cuda/gradient_group_testing.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(GradientGroupTest, BringsTheSumsOfTheHostBack) {
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    emulated_gpu::SetSeed(seed);
    const auto group = MakeStagedGroup(device(), Options());
    for (const float first : {1.0f, 100.0f, -7.0f}) {
      Backward(*group, gradients.data(), first);
      ExpectSums(*group, gradients, first, 2);
    }
  }
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

TEST_F(GradientGroupTest, StagesWhereTheHostSumsWithoutACopy) {
  Twins twins;  // without its own memory, the group uses the device's page-locked memory
  GpuGroupOptions options = Options();
  options.host = &twins;
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  const auto group = MakeStagedGroup(device(), options);
  Backward(*group, gradients.data(), 3);
  ExpectSums(*group, gradients, 3, 2);
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

// All ranks must compute the same sums in the same order, whatever their GPUs have done by then.
TEST_F(GradientGroupTest, SumsInAnOrderThatNoGpuDecides) {
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    emulated_gpu::SetSeed(seed);
    const auto group = MakeStagedGroup(device(), Options());
    for (int pass = 0; pass < 3; ++pass) {
      twins_.calls.clear();
      Backward(*group, gradients.data(), 1);
      float loss = 1;
      group->AllReduce({&loss, 1});
      EXPECT_EQ(loss, 2.0f);
      group->WaitGradient(0);
      group->AllReduce({&loss, 1});
      for (int i = 1; i <= kLast; ++i) group->WaitGradient(i);
      std::erase_if(twins_.calls, [](const std::string& call) { return call.starts_with("wait"); });
      EXPECT_THAT(twins_.calls, ElementsAre("sum", "ready 0", "ready 1", "ready 2", "sum"));
    }
  }
}

TEST_F(GradientGroupTest, RefusesAnotherPassBeforeAllSumsWereWaitedFor) {
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  const auto group = MakeStagedGroup(device(), Options());
  Backward(*group, gradients.data(), 1);
  group->WaitGradient(1);
  const auto [code, text] = ErrorOf([&] { Backward(*group, gradients.data(), 2); });
  EXPECT_EQ(code, ErrorCode::kInternal);
  EXPECT_THAT(text, HasSubstr("were not waited for"));
}

TEST_F(GradientGroupTest, CopiesBesideComputationsAndAllocatesOnce) {
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  const auto group = MakeStagedGroup(device(), Options());
  Backward(*group, gradients.data(), 1);
  group->WaitGradient(kLast);
  device().Synchronize();
  emulated_gpu::ResetCounters();
  for (size_t i = 0; i < kSlices; ++i) {
    group->OnGradientReady(static_cast<int>(i), {gradients.data() + i * kSlice, kSlice});
  }
  group->WaitGradient(kLast);
  const emulated_gpu::Counters counters = emulated_gpu::Count();
  EXPECT_EQ(counters.copies, 6);            // three buckets, down and up
  EXPECT_EQ(counters.synchronizations, 0);  // the host polls and computes sums meanwhile
  EXPECT_EQ(counters.allocations + counters.host_allocations + counters.events, 0);
}

TEST_F(GradientGroupTest, IsSlowerWhereMemoryCannotBePageLocked) {
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  const auto group = MakeStagedGroup(device(), Options());
  emulated_gpu::InjectError(emulated_gpu::CallKind::kHostAlloc, 0, 2);
  testing::internal::CaptureStderr();
  Backward(*group, gradients.data(), 5);
  ExpectSums(*group, gradients, 5, 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cannot be page-locked"));
}

TEST_F(GradientGroupTest, LeavesTheSumsToNcclAndMeetsTheOthersBeforeItWaits) {
  twins_.count = 1;
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  std::string note;
  const auto group = MakeNcclGroup(device(), Options(), &note);
  ASSERT_NE(group, nullptr) << note;
  EXPECT_EQ(note, "emulated");
  for (const float first : {1.0f, 50.0f}) {
    twins_.calls.clear();
    Backward(*group, gradients.data(), first);
    ExpectSums(*group, gradients, first, 1);
    EXPECT_THAT(twins_.calls, ElementsAre("sum"));
    twins_.calls.clear();
    Backward(*group, gradients.data(), first);
    float loss = 1;
    group->AllReduce({&loss, 1});
    ExpectSums(*group, gradients, first, 1);
    EXPECT_THAT(twins_.calls, ElementsAre("sum"));
  }
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

TEST_F(GradientGroupTest, SaysWhyNcclCannotBeUsed) {
  emulated_gpu::RefuseLibraryCalls("ncclCommInitRank");
  std::string note;
  EXPECT_EQ(MakeNcclGroup(device(), Options(), &note), nullptr);
  EXPECT_THAT(note, HasSubstr("ncclCommInitRank failed"));
  emulated_gpu::RefuseLibraryCalls("ncclGetUniqueId");
  EXPECT_EQ(MakeNcclGroup(device(), Options(), &note), nullptr);
  EXPECT_THAT(note, HasSubstr("ncclGetUniqueId failed"));
}

// A sum that fails ends the run with 82, as a dead rank does.
TEST_F(GradientGroupTest, FindsOutThatNcclFailed) {
  twins_.count = 1;
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  std::string note;
  const auto group = MakeNcclGroup(device(), Options(), &note);
  Backward(*group, gradients.data(), 1);
  group->WaitGradient(kLast);
  emulated_gpu::RefuseLibraryCalls("ncclAllReduce");
  const auto [code, text] = ErrorOf([&] { Backward(*group, gradients.data(), 1); });
  EXPECT_EQ(code, ErrorCode::kPeerLost);
  EXPECT_THAT(text, HasSubstr("ncclAllReduce failed"));
}

// This function replaces a CUDA-aware MPI library. It sums through copies, because the host cannot
// access the emulated GPU's memory directly.
TEST_F(GradientGroupTest, HandsMpiTheMemoryOfTheGpuWhereItTakesThat) {
  const OnDevice<float> gradients(device(), kSlices * kSlice);
  GpuGroupOptions options = Options();
  int uses = 0;
  std::vector<size_t> sums;
  options.sum_by_mpi = [&](std::span<float> values, const std::function<void()>& use_gpu) {
    use_gpu();
    ++uses;
    sums.push_back(values.size());
    std::vector<float> host(values.size());
    device().CopyToHost(host.data(), values.data(), values.size_bytes());
    for (float& value : host) value *= 3;
    device().CopyToDevice(values.data(), host.data(), values.size_bytes());
  };
  for (const uint64_t seed : {1, 2, 3, 4}) {
    emulated_gpu::SetSeed(seed);
    twins_.count = 1;
    std::string note;
    const auto group = MakeMpiGroup(device(), options, &note);
    ASSERT_NE(group, nullptr) << note;
    for (const float first : {1.0f, 50.0f}) {
      twins_.calls.clear();
      sums.clear();
      Backward(*group, gradients.data(), first);
      ExpectSums(*group, gradients, first, 3);
      EXPECT_THAT(twins_.calls, ElementsAre("sum")) << "the ranks meet before MPI waits";
      EXPECT_THAT(sums, ElementsAre(2 * kSlice, 2 * kSlice, kSlice)) << "by buckets";
    }
  }
  EXPECT_THAT(emulated_gpu::Problems(), IsEmpty());
}

TEST_F(GradientGroupTest, LeavesAnMpiAloneThatTakesNoMemoryOfGpus) {
  std::string note;
  EXPECT_EQ(MakeMpiGroup(device(), Options(), &note), nullptr);
  EXPECT_THAT(note, HasSubstr("no CUDA-aware MPI library"));
}

TEST_F(GradientGroupTest, ListsGpusWithoutUsingThem) {
  emulated_gpu::Options options;
  options.devices.resize(3);
  options.first_bus = 4;
  emulated_gpu::Reset(options);
  EXPECT_THAT(ListGpus(), ElementsAre("0000:04:00.0", "0000:05:00.0", "0000:06:00.0"));
  EXPECT_EQ(emulated_gpu::Count().allocations, 0);
}

}  // namespace
}  // namespace trainer
