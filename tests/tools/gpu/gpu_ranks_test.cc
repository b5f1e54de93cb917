// Several emulated GPUs with one rank each, started by --gpu, by --ranks and by mpirun.

#include <filesystem>

#include "gpu_job.h"
#include "support/json_reader.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class GpuRanksTest : public EmulatedGpuTest {
 protected:
  Outcome Train(const std::vector<std::string>& more, const std::string& machine = "gpus=3",
                const std::vector<std::string>& launcher = {}) {
    job_.Write();
    RunOptions options = job_.gpu_options(machine);
    options.launcher = launcher;
    const Outcome outcome = RunProgram(job_.TrainCommand(more), options);
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("\nemulated GPU: ")));
    return outcome;
  }
  Outcome TrainOnCpu(const std::vector<std::string>& more) {
    job_.Write();
    return RunProgram(job_.TrainCommand(more), job_.options());
  }

  std::vector<float> Weights(int iter = 20) const {
    std::vector<float> weights;
    const caffe::NetParameter net =
        ReadModel(job_.folder() / ("snap_iter_" + std::to_string(iter) + ".caffemodel"));
    for (const caffe::LayerParameter& layer : net.layer()) {
      for (const caffe::BlobProto& blob : layer.blobs()) {
        weights.insert(weights.end(), blob.data().begin(), blob.data().end());
      }
    }
    return weights;
  }
  std::string Bytes(int iter = 20) const {
    return ReadText(job_.folder() / ("snap_iter_" + std::to_string(iter) + ".caffemodel"));
  }
};

constexpr float kRounding = 2e-4f;

TEST_F(GpuRanksTest, LearnWhatRanksOnTheCpuLearn) {
  for (const auto& [gpus, ranks] :
       {std::pair("--gpu=0,1", "--ranks=2"), {"--gpu=all", "--ranks=3"}}) {
    ASSERT_EQ(TrainOnCpu({ranks}).exit_code, 0);
    const std::vector<float> cpu = Weights();
    for (const char* way : {"host", "nccl"}) {
      const Outcome outcome = Train({gpus, std::string("--exchange=") + way});
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      EXPECT_THAT(Weights(), testing::Pointwise(testing::FloatNear(kRounding), cpu)) << way;
      EXPECT_THAT(outcome.err, HasSubstr(way == std::string("nccl") ? "summed by NCCL (emulated)"
                                                                    : "summed by the host"));
      EXPECT_THAT(outcome.err, HasSubstr("): 0000:02:00.0"));
    }
  }
}

TEST_F(GpuRanksTest, SayWhereTheirTimeGoesWhereTheHostSums) {
  const Outcome outcome = Train({"--gpu=0,1", "--exchange=host", "--set", "max_iter=7"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.err, R"(Ranks: \d+ % computing, \d+ % waiting for sums)"))
      << outcome.err;
}

