// Training on an emulated GPU with the commands that users run.

#include <csignal>
#include <regex>
#include <sstream>

#include "gpu_job.h"
#include "in_process.h"
#include "support/json_reader.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class GpuTrainTest : public EmulatedGpuTest {
 protected:
  // Returns the losses and accuracies in the log, of training and tests.
  static std::vector<double> Losses(const Outcome& outcome) {
    static const std::regex pattern(R"((?:, loss|loss|accuracy) = ([-+.\w]+))");
    std::vector<double> losses;
    const auto end = std::sregex_iterator();
    for (auto at = std::sregex_iterator(outcome.err.begin(), outcome.err.end(), pattern); at != end;
         ++at) {
      losses.push_back(std::stod((*at)[1]));
    }
    return losses;
  }
  static void ExpectClose(const Outcome& a, const Outcome& b) {
    EXPECT_THAT(Losses(a), testing::Pointwise(testing::DoubleNear(2e-3), Losses(b)));
  }
  std::string Weights(int iter) const {
    return ReadText(job_.folder() / ("snap_iter_" + std::to_string(iter) + ".caffemodel"));
  }
};

TEST_F(GpuTrainTest, LearnsAsOnTheCpuAndSaysWhereItRuns) {
  const Outcome gpu = job_.TrainOnGpu();
  ASSERT_EQ(gpu.exit_code, 0) << gpu.err;
  EXPECT_TRUE(Finds(gpu.err, R"(\] Use GPU 0: Emulated GPU, )")) << gpu.err;
  EXPECT_THAT(gpu.err, Not(HasSubstr("Use CPU.")));
  const Outcome cpu = job_.Train();
  EXPECT_THAT(Losses(cpu), SizeIs(testing::Gt(10u)));
  ExpectClose(gpu, cpu);
}

TEST_F(GpuTrainTest, AdamAndAveragedWeightsLearnAsOnTheCpu) {
  job_.solver = Edited(job_.solver, "momentum: 0.9", "type: \"Adam\" ema_decay: 0.9 iter_size: 2");
  job_.solver = Edited(job_.solver, "base_lr: 0.05", "base_lr: 0.001 clip_gradients: 5");
  ExpectClose(job_.TrainOnGpu(), job_.Train());
}

TEST_F(GpuTrainTest, In16BitsLearnsToo) {
  for (const char* type : {"BFLOAT16", "FLOAT16"}) {
    const std::vector<std::string> flags = {"--set", std::string("default_forward_type=") + type};
    const Outcome gpu = job_.TrainOnGpu(flags), cpu = job_.Train(flags);
    ASSERT_EQ(gpu.exit_code, 0) << gpu.err;
    EXPECT_THAT(Losses(gpu), testing::Pointwise(testing::DoubleNear(0.1), Losses(cpu))) << type;
    EXPECT_THAT(gpu.err, Not(HasSubstr("has the effect of")));
  }
}

TEST_F(GpuTrainTest, TheCpuTakesFloat16AsBFloat16AndSaysSoOnce) {
  job_.net = "default_forward_type: FLOAT16\n" + job_.net;
  // This needs a new process, because other tests in this one may have logged the message already.
  const Outcome cpu = job_.TrainAsProcess({"--set", "max_iter=1"});
  ASSERT_EQ(cpu.exit_code, 0) << cpu.err;
  const std::string said = "net.prototxt:1:1: on the CPU, FLOAT16 values are stored as BFLOAT16";
  ASSERT_THAT(cpu.err, HasSubstr(said));
  EXPECT_EQ(cpu.err.find(said), cpu.err.rfind(said));
}

TEST_F(GpuTrainTest, LayersThatNoLibraryComputesAreWarnedOf) {
  const std::vector<std::string> one = {"--set", "max_iter=1"};
  EXPECT_THAT(job_.TrainOnGpu(one).err, Not(HasSubstr("own kernels on the GPU")));
  const Outcome outcome = job_.TrainOnGpu(one, "refuse=cublasLtMatmulAlgo");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("slower than those of cuDNN and cuBLAS: 'ip'; the first one "
                                     "because of net.prototxt:"));
  EXPECT_THAT(outcome.err, HasSubstr(": cublasLt: it has no algorithm for this; 'trainer "));
}

