// `trainer find-batch`, --batch and --memory of `trainer train` and `trainer plan`.

#include <cmath>
#include <regex>

#include "gpu_job.h"
#include "in_process.h"
#include "support/json_reader.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint64_t kMost = 1 << 22;

// A job with a chain of convolutions, whose outputs take most of the run's memory.
class DeepJob : public GpuJob {
 public:
  explicit DeepJob(int outputs) {
    std::string layers, from = "data";
    for (const char* name : {"c1", "c2", "c3", "c4", "c5", "c6"}) {
      layers += Join("layer { name: \"", name, "\" type: \"Convolution\" bottom: \"", from,
                     "\" top: \"", name, "\" convolution_param { num_output: ", outputs,
                     " kernel_size: 3 pad: 1 weight_filler { type: \"xavier\" } } }\n",
                     "layer { name: \"r", name, "\" type: \"ReLU\" bottom: \"", name, "\" top: \"",
                     name, "\" }\n");
      from = name;
    }
    net = Edited(net, "layer { name: \"conv\" type: \"Convolution\" bottom: \"data\"",
                 layers + "layer { name: \"conv\" type: \"Convolution\" bottom: \"c6\"");
  }
};

class FindBatchTest : public testing::Test {
 protected:
  FindBatchTest() { job_.Write(); }

  Outcome Find(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"find-batch", "--solver=solver.prototxt", "--iterations=1"};
    command.insert(command.end(), more.begin(), more.end());
    return RunHere(command, job_.options());
  }
  Outcome Plan(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"plan", "--solver=solver.prototxt", "--verbose"};
    command.insert(command.end(), more.begin(), more.end());
    return RunHere(command, job_.options());
  }
  // Returns the planned memory of the whole run.
  size_t PlannedBytes() const {
    const std::string out = Plan({"--json"}).out;
    std::smatch found;
    EXPECT_TRUE(std::regex_search(out, found, std::regex("\"together\": (\\d+)"))) << out;
    return std::stoull(found[1]);
  }
  static std::string Size(size_t bytes) { return Join(bytes / 1024, "K"); }

  DeepJob job_{16};
};

TEST_F(FindBatchTest, PrintsEachBatchTheLargestAndTheOneToTake) {
  const std::vector<std::string> before = job_.folder().Names();
  const Outcome outcome = Find({"--most=8"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("recomputed  ms/iteration  images/s"),
                                 HasSubstr("A batch of 8 (--most) fits into "),
                                 HasSubstr("The fastest is "), HasSubstr("--batch=")));
  EXPECT_EQ(job_.folder().Names(), before);
}

TEST_F(FindBatchTest, TheLargestThatFitsFitsAndTheNextStepDoesNot) {
  const size_t room = 3 * PlannedBytes();
  const Outcome outcome = Find({"--seconds=0", "--json", "--memory=" + Size(room)});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(outcome.out, found, std::regex("\"largest\": (\\d+)")));
  const int largest = std::stoi(found[1]);
  EXPECT_GT(largest, 16 * 2);
  EXPECT_THAT(outcome.out, HasSubstr("\"given\": 16"));
  EXPECT_THAT(outcome.out, HasSubstr("\"largest_was_run\": false"));
  const auto train = [&](int batch) {
    return job_.Train({Join("--batch=", batch), "--memory=" + Size(room), "--set", "max_iter=1"});
  };
  EXPECT_EQ(train(largest).exit_code, 0);
  EXPECT_EQ(train(largest + largest / 4).exit_code, 81);
}

TEST_F(FindBatchTest, TrainTakesAnotherBatchAndKeepsRatesAndFiles) {
  const Outcome outcome = job_.Train({"--batch=48"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("--batch: batch_size 48 in place of 16; base_lr 0.05 and max_iter 20 are "
                        "unchanged (3 times the batch size often needs"));
  EXPECT_THAT(ReadFile(job_.folder() / "snap_resolved.prototxt", kMost),
              HasSubstr("batch_size: 48"));
  EXPECT_EQ(ReadFile(job_.folder() / "net.prototxt", kMost), job_.net);
  // The result must be the same as with this batch in the file.
  const std::string weights = ReadFile(job_.folder() / "snap_iter_20.caffemodel", kMost);
  job_.net = Edited(job_.net, "batch_size: 16", "batch_size: 48");
  job_.Write();
  ASSERT_EQ(job_.Train().exit_code, 0);
  EXPECT_TRUE(ReadFile(job_.folder() / "snap_iter_20.caffemodel", kMost) == weights);
}

TEST_F(FindBatchTest, WhatIsNoBatchIsRefused) {
  ExpectRefused(job_, job_.Train({"--batch=12x"}), 64,
                "--batch=12x: give the number of images in a batch");
  ExpectRefused(job_, job_.Train({"--memory=much"}), 64, "--memory=much: not a memory size");
}

TEST_F(FindBatchTest, ARunThatGoesOnKeepsTheBatchThatWasFound) {
  ASSERT_EQ(job_.Train({"--batch=48", "--set", "max_iter=10"}).exit_code, 0);
  const Outcome outcome = job_.Train({"--batch=auto", "--resume=auto"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--batch: batch_size 48, which snap_resolved.prototxt has, "
                                     "in place of 16"));
}

TEST_F(FindBatchTest, LessMemoryTrainsTheSameWeights) {
  const size_t whole = PlannedBytes(), less = whole - (whole - (size_t{17} << 20)) / 8;
  ASSERT_EQ(job_.Train().exit_code, 0);
  const std::string weights = ReadFile(job_.folder() / "snap_iter_20.caffemodel", kMost);
  const Outcome outcome = job_.Train({"--memory=" + Size(less)});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.err, ", \\d outputs? computed again in backward")) << outcome.err;
  EXPECT_TRUE(ReadFile(job_.folder() / "snap_iter_20.caffemodel", kMost) == weights);
}

