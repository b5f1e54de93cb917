// `trainer find-lr`: the initial learning rate.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class FindLrTest : public testing::Test {
 protected:
  FindLrTest() { job_.Write(); }
  std::vector<std::string> Command(std::vector<std::string> more) const {
    more.insert(more.begin(), {"find-lr", "--solver=solver.prototxt", "--iterations=60"});
    return more;
  }
  Outcome Find(const std::vector<std::string>& more) const {
    return RunHere(Command(more), job_.options());
  }

  // Returns the advised learning rate.
  static double Advised(const Outcome& outcome) {
    const std::string mark = "\nAdvice: base_lr: ";
    const size_t at = outcome.out.find(mark);
    EXPECT_NE(at, std::string::npos) << outcome.out << outcome.err;
    return at == std::string::npos ? 0 : std::stod(outcome.out.substr(at + mark.size()));
  }

  Job job_;
};

TEST_F(FindLrTest, AdvisesARateAndWritesNothing) {
  const std::vector<std::string> before = job_.folder().Names();
  const Outcome outcome = Find({"--from=1e-5", "--to=100"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(Advised(outcome), 1e-4);
  EXPECT_LT(Advised(outcome), 1);
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith("iteration"), HasSubstr("falls steepest"), HasSubstr("lowest"),
                    HasSubstr(" and diverges at "), HasSubstr("--set base_lr=")));
  EXPECT_EQ(job_.folder().Names(), before);
}

TEST_F(FindLrTest, RanksFindWhatOneFinds) {
  const std::vector<std::string> range = {"--from=1e-5", "--to=10", "--json"};
  const auto rate = [&](std::vector<std::string> more) {
    more.insert(more.end(), range.begin(), range.end());
    const Outcome outcome = RunProgram(Command(more), job_.options());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string mark = "\"base_lr\": ";
    return std::stod(outcome.out.substr(outcome.out.find(mark) + mark.size()));
  };
  const double alone = rate({}), ranks = rate({"--ranks=2", "--global_batch"});
  EXPECT_NEAR(ranks, alone, 0.1 * alone);
  EXPECT_THAT(job_.Files("snap"), testing::IsEmpty());
}

TEST_F(FindLrTest, OnAGpuAsWell) {
  if (!HasEmulatedGpu()) GTEST_SKIP() << "this build has no emulated GPU";
  RunOptions options = job_.options();
  options.emulated_gpu = true;
  const Outcome outcome =
      RunProgram(Command({"--from=1e-4", "--to=10", "--iterations=20", "--gpu=0"}), options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(Advised(outcome), 0);
}

TEST_F(FindLrTest, WritesACurveAndReplacesNoFileUnasked) {
  EXPECT_EQ(Find({"--from=1e-4", "--to=0.01", "--out=curve.svg"}).exit_code, 0);
  EXPECT_THAT(ReadText(job_.folder() / "curve.svg"), StartsWith("<svg "));
  EXPECT_EQ(Find({"--from=1e-4", "--to=0.01", "--out=curve.csv"}).exit_code, 0);
  EXPECT_THAT(ReadText(job_.folder() / "curve.csv"), StartsWith("iteration,rate,"));
  const Outcome again = Find({"--out=curve.csv"});
  EXPECT_EQ(again.exit_code, 73);
  EXPECT_THAT(again.Errors(), testing::ElementsAre(HasSubstr("--force to replace it")));
  ExpectRefused(job_, Find({"--out=curve.png"}), 64, "--out=curve.png must end in .svg");
  ExpectRefused(job_, Find({"--from=soon"}), 64,
                "--from=soon: a learning rate is a number above 0");
}

}  // namespace
}  // namespace trainer