TEST_F(GpuTrainTest, AConvolutionWithoutAWeightGradientOfCudnnIsWarnedOf) {
  const Outcome outcome =
      job_.TrainOnGpu({"--set", "max_iter=1"}, "refuse=cudnnGetConvolutionBackwardFilter");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.err,
                    "slower than those of cuDNN and cuBLAS: 'conv'; the first one because of "
                    "net.prototxt:[0-9:]+: weight gradient: cuDNN: it has no algorithm for this; "))
      << outcome.err;
}

TEST_F(GpuTrainTest, TheFlagWinsOverTheSolver) {
  job_.solver = Edited(job_.solver, "solver_mode: CPU", "solver_mode: GPU device_id: 1");
  const std::vector<std::string> one = job_.TrainCommand({"--set", "max_iter=1"});
  EXPECT_THAT(job_.Run(one, "gpus=2").err, HasSubstr("Use GPU 1: "));
  std::vector<std::string> other = one;
  other.push_back("--gpu=0");
  EXPECT_THAT(job_.Run(other, "gpus=2").err, HasSubstr("Use GPU 0: "));
  job_.solver = Edited(job_.solver, "solver_mode: GPU device_id: 1", "");
  EXPECT_THAT(job_.Run(one, "gpus=2").err, HasSubstr("Use CPU."));
}

TEST_F(GpuTrainTest, AllMeansTheOnlyGpuAndOtherVerbsTakeNoMore) {
  const std::vector<std::string> command = job_.TrainCommand({"--set", "max_iter=1", "--gpu=all"});
  EXPECT_THAT(job_.Run(command).err, HasSubstr("Use GPU 0: "));
  for (const char* flag : {"--gpu=all", "--gpu=0,1"}) {
    const Outcome several = job_.Run({"time", "--solver=solver.prototxt", flag}, "gpus=2");
    EXPECT_EQ(several.exit_code, 69);
    EXPECT_THAT(several.Errors(),
                ElementsAre(StartsWith(std::string(flag) + ": only 'train' can use several GPUs")));
  }
}

TEST_F(GpuTrainTest, NvidiasChoiceOfMathIsTakenAsTf32) {
  job_.net = "default_cudnn_math_override: 1\n" + job_.net;
  const std::vector<std::string> one = {"--set", "max_iter=1"};
  EXPECT_THAT(
      job_.TrainOnGpu(one).err,
      HasSubstr("net.prototxt:1:1: default_cudnn_math_override: 1 has the effect of --tf32"));
  EXPECT_THAT(job_.TrainOnGpu({"--set", "max_iter=1", "--notf32"}).err,
              Not(HasSubstr("has the effect of")));
  job_.net = Edited(job_.net, "math_override: 1", "math_override: 0");
  EXPECT_THAT(job_.TrainOnGpu(one).err, HasSubstr("has the effect of --notf32"));
}

