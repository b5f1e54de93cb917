// The search for a learning rate, and its report.

#include "trainer/run/search/lr_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/current_folder.h"
#include "support/digits_job.h"
#include "support/error_of.h"
#include "trainer/base/text/text.h"
#include "trainer/run/search/lr_report.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

class LrSearchTest : public testing::Test {
 protected:
  LrSearchTest() { request_.solver.file = "solver.prototxt"; }

  LrRangeResult Find(double from, double to, int iterations = 60) const {
    job_.Write();
    const CurrentFolder here(job_.folder().path());
    LrRangeResult found;
    EXPECT_EQ(FindLearningRate(request_, {from, to, iterations},
                               [&](const LrRangeResult& result) { found = result; }),
              0);
    return found;
  }
  // Returns the learning rate that the advice names.
  static double Advised(const LrRangeResult& result) {
    const std::string mark = "Advice: base_lr: ", text = LrAdvice(result);
    EXPECT_THAT(text, StartsWith(mark));
    return text.starts_with(mark) ? std::stod(text.substr(mark.size())) : 0;
  }

  DigitsJob job_;
  TrainRequest request_;
};

TEST_F(LrSearchTest, AdvisesALearningRateAndWritesNothing) {
  job_.Write();
  const std::vector<std::string> before = job_.folder().Names();
  const LrRangeResult result = Find(1e-5, 100);
  EXPECT_GT(Advised(result), 1e-4);
  EXPECT_LT(Advised(result), 1);
  EXPECT_TRUE(result.diverged);
  EXPECT_THAT(ToText(result),
              AllOf(StartsWith("iteration"), HasSubstr("falls steepest"), HasSubstr("lowest"),
                    HasSubstr("diverge"), HasSubstr("--solver=solver.prototxt --set base_lr=")));
  EXPECT_EQ(job_.folder().Names(), before);
}

TEST_F(LrSearchTest, ALossThatIsNotFiniteEndsTheTest) {
  EXPECT_TRUE(Find(1e-4, 1e30, 100).diverged);
  EXPECT_THAT(ErrorOf([&] { Find(1e25, 1e30); }),
              Pair(ErrorCode::kDiverged, HasSubstr("try a lower --from")));
}

TEST_F(LrSearchTest, SaysIfTheRangeIsWrong) {
  EXPECT_THAT(LrAdvice(Find(1e-12, 1e-11)),
              HasSubstr("No advice: the loss does not fall between the learning rates 1e-12 and "
                        "1e-11"));
  EXPECT_THAT(LrAdvice(Find(1e-4, 0.03)), HasSubstr("so try a --to above 0.03"));
}

TEST_F(LrSearchTest, DrawsAndTabulatesTheLosses) {
  const LrRangeResult result = Find(1e-4, 1);
  const std::string svg = ToSvg(result);
  EXPECT_THAT(svg, AllOf(StartsWith("<svg "), HasSubstr("<polyline "),
                         HasSubstr("falls steepest at "), HasSubstr(">learning rate</text>"),
                         HasSubstr(">0.001</text>"), testing::EndsWith("</svg>\n")));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  const std::vector<std::string> lines = SplitList(ToCsv(Find(1e-4, 0.01)), '\n');
  EXPECT_EQ(lines.size(), 61u);
  EXPECT_EQ(lines[0], "iteration,rate,loss,smoothed");
  EXPECT_THAT(lines[1], StartsWith("0,0.0001,"));
}

TEST_F(LrSearchTest, RefusesRequestsThatMakeNoSense) {
  request_.ranks.scale_lr = true;
  EXPECT_THAT(ErrorOf([&] { Find(1e-4, 1); }),
              Pair(ErrorCode::kUsage,
                   StartsWith("--scale_lr: find-lr tries learning rates for the batch of all")));
  request_.ranks.scale_lr = false;
  request_.batch = "auto";
  EXPECT_THAT(ErrorOf([&] { Find(1e-4, 1); }),
              Pair(ErrorCode::kUsage, StartsWith("--batch=auto: find-lr needs a number")));
}

// The search drops the tests that keep_best and patience compare.
TEST_F(LrSearchTest, WorksForSolversThatKeepTheBestSnapshot) {
  job_.solver += "keep_last: 1\nkeep_best: 1\npatience: 2\nbest_output: \"accuracy\"\n";
  EXPECT_GE(Find(1e-4, 1).points.size(), LrRangeTest::kFewest);
}

TEST(ParseLrRangeTest, RefusesTextsThatAreNoRange) {
  const auto refused = [](const char* from, const char* to, const std::string& start) {
    EXPECT_THAT(ErrorOf([&] { ParseLrRange(from, to, 10); }),
                Pair(ErrorCode::kUsage, StartsWith(start)));
  };
  refused("soon", "1", "--from=soon: a learning rate is a number above 0");
  refused("1", "-1", "--to=-1: a learning rate is a number above 0");
  refused("1", "0.1", "--from=1 --to=0.1: the learning rate rises");
  EXPECT_EQ(ParseLrRange("1e-6", "0.5", 10).to, 0.5);
}

}  // namespace
}  // namespace trainer