TEST_F(GpuRanksTest, WithPartsOfABatchLearnWhatOneGpuLearns) {
  ASSERT_EQ(Train({"--gpu=0"}).exit_code, 0);
  const std::vector<float> one = Weights();
  const Outcome outcome = Train({"--gpu=1,2", "--global_batch"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(Weights(), testing::Pointwise(testing::FloatNear(kRounding), one));
}

TEST_F(GpuRanksTest, RepeatBitForBitAndGoOnFromTheirSnapshot) {
  for (const char* way : {"--exchange=host", "--exchange=nccl"}) {
    ASSERT_EQ(Train({"--gpu=0,1", "--deterministic", way}).exit_code, 0);
    const std::string whole = Bytes();
    ASSERT_EQ(Train({"--gpu=0,1", "--deterministic", way, "--snapshot=snap_iter_10.solverstate"})
                  .exit_code,
              0);
    EXPECT_EQ(Bytes(), whole);
  }
}

TEST_F(GpuRanksTest, LearnTheSameBitForBitWhetherPassesAreRecordedOrNot) {
  for (const char* how : {"--exchange=host", "--exchange=nccl", "--strategy=local"}) {
    const std::vector<std::string> common = {"--ranks=2", "--gpu=0,1", "--deterministic", how};
    std::vector<std::string> plainly = common;
    plainly.push_back("--nogpu_graph");
    const Outcome plain = Train(plainly);
    ASSERT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_THAT(plain.err, testing::Not(HasSubstr("Recorded a")));
    const std::string bytes = Bytes();
    const Outcome recorded = Train(common);
    ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
    EXPECT_THAT(recorded.err, HasSubstr("Recorded a pass of net"));
    EXPECT_EQ(Bytes(), bytes) << how;
  }
}

TEST_F(GpuRanksTest, OfCentralStorageAreUpdatedByTheHost) {
  for (const char* rule : {"type=Adam", "type=LARS", "clip_gradients=0.1"}) {
    const std::vector<std::string> common = {"--gpu=0,1", "--deterministic", "--set",
                                             rule,        "--set",           "weight_decay=0.01"};
    ASSERT_EQ(Train(common).exit_code, 0) << rule;
    const std::vector<float> synchronous = Weights();
    std::vector<std::string> central = common;
    central.push_back("--strategy=central_storage");
    const Outcome outcome = Train(central);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("KiB of weights and rule state, stored once for 2 ranks"));
    EXPECT_THAT(Weights(), testing::Pointwise(testing::FloatNear(kRounding), synchronous)) << rule;
    const std::string whole = Bytes();
    central.push_back("--snapshot=snap_iter_10.solverstate");
    ASSERT_EQ(Train(central).exit_code, 0) << rule;
    EXPECT_EQ(Bytes(), whole) << rule;
  }
}

TEST_F(GpuRanksTest, OfCentralStorageDoNotScaleTheirLoss) {
  const Outcome outcome =
      Train({"--gpu=0,1", "--strategy=central_storage", "--set", "loss_scale=8"});
  EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("cannot scale the loss")));
}

TEST_F(GpuRanksTest, NeedOneGpuEach) {
  for (const char* ranks : {"--ranks=4", "--ranks=2"}) {
    const Outcome outcome = Train({ranks, "--gpu=all"});
    EXPECT_EQ(outcome.exit_code, 64);
    EXPECT_THAT(outcome.Errors(),
                ElementsAre(AllOf(HasSubstr(std::string(ranks) + " --gpu=all: 3 GPUs and "),
                                  HasSubstr("name as many GPUs as ranks"))));
  }
  const Outcome twice = Train({"--gpu=1,1"});
  EXPECT_EQ(twice.exit_code, 64);
  EXPECT_THAT(twice.Errors(), ElementsAre(HasSubstr("--gpu=1,1: GPU 1 is named twice")));
  const Outcome absent = Train({"--gpu=0,7"});
  EXPECT_EQ(absent.exit_code, 69);
  EXPECT_THAT(absent.Errors(), ElementsAre(HasSubstr("there is no GPU 7")));
}

TEST_F(GpuRanksTest, ShareAGpuWhereAskedToAndNeverInSilence) {
  const Outcome refused = Train({"--ranks=2", "--gpu=0"});
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_THAT(refused.Errors(), ElementsAre(AllOf(HasSubstr("would use the same GPU, 0000:01:00.0"),
                                                  HasSubstr("--share_gpu"))));
  const Outcome shared = Train({"--ranks=2", "--gpu=0", "--share_gpu", "--set", "max_iter=3"});
  EXPECT_EQ(shared.exit_code, 0) << shared.err;
  EXPECT_THAT(shared.err, HasSubstr("summed by the host: because ranks share a GPU"));
}

TEST_F(GpuRanksTest, TakeTheGpuOfTheirNumberWhereTheSolverAsksForGpus) {
  job_.solver = Edited(job_.solver, "solver_mode: CPU", "solver_mode: GPU");
  const Outcome outcome = Train({"--ranks=2", "--set", "max_iter=2"}, "gpus=2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("): 0000:02:00.0"));
}