TEST_F(GpuTrainTest, StepsAreRecordedAndLearnTheSameBitForBit) {
  const Outcome recorded = job_.TrainOnGpu({"--deterministic"});
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  EXPECT_TRUE(
      Finds(recorded.err,
            R"(\] Recorded a step of net '\w*' from layer 'conv' on as a CUDA graph: \d+ )"))
      << recorded.err;
  const std::string weights = Weights(20);
  const Outcome plain = job_.TrainOnGpu({"--deterministic", "--nogpu_graph"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.err, Not(HasSubstr("Recorded a ")));
  EXPECT_EQ(Losses(plain), Losses(recorded));
  EXPECT_EQ(Weights(20), weights);
}

TEST_F(GpuTrainTest, ScalesTheLossAndSaysSo) {
  const Outcome plain = job_.TrainOnGpu({"--deterministic"});
  const std::string weights = Weights(20);
  const Outcome scaled = job_.TrainOnGpu({"--deterministic", "--set", "loss_scale=256"});
  ASSERT_EQ(scaled.exit_code, 0) << scaled.err;
  EXPECT_THAT(scaled.err, HasSubstr("    Loss scale: 256, 0 updates skipped"));
  EXPECT_EQ(Losses(scaled), Losses(plain));
  EXPECT_EQ(Weights(20), weights);
}

TEST_F(GpuTrainTest, GoesOnBitForBitAndOnTheOtherDevice) {
  const Outcome whole = job_.TrainOnGpu({"--deterministic"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const std::string weights = Weights(20);
  const Outcome resumed =
      job_.TrainOnGpu({"--deterministic", "--snapshot=snap_iter_10.solverstate"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(Weights(20), weights);
  const Outcome on_cpu = job_.Train({"--snapshot=snap_iter_10.solverstate"});
  ASSERT_EQ(on_cpu.exit_code, 0) << on_cpu.err;
  ExpectClose(on_cpu, resumed);
  ASSERT_EQ(job_.Train().exit_code, 0);
  const Outcome from_cpu = job_.TrainOnGpu({"--snapshot=snap_iter_10.solverstate"});
  ASSERT_EQ(from_cpu.exit_code, 0) << from_cpu.err;
  ExpectClose(from_cpu, on_cpu);
}

TEST_F(GpuTrainTest, SigtermSavesAndTheRunGoesOn) {
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 1000000");
  job_.Write();
  std::vector<std::string> command = job_.TrainCommand({"--gpu=0", "--resume=auto"});
  RunningProgram run(command, job_.gpu_options());
  run.WaitForLine("Iteration 5 ");
  run.Signal(SIGTERM);
  const Outcome stopped = run.Wait();
  EXPECT_EQ(stopped.exit_code, 75) << stopped.err;
  EXPECT_THAT(job_.Files("."), IsEmpty());
  RunningProgram again(command, job_.gpu_options());
  EXPECT_THAT(again.WaitForLine("Resuming from"), HasSubstr("snap_iter_"));
  again.WaitForLine("Iteration ");
  again.Signal(SIGKILL);
  EXPECT_EQ(again.Wait().signal, SIGKILL);
}

TEST_F(GpuTrainTest, OtherVerbsComputeThereToo) {
  ASSERT_EQ(job_.TrainOnGpu({"--set", "max_iter=10"}).exit_code, 0);
  const std::string weights = "--weights=snap_iter_10.caffemodel", net = "--model=net.prototxt";
  const auto both = [&](std::vector<std::string> command) {
    const Outcome cpu = RunHere(command, job_.options());
    EXPECT_EQ(cpu.exit_code, 0) << cpu.err;
    command.push_back("--gpu=0");
    const Outcome gpu = job_.Run(command);
    EXPECT_EQ(gpu.exit_code, 0) << gpu.err;
    return std::pair(cpu, gpu);
  };
  const auto [cpu_test, gpu_test] = both({"test", net, weights, "--iterations=2", "--confusion"});
  EXPECT_EQ(gpu_test.out, cpu_test.out);
  EXPECT_THAT(gpu_test.err, HasSubstr("Use GPU 0: "));
  ExpectClose(gpu_test, cpu_test);
  both({"features", net, weights, "--blobs=ip", "--out=f.h5", "--iterations=1", "--force"});
  const auto [cpu_time, gpu_time] = both({"time", "--solver=solver.prototxt", "--iterations=2"});
  EXPECT_TRUE(Finds(gpu_time.out, R"(\nlayer [^\n]* kernels +bwd\n)")) << gpu_time.out;
  EXPECT_TRUE(Finds(gpu_time.out, R"(\nconv( +[\d.]+%?)+ +\d+ +\d+\n)")) << gpu_time.out;
  EXPECT_TRUE(Finds(gpu_time.out, R"(\ncuDNN algorithm \d[^\n]*\n(?:[^ ][^\n]*\n)?    conv\n)"))
      << gpu_time.out;
  EXPECT_FALSE(Finds(gpu_time.out, R"(\n[^\n]{81})")) << gpu_time.out;
  const auto [cpu_check, gpu_check] = both({"check", "--solver=solver.prototxt"});
  EXPECT_TRUE(Finds(gpu_check.out, R"(\nGPU memory +\S+ [KM]iB, \S+ [GM]iB are free: )"))
      << gpu_check.out;
}

TEST_F(GpuTrainTest, ClassifiesAndInspectsAPicture) {
  WriteText(job_.folder() / "a.pgm", "P5 28 28 255\n" + std::string(784, '\x40'));
  ASSERT_EQ(job_.TrainOnGpu({"--set", "max_iter=10"}).exit_code, 0);
  ASSERT_EQ(RunHere({"deploy", "--model=net.prototxt", "--out=deploy.prototxt"}, job_.options())
                .exit_code,
            0);
  const std::regex digits(R"((\.\d{3})\d+)");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"predict", "--json"},
        std::vector<std::string>{"inspect", "--force", "--out=page.html"}}) {
    std::vector<std::string> command = words;
    command.insert(command.end(),
                   {"--model=deploy.prototxt", "--weights=snap_iter_10.caffemodel", "a.pgm"});
    const Outcome cpu = RunHere(command, job_.options());
    command.push_back("--gpu=0");
    const Outcome gpu = job_.Run(command);
    ASSERT_EQ(gpu.exit_code, 0) << gpu.err;
    EXPECT_EQ(std::regex_replace(gpu.out, digits, "$1"), std::regex_replace(cpu.out, digits, "$1"));
  }
  EXPECT_THAT(ReadText(job_.folder() / "page.html"), HasSubstr("saliency of "));
}

TEST_F(GpuTrainTest, DeviceQueryAndPlanShowIt) {
  const Outcome all = job_.Run({"device_query"}, "gpus=2 memory=2048");
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_TRUE(Finds(all.out, R"(\nGPU 0: +Emulated GPU, at )")) << all.out;
  EXPECT_TRUE(Finds(all.out, R"(\nGPU 1: +Emulated GPU, at )")) << all.out;
  EXPECT_TRUE(Finds(all.out, R"(\n  memory: +2\.00 GiB, 2\.00 GiB free)")) << all.out;
  EXPECT_TRUE(Finds(all.out, R"(\n  compute: +capability 8\.0, 4 multiprocessors)")) << all.out;
  EXPECT_TRUE(Finds(all.out, R"(\nCUDA: +runtime 13\.0, driver for 13\.0)")) << all.out;
  EXPECT_TRUE(Finds(all.out, R"(\nNCCL: +emulated\nNVML: +not found\n)")) << all.out;
  const Outcome watched = job_.Run({"device_query"}, "busy=5");
  EXPECT_TRUE(Finds(watched.out, R"(\nNVML: +of driver 580\.00\.01\n)")) << watched.out;
  std::istringstream lines(all.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  const Outcome one = job_.Run({"device_query", "--gpu=1", "--json"}, "gpus=2");
  const JsonValue json = ReadJson(one.out);
  ASSERT_EQ(json["gpus"].size(), 1u);
  EXPECT_EQ(json["gpus"][0]["id"].number, 1);
  EXPECT_EQ(json["gpus"][0]["memory_bytes"].number, 1 << 30);
  EXPECT_EQ(job_.Run({"device_query", "--gpu=2"}, "gpus=2").exit_code, 69);
  const Outcome plan = job_.Run({"plan", "--solver=solver.prototxt", "--gpu=0"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out,
              AllOf(HasSubstr(" of memory fits into GPU 0, with "), Not(HasSubstr("estimate"))));
}

}  // namespace
}  // namespace trainer
