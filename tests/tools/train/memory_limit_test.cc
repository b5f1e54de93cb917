// Runs that need more memory than they have: the program refuses them with the need, the limit and
// a batch that fits, before the system kills them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "job.h"
#include "support/memory_group.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A run on digits in a control group of 128 MiB.
class MemoryLimitTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!group_.made()) GTEST_SKIP() << "limiting memory needs root and control groups, version 1";
    SetBatch(16);
  }

  // Sets the batch of the training net.
  void SetBatch(int batch) {
    Job fresh;
    job_.net = Edited(fresh.net, "batch_size: 16", "batch_size: " + std::to_string(batch));
    job_.Write();
  }

  Outcome Run(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) const {
    RunOptions options = job_.options();
    options.launcher = {"sh", "-c", "echo 0 >\"$0\" && exec \"$@\"", group_.entry()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments, options);
  }
  Outcome Train(const std::vector<std::string>& more = {}) const {
    return Run(job_.TrainCommand(), more);
  }

  // Returns the batch in an advice like "batches of about 123 would".
  static int BatchIn(const std::string& text) {
    std::smatch found;
    const std::regex pattern("atch(?:es\\sof\\sabout|\\sof)\\s(\\d+)\\swould");
    return std::regex_search(text, found, pattern) ? std::stoi(found[1]) : 0;
  }

  MemoryGroup group_{128 * kMiB};
  Job job_;
};

TEST_F(MemoryLimitTest, ARunThatFitsTrains) {
  const Outcome outcome = Train();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

// The values alone would fit, but the batches that are read ahead need more.
TEST_F(MemoryLimitTest, ARunThatDoesNotFitIsRefusedAndTheBatchThatItNamesTrains) {
  SetBatch(12000);
  const Outcome outcome = Train();
  EXPECT_EQ(outcome.exit_code, 81) << outcome.err << " signal " << outcome.signal;
  ASSERT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("the run needs "),
                                HasSubstr("the control group " + group_.name()),
                                HasSubstr(" has 128.0 MiB; the largest parts: batches read ahead "),
                                HasSubstr(" would fit instead of 12000; request more memory"))));
  const int batch = BatchIn(outcome.err);
  ASSERT_GT(batch, 16) << outcome.err;
  EXPECT_LT(batch, 12000);
  SetBatch(batch * 9 / 10);
  const Outcome smaller = Train();
  EXPECT_EQ(smaller.exit_code, 0) << smaller.err << " signal " << smaller.signal;
}

TEST_F(MemoryLimitTest, ANetThatDoesNotFitIsRefusedBeforeItIsMade) {
  SetBatch(100000);
  const Outcome outcome = Train();
  EXPECT_EQ(outcome.exit_code, 81) << outcome.err << " signal " << outcome.signal;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("net.prototxt:"), HasSubstr("the net needs "),
                                HasSubstr("the control group " + group_.name() + " has 128 MiB"),
                                HasSubstr("of its 100000 items about "))));
}

TEST_F(MemoryLimitTest, RanksShareTheLimit) {
  SetBatch(3000);
  EXPECT_EQ(Train().exit_code, 0);
  const Outcome outcome = Train({"--ranks=2"});
  EXPECT_EQ(outcome.exit_code, 81) << outcome.err << " signal " << outcome.signal;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr("each of 2 ranks' part of the control group "),
                                HasSubstr(" has 64.0 MiB"))));
}

TEST_F(MemoryLimitTest, APlanSaysWhetherItFits) {
  const std::vector<std::string> plan = {"plan", "--solver=solver.prototxt"};
  const Outcome fits = Run(plan);
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_TRUE(Finds(fits.out, " of memory fits\\sinto\\sthe\\scontrol\\sgroup\\s" + group_.name()))
      << fits.out;
  SetBatch(100000);
  const Outcome outcome = Run(plan);
  EXPECT_EQ(outcome.exit_code, 81) << outcome.err;
  EXPECT_THAT(outcome.Errors(), IsEmpty());
  EXPECT_THAT(outcome.out, HasSubstr("does not fit into the control group " + group_.name()));
  EXPECT_GT(BatchIn(outcome.out), 16);
  EXPECT_EQ(Run(plan, {"--limit=64GiB"}).exit_code, 0) << "of another machine";
}

}  // namespace
}  // namespace trainer