class GpuFillTest : public EmulatedGpuTest {};

TEST_F(GpuFillTest, ARunOnTheGpuProvesTheLargestBatch) {
  const Outcome outcome = job_.Run({"find-batch", "--solver=solver.prototxt", "--gpu=0",
                                    "--iterations=1", "--json", "--most=24"},
                                   "memory=64");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\"largest\": 24"),
                                 HasSubstr("\"largest_was_run\": true"), HasSubstr("\"best\": ")));
}

TEST_F(GpuFillTest, TheLargestBatchIsWhatTheGpuHolds) {
  const Outcome outcome = job_.Run({"find-batch", "--solver=solver.prototxt", "--gpu=0",
                                    "--iterations=1", "--json", "--most=1024"},
                                   "memory=2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(Not(HasSubstr("\"largest\": 1024")), HasSubstr("\"largest_was_run\": true")));
}

TEST_F(GpuFillTest, TheAlgorithmsOfARunAreThoseOfTheNext) {
  const Outcome first = job_.TrainOnGpu({"--gpu_cache=cache/convolutions"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string kept = ReadFile(job_.folder() / "cache/convolutions", kMost);
  EXPECT_THAT(kept, AllOf(HasSubstr("Emulated GPU, 4 multiprocessors, driver 13.0, cuDNN 91900"),
                          HasSubstr("\tforward "), HasSubstr("\tweight gradient ")));
  const Outcome second = job_.TrainOnGpu({"--gpu_cache=cache/convolutions"});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(ReadFile(job_.folder() / "cache/convolutions", kMost), kept);
  const Outcome off = job_.TrainOnGpu({"--gpu_cache=off"});
  EXPECT_EQ(off.exit_code, 0);
  EXPECT_FALSE(Exists(job_.folder() / "off"));
}

TEST_F(GpuFillTest, TheUsualPlaceIsTheUsersCacheFolder) {
  job_.Write();
  RunOptions options = job_.gpu_options();
  options.env.push_back("XDG_CACHE_HOME=" + job_.folder() / "own");
  std::vector<std::string> command = job_.TrainCommand({"--gpu=0"});
  ASSERT_EQ(RunProgram(command, options).exit_code, 0);
  EXPECT_TRUE(Exists(job_.folder() / "own/trainer/convolutions"));
}

TEST_F(GpuFillTest, RanksShareTheFile) {
  const Outcome outcome =
      job_.Run(job_.TrainCommand({"--gpu=0,1", "--gpu_cache=shared"}), "gpus=2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::istringstream lines(ReadFile(job_.folder() / "shared", kMost));
  std::set<std::string> keys;
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    ++count;
    keys.insert(line.substr(0, line.rfind('\t')));
  }
  EXPECT_GT(count, 0);
  EXPECT_EQ(keys.size(), static_cast<size_t>(count));
}

TEST_F(GpuFillTest, MetricsHaveWhatTheDriverTells) {
  const Outcome outcome = job_.TrainOnGpu({"--run=run", "--v=1"}, "busy=42 celsius=77");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string metrics = ReadFile(job_.folder() / "run/metrics.jsonl", kMost);
  EXPECT_THAT(metrics, AllOf(HasSubstr("\"event\": \"gpu\""), HasSubstr("\"busy\": 0.42"),
                             HasSubstr("\"celsius\": 77"), HasSubstr("\"memory_bytes\": ")));
  EXPECT_THAT(outcome.err, HasSubstr("    GPU: 42 % busy, "));
  EXPECT_THAT(ReadFile(job_.folder() / "run/metrics.csv", kMost), HasSubstr(",gpu/busy,0.42"));
}

TEST_F(GpuFillTest, WithoutNvmlARunIsNotWatchedAndGoesOn) {
  const Outcome outcome = job_.TrainOnGpu({"--run=run", "--v=1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("GPU use is not measured: "));
  EXPECT_THAT(ReadFile(job_.folder() / "run/metrics.jsonl", kMost),
              Not(HasSubstr("\"event\": \"gpu\"")));
}

TEST_F(GpuFillTest, LessMemoryOnTheGpuTrainsTheSameWeights) {
  const DeepJob deep(4);
  ASSERT_EQ(deep.TrainOnGpu({"--deterministic", "--set", "max_iter=3"}).exit_code, 0);
  const std::string weights = ReadFile(deep.folder() / "snap_iter_3.caffemodel", kMost);
  bool again = false;
  for (int kib = 2048; kib > 256 && !again; kib = kib * 4 / 5) {
    const Outcome outcome =
        deep.TrainOnGpu({"--deterministic", "--set", "max_iter=3", Join("--memory=", kib, "K")});
    if (outcome.exit_code == 81) break;
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    again = Finds(outcome.err, "computed again in backward");
    EXPECT_TRUE(ReadFile(deep.folder() / "snap_iter_3.caffemodel", kMost) == weights) << kib;
  }
  EXPECT_TRUE(again);
}

}  // namespace
}  // namespace trainer
