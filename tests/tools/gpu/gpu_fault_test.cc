// Faults of an emulated GPU: the message, the exit code and the remaining snapshots of a run.

#include <filesystem>

#include "gpu_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr int kMemoryAllocation = 2, kDevicesUnavailable = 46, kIllegalAddress = 700;

class GpuFaultTest : public EmulatedGpuTest {
 protected:
  void ExpectOne(const Outcome& outcome, int code, const std::string& start,
                 const std::string& part) {
    ExpectRefused(job_, outcome, code, start, part);
  }
  static std::string Fault(const std::string& what, int n, int error) {
    return what + ":" + std::to_string(n) + ":" + std::to_string(error);
  }
};

TEST_F(GpuFaultTest, WithoutADriverTheSentenceSaysWhatIsMissing) {
  ExpectOne(job_.TrainOnGpu({}, "driver=0"), 69, "--gpu=0: ", "driver");
  job_.solver = Edited(job_.solver, "solver_mode: CPU", "solver_mode: GPU");
  const Outcome asked = job_.Run(job_.TrainCommand(), "driver=0");
  ExpectOne(asked, 69, "solver.prototxt:15:1: solver_mode is GPU: ",
            "; to compute on the CPU, write solver_mode: CPU");
  const Outcome query = job_.Run({"device_query"}, "driver=0");
  EXPECT_EQ(query.exit_code, 0) << query.err;
  EXPECT_TRUE(Finds(query.out, R"(\nmissing: +[a-z].*driver)")) << query.out;
  EXPECT_TRUE(Finds(query.out, R"(\nCUDA: +runtime \S+, no driver)")) << query.out;
}

TEST_F(GpuFaultTest, AGpuThatIsNotThereIsRefusedWithThoseThatAre) {
  ExpectOne(job_.TrainOnGpu({}, "gpus=0"), 69, "--gpu=0: ", "GPU");
  std::vector<std::string> command = job_.TrainCommand({"--gpu=3"});
  ExpectOne(job_.Run(command, "gpus=2"), 69, "--gpu=3: there is no GPU 3; ",
            "0: Emulated GPU, 1 GiB, 1 GiB free; 1: Emulated GPU");
  job_.solver = Edited(job_.solver, "solver_mode: CPU", "solver_mode: GPU device_id: 5");
  ExpectOne(job_.Run(job_.TrainCommand()), 69,
            "solver.prototxt:15:1: solver_mode is GPU: there is no GPU 5; ", "0: Emulated GPU");
}

TEST_F(GpuFaultTest, ABusyGpuIsNamed) {
  ExpectOne(job_.TrainOnGpu({}, "fail=" + Fault("create", 0, kDevicesUnavailable)), 69,
            "--gpu=0: GPU 0 (Emulated GPU) is busy, or another process has exclusive use of it",
            "choose another GPU, or wait");
}

TEST_F(GpuFaultTest, AFullGpuEndsWith81AndTheFigures) {
  job_.net = Edited(job_.net, "batch_size: 16", "batch_size: 4000");
  const Outcome full = job_.TrainOnGpu({}, "memory=16");
  EXPECT_EQ(full.exit_code, 81) << full.err;
  ASSERT_EQ(full.Errors().size(), 1u) << full.err;
  EXPECT_THAT(full.Errors()[0], AllOf(HasSubstr("MiB"), HasSubstr("lower batch_size")));
  EXPECT_THAT(job_.Files("snap"), IsEmpty());
  EXPECT_THAT(job_.Files("."), IsEmpty());
}

TEST_F(GpuFaultTest, EveryAllocationMayFail) {
  constexpr int kTried = 12;
  int failed = 0;
  for (int n = 0; n < kTried; ++n) {
    SCOPED_TRACE(n);
    const Outcome outcome =
        job_.TrainOnGpu({"--set", "max_iter=1"}, "fail=" + Fault("malloc", n, kMemoryAllocation));
    if (outcome.exit_code == 0) continue;  // the run did without it, or never made it
    ExpectRefused(job_, outcome, 81, "", "lower batch_size");
    ++failed;
  }
  EXPECT_GT(failed, 3);
}

// A GPU that has failed writes no snapshot, and the run can resume from the last good one.
TEST_F(GpuFaultTest, AGpuLostOnTheWayLeavesTheLastSnapshot) {
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 1000");
  job_.solver = Edited(job_.solver, "test_interval: 10", "test_interval: 1000");
  job_.solver = Edited(job_.solver, "snapshot: 10", "snapshot: 5");
  for (const std::string fault : {"launch:900:", "copy:200:"}) {
    SCOPED_TRACE(fault);
    for (const std::string& name : job_.Files("snap")) {
      std::filesystem::remove(job_.folder() / name);
    }
    const Outcome lost = job_.TrainOnGpu({}, "break=" + fault + std::to_string(kIllegalAddress));
    ExpectRefused(job_, lost, 69, "GPU 0 (Emulated GPU) failed while ", "cudaErrorIllegalAddress");
    EXPECT_THAT(lost.Errors(), ElementsAre(HasSubstr("--resume=auto")));
    const std::vector<std::string> states = job_.Files("snap");
    ASSERT_FALSE(states.empty()) << lost.err;
    job_.solver = Edited(job_.solver, "max_iter: 1000", "max_iter: 1");
    const Outcome again = job_.TrainOnGpu({"--resume=auto"});
    job_.solver = Edited(job_.solver, "max_iter: 1", "max_iter: 1000");
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_THAT(again.err, HasSubstr("Already at iteration"));
    EXPECT_EQ(job_.Files("snap"), states);
  }
}

TEST_F(GpuFaultTest, ABadLabelIsTheSentenceOfTheCpu) {
  job_.net = Edited(job_.net, "num_output: 10", "num_output: 5");
  const Outcome gpu = job_.TrainOnGpu(), cpu = job_.Train();
  EXPECT_EQ(cpu.exit_code, 65);
  EXPECT_EQ(gpu.exit_code, 65) << gpu.err;
  EXPECT_EQ(gpu.Errors(), cpu.Errors());
  EXPECT_THAT(job_.Files("snap"), IsEmpty());
}

TEST_F(GpuFaultTest, ALossThatIsNotFiniteEndsWith80) {
  job_.solver = Edited(job_.solver, "base_lr: 0.05", "base_lr: 1e30");
  const Outcome gpu = job_.TrainOnGpu();
  EXPECT_EQ(gpu.exit_code, 80) << gpu.err;
  EXPECT_THAT(gpu.Errors(), ElementsAre(HasSubstr("loss")));
}

}  // namespace
}  // namespace trainer
