// The device that --gpu and solver_mode choose. No GPU is needed, because the choice opens none.

#include "trainer/run/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/scoped.h"
#include "support/temp_folder.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

// Returns a solver with `fields` for a net with `net_fields`.
SolverSpec SpecOf(const TempFolder& folder, const std::string& fields,
                  const std::string& net_fields = "") {
  folder.Write("net.prototxt", net_fields + R"( layer { name: "x" type: "DummyData" top: "x"
                                dummy_data_param { shape { dim: 2 } } })");
  return LoadSolver(folder.Write(
      "solver.prototxt", Join("net: \"", folder / "net.prototxt",
                              "\" max_iter: 1 base_lr: 0.1 lr_policy: \"fixed\" ", fields)));
}

TEST(RequestedGpusTest, IsANumberOrSeveralOrAll) {
  EXPECT_THAT(RequestedGpus({}), IsEmpty());
  EXPECT_THAT(RequestedGpus({.gpu = "3"}), ElementsAre(3));
  EXPECT_THAT(RequestedGpus({.gpu = "1, 0"}), ElementsAre(1, 0));
  EXPECT_THAT(RequestedGpus({.gpu = "all"}), Contains(0));
  for (const std::string wrong : {"abc", "-1", "0x1", "12345", ",", "0,b"}) {
    EXPECT_THAT(ErrorOf([&] { RequestedGpus({.gpu = wrong}); }),
                Pair(ErrorCode::kUsage,
                     AllOf(StartsWith("--gpu=" + wrong), HasSubstr("such as 0, or all"))));
  }
  EXPECT_THAT(ErrorOf([] { RequestedGpus({.gpu = "0,0"}); }),
              Pair(ErrorCode::kUsage, HasSubstr("GPU 0 is named twice")));
  EXPECT_THAT(ErrorOf([] { RequestedGpu({.gpu = "0,1"}); }),
              Pair(ErrorCode::kUnavailable, HasSubstr("only 'train' can use several GPUs")));
}

TEST(ChooseDeviceTest, TheFlagWinsOverSolverMode) {
  const TempFolder folder;
  const SolverSpec gpu = SpecOf(folder, "solver_mode: GPU device_id: 2");
  EXPECT_EQ(ChooseDevice({}, gpu).kind, DeviceKind::kCuda);
  EXPECT_EQ(ChooseDevice({}, gpu).gpu.id, 2);
  EXPECT_EQ(ChooseDevice({.gpu = "1"}, gpu).gpu.id, 1);
  EXPECT_EQ(ChooseDevice({.gpu = "1"}, gpu).flag, "--gpu=1");
}

TEST(ChooseDeviceTest, DeviceIdCountsForGpusOnly) {
  const TempFolder folder;
  EXPECT_EQ(ChooseDevice({}, SpecOf(folder, "solver_mode: CPU device_id: 7")).kind,
            DeviceKind::kCpu);
  EXPECT_EQ(ChooseDevice({}, SpecOf(folder, "")).kind, DeviceKind::kCpu);
}

TEST(ChooseDeviceTest, ARankTakesTheGpuWithItsNumber) {
  const TempFolder folder;
  const SolverSpec spec = SpecOf(folder, "");
  EXPECT_EQ(ChooseDevice({.gpu = "4,6"}, spec, {1, 2}).gpu.id, 6);
  EXPECT_EQ(ChooseDevice({.gpu = "4"}, spec, {1, 2}).gpu.id, 4)
      << "which each rank sees as its own";
  EXPECT_EQ(ChooseDevice({.gpu = "4,6"}, spec, {2, 3, true}).gpu.id, 4);
  EXPECT_THAT(ErrorOf([&] {
                ChooseDevice({.gpu = "4,6"}, spec, {2, 3});
              }),
              Pair(ErrorCode::kUsage, HasSubstr("--gpu=4,6: 2 GPUs and 3 ranks on this machine")));
}

TEST(ChooseDeviceTest, TheNetChoosesTf32IfNoFlagDoes) {
  const TempFolder folder;
  const SolverSpec spec = SpecOf(folder, "", "default_cudnn_math_override: 1");
  const DeviceChoice choice = ChooseDevice({.gpu = "0"}, spec);
  EXPECT_TRUE(choice.gpu.tf32);
  EXPECT_THAT(choice.notes, ElementsAre(HasSubstr("has the effect of --tf32")));
  EXPECT_FALSE(ChooseDevice({.gpu = "0", .tf32 = false}, spec).gpu.tf32);
  EXPECT_FALSE(ChooseDevice({}, spec).gpu.tf32) << "on the CPU it has no effect";
}

TEST(ChooseDeviceTest, KeepsAlgorithmsInTheUsersCacheFolder) {
  const ScopedEnvironment home("HOME", "/h"), cache("XDG_CACHE_HOME", std::nullopt);
  EXPECT_EQ(ChooseDevice({}).gpu.algorithm_file, "/h/.cache/trainer/convolutions");
  EXPECT_FALSE(ChooseDevice({}).gpu.algorithm_file_asked);
  cache.Set("/c");
  EXPECT_EQ(ChooseDevice({}).gpu.algorithm_file, "/c/trainer/convolutions");
  EXPECT_EQ(ChooseDevice({.gpu_cache = "off"}).gpu.algorithm_file, "");
  EXPECT_EQ(ChooseDevice({.gpu_cache = "f"}).gpu.algorithm_file, "f");
}

TEST(MakeDeviceTest, NamesWhatAsksForAGpuThatIsNotThere) {
  if (!FindGpus().gpus.empty()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(
      ErrorOf([] { MakeDevice(ChooseDevice({.gpu = "0"})); }),
      Pair(ErrorCode::kUnavailable,
           AllOf(StartsWith("--gpu=0: "), HasSubstr("; leave out --gpu to compute on the CPU"))));
  const TempFolder folder;
  const SolverSpec spec = SpecOf(folder, "solver_mode: GPU");
  EXPECT_THAT(ErrorOf([&] { MakeDevice(ChooseDevice({}, spec)); }),
              Pair(ErrorCode::kUnavailable,
                   AllOf(HasSubstr("solver.prototxt"), HasSubstr("solver_mode is GPU: "),
                         HasSubstr("--set solver_mode=CPU"))));
}

TEST(MakeLoggedDeviceTest, LogsTheDeviceAsCaffeDoes) {
  const LogCollector log;
  MakeLoggedDevice(ChooseDevice({.tf32 = true}));
  EXPECT_THAT(log.lines, ElementsAre("Use CPU.", "--tf32 has no effect on the CPU"));
}

}  // namespace
}  // namespace trainer