TEST_F(GpuRanksTest, SayOnceThatNcclIsNotPossible) {
  const Outcome outcome =
      Train({"--ranks=2", "--gpu=0", "--share_gpu", "--exchange=nccl", "--set", "max_iter=2"});
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("--exchange=nccl: ")));
}

// A GPU that breaks ends all ranks with its code.
TEST_F(GpuRanksTest, EndTogetherWhenAGpuIsLost) {
  for (const char* way : {"--exchange=host", "--exchange=nccl"}) {
    const Outcome outcome = Train({"--gpu=0,1", way}, "gpus=2 break=launch:100:700");
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    EXPECT_EQ(outcome.Errors().size(), 1u) << outcome.err;
  }
}

// Returns the path of the program with emulated GPUs, which is in a folder next to the other one.
std::string EmulatedPath() {
  const auto folder = std::filesystem::path(ProgramPath()).parent_path();
  return (folder / "tests/trainer_emulated").string();
}

#define SKIP_WITHOUT_MPIRUN()                                 \
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) { \
    GTEST_SKIP() << "there is no mpirun here";                \
  }

// Slurm shows each task its GPU as number 0.
TEST_F(GpuRanksTest, TakeTheOnlyOneThatTheySee) {
  SKIP_WITHOUT_MPIRUN();
  std::vector<std::string> launcher = {"mpirun",
                                       "--allow-run-as-root",
                                       "--oversubscribe",
                                       "-np",
                                       "1",
                                       "-x",
                                       "TRAINER_EMULATED_GPU=gpus=1 bus=5",
                                       EmulatedPath()};
  const std::vector<std::string> command = job_.TrainCommand({"--gpu=0", "--set", "max_iter=3"});
  launcher.insert(launcher.end(), command.begin(), command.end());
  launcher.insert(launcher.end(), {":", "-np", "1", "-x", "TRAINER_EMULATED_GPU=gpus=1 bus=6"});
  const Outcome outcome = Train({"--gpu=0", "--set", "max_iter=3"}, "gpus=1", launcher);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("): 0000:05:00.0"), HasSubstr("): 0000:06:00.0")));
}

TEST_F(GpuRanksTest, OfMpirunTakeTheGpuOfTheirNumber) {
  SKIP_WITHOUT_MPIRUN();
  const std::vector<std::string> launcher = {"mpirun", "--allow-run-as-root", "--oversubscribe",
                                             "-np", "2"};
  const Outcome outcome = Train({"--gpu=1,2", "--set", "max_iter=3"}, "gpus=3", launcher);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("): 0000:02:00.0"), HasSubstr("): 0000:03:00.0")));
  // Debian's MPI is not CUDA-aware, and says so itself.
  const Outcome refused = Train({"--gpu=1,2", "--exchange=mpi"}, "gpus=3", launcher);
  EXPECT_EQ(refused.exit_code, 69) << refused.err;
  EXPECT_THAT(refused.Errors(), ElementsAre(HasSubstr("no CUDA-aware MPI library")));
}

// The test leaves out the machine's processors, because a container may hide their counters.
TEST_F(GpuRanksTest, TheCardHasTheEnergyOfEachGpu) {
  const Outcome outcome = Train({"--gpu=0,1", "--run=run", "--deterministic"}, "gpus=2 busy=50");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const JsonValue card = ReadJson(ReadText(job_.folder() / "run/card.json"));
  const JsonValue& start = card["starts"][0];
  EXPECT_EQ(start["gpu_flags"].text, "--deterministic");
  EXPECT_EQ(start["environment"]["ranks"].number, 2);
  EXPECT_EQ(start["environment"]["libraries"]["cuDNN"].text, "9.19.0");
  std::vector<std::string> gpus;
  for (const JsonValue& part : start["energy"].items) {
    if (part["name"].text.starts_with("GPU")) gpus.push_back(part["name"].text);
  }
  EXPECT_THAT(gpus, ElementsAre("GPU 0000:01:00.0", "GPU 0000:02:00.0"));
}

}  // namespace
}  // namespace trainer
