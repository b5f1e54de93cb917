// `trainer find-lr`: the rate to start with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class FindLrTest : public testing::Test {
 protected:
  FindLrTest() { job_.Write(); }
  Outcome Find(const std::vector<std::string>& more, RunOptions options) const {
    std::vector<std::string> command = {"find-lr", "--solver=solver.prototxt", "--iterations=60"};
    command.insert(command.end(), more.begin(), more.end());
    options.folder = job_.folder().path();
    return RunProgram(command, options);
  }
  Outcome Find(const std::vector<std::string>& more) const { return Find(more, job_.options()); }

  // The rate of the advice.
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

TEST_F(FindLrTest, ALossThatIsNotFiniteEndsTheCurve) {
  const Outcome outcome = Find({"--from=1e-4", "--to=1e30", "--iterations=100"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("diverge"));
  const Outcome early = Find({"--from=1e25", "--to=1e30"});
  EXPECT_EQ(early.exit_code, 80);
  EXPECT_THAT(early.Errors(), testing::ElementsAre(HasSubstr("try a lower --from")));
}

TEST_F(FindLrTest, SaysWhereTheRangeIsWrong) {
  EXPECT_THAT(Find({"--from=1e-12", "--to=1e-11"}).out,
              HasSubstr("No advice: the loss does not fall between the learning rates 1e-12 and "
                        "1e-11"));
  EXPECT_THAT(Find({"--from=1e-4", "--to=0.03"}).out, HasSubstr("so try a --to above 0.03"));
}

TEST_F(FindLrTest, RanksFindWhatOneFinds) {
  const std::vector<std::string> range = {"--from=1e-5", "--to=10", "--json"};
  const auto rate = [&](std::vector<std::string> more) {
    more.insert(more.end(), range.begin(), range.end());
    const Outcome outcome = Find(more);
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
  const Outcome outcome = Find({"--from=1e-4", "--to=10", "--iterations=20", "--gpu=0"}, options);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(Advised(outcome), 0);
}

TEST_F(FindLrTest, DrawsAndTabulatesWhatItFound) {
  EXPECT_EQ(Find({"--from=1e-4", "--out=curve.svg"}).exit_code, 0);
  const std::string svg = ReadText(job_.folder() / "curve.svg");
  EXPECT_THAT(svg, AllOf(StartsWith("<svg "), HasSubstr("<polyline "),
                         HasSubstr("falls steepest at "), testing::EndsWith("</svg>\n")));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(Find({"--from=1e-4", "--to=0.01", "--out=curve.csv"}).exit_code, 0);
  const std::vector<std::string> lines = SplitList(ReadText(job_.folder() / "curve.csv"), '\n');
  EXPECT_EQ(lines.size(), 61u);
  EXPECT_EQ(lines[0], "iteration,rate,loss,smoothed");
  EXPECT_THAT(lines[1], StartsWith("0,0.0001,"));
  const Outcome again = Find({"--out=curve.csv"});
  EXPECT_EQ(again.exit_code, 73);
  EXPECT_THAT(again.Errors(), testing::ElementsAre(HasSubstr("--force to replace it")));
}

TEST_F(FindLrTest, RefusesWhatIsNoRange) {
  ExpectRefused(job_, Find({"--from=soon"}), 64,
                "--from=soon: a learning rate is a number above 0");
  ExpectRefused(job_, Find({"--to=-1"}), 64, "--to=-1: a learning rate is a number above 0");
  ExpectRefused(job_, Find({"--from=1", "--to=0.1"}), 64,
                "--from=1 --to=0.1: the learning rate rises");
  ExpectRefused(job_, Find({"--scale_lr"}), 64, "--scale_lr: find-lr tries learning rates for");
  ExpectRefused(job_, Find({"--out=curve.png"}), 64, "--out=curve.png must end in .svg");
}

// Both drop the tests that keep_best and patience compare.
TEST_F(FindLrTest, SolversThatKeepTheBestAreMeasuredAsWell) {
  job_.solver += "keep_last: 1\nkeep_best: 1\npatience: 2\nbest_output: \"accuracy\"\n";
  job_.Write();
  EXPECT_EQ(Find({"--from=1e-4"}).exit_code, 0);
  const Outcome time =
      RunProgram({"time", "--solver=solver.prototxt", "--iterations=1"}, job_.options());
  EXPECT_EQ(time.exit_code, 0) << time.err;
}

}  // namespace
}  // namespace trainer
