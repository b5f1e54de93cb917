// The card of a run, and `trainer report --check`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"
#include "support/json_reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class RunCardVerbTest : public testing::Test {
 protected:
  Outcome Run(const std::vector<std::string>& command) const {
    return RunHere(command, job_.options());
  }
  JsonValue Card(const std::string& folder) const {
    return ReadJson(ReadText(job_.folder() / (folder + "/card.json")));
  }

  Job job_;
};

TEST_F(RunCardVerbTest, ARepeatedRunHasNoDifferenceThatAffectsResults) {
  ASSERT_EQ(job_.Train({"--run=a"}).exit_code, 0);
  ASSERT_EQ(job_.Train({"--run=b", "--set", "snapshot_prefix=other"}).exit_code, 0);
  const JsonValue card = Card("a");
  EXPECT_EQ(card["state"].text, "finished");
  EXPECT_EQ(card["records"].number, 20 * 16);
  EXPECT_EQ(card["results"]["best_test"]["output"].text, "accuracy");
  EXPECT_EQ(card["starts"][0]["seed"].text, "7");
  EXPECT_EQ(card["starts"][0]["data"].size(), 2u);
  const Outcome check = Run({"report", "--check", "a", "b"});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  EXPECT_THAT(check.out, HasSubstr("no effect        solver snapshot_prefix: "));
  EXPECT_THAT(check.out, EndsWith(", none of them affects results\n"));
  EXPECT_THAT(check.out, Not(HasSubstr("result           weights")))
      << "the runs have the same weights";
}

TEST_F(RunCardVerbTest, AnotherRateAffectsResults) {
  ASSERT_EQ(job_.Train({"--run=a"}).exit_code, 0);
  ASSERT_EQ(job_.Train({"--run=b", "--set", "base_lr=0.01"}).exit_code, 0);
  const Outcome check = Run({"report", "--check", "a", "b"});
  EXPECT_EQ(check.exit_code, 76) << check.out << check.err;
  EXPECT_THAT(check.out, testing::StartsWith("affects results  solver base_lr: 0.05 -> 0.01\n"));
  EXPECT_THAT(check.out, HasSubstr(", 1 of them affects results\n"));
}

TEST_F(RunCardVerbTest, AStopWithAResumeHasNoEffect) {
  ASSERT_EQ(job_.Train({"--run=a"}).exit_code, 0);
  ASSERT_EQ(job_.Train({"--run=b", "--set", "snapshot_prefix=other"}).exit_code, 0);
  ASSERT_EQ(job_.Train({"--run=b", "--set", "snapshot_prefix=other",
                        "--snapshot=other_iter_10.solverstate"})
                .exit_code,
            0);
  const JsonValue card = Card("b");
  ASSERT_EQ(card["starts"].size(), 2u);
  EXPECT_EQ(card["starts"][1]["parent"]["file"].text, "other_iter_10.solverstate");
  const Outcome check = Run({"report", "--check", "a", "b"});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  EXPECT_THAT(check.out, HasSubstr("result           starts: 1 -> 2\n"));
}

TEST_F(RunCardVerbTest, TheReportShowsTheCard) {
  ASSERT_EQ(job_.Train({"--run=a"}).exit_code, 0);
  const Outcome outcome = Run({"report", "a", "--out=page.html", "--carbon=400"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(ReadText(job_.folder() / "page.html"), HasSubstr("<summary>Run card</summary>"));
}

TEST_F(RunCardVerbTest, WrongCommandsAreRefused) {
  job_.Write();
  const auto refuses = [&](const std::vector<std::string>& command, int code,
                           const std::string& text) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.exit_code, code) << text;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(text)));
  };
  refuses({"report", "--check", "a"}, 64,
          "--check compares two runs, but 1 is given: trainer report --check RUN RUN");
  refuses({"report", "--check", "a", "b", "c"}, 64, "--check compares two runs, but 3 are given");
  refuses({"report", "--check", "a", "b", "--out=x.html"}, 64,
          "--check and --out cannot both be given: --check prints the differences");
  refuses({"report", "a"}, 64, "'trainer report' needs --out=FILE, the HTML file to write");
  refuses({"report", "a", "--out=x.html", "--carbon=-1"}, 64,
          "--carbon=-1: give grams of CO2 per kWh, from 0 on");
  refuses({"report", "--check", "a", "b"}, 66, "/a: there is no such file or folder.");
  refuses({"report", "a", "--out=x.html"}, 66,
          "/a: there is no such file or folder. 'trainer train --run=DIR' makes the folder of a "
          "run");
  refuses({"report", "data", "--out=x.html"}, 66,
          "/data: this folder has no metrics.jsonl, so it is not the folder of a run; 'trainer "
          "train --run=DIR' makes such a folder");
  refuses({"report", "--check", "net.prototxt", "data"}, 66,
          "/net.prototxt: this is a file; give the folder of a run");
}

}  // namespace
}  // namespace trainer
