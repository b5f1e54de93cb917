// `trainer plan --ranks` and `trainer bench-comm`; tests/analysis/ checks the model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "in_process.h"
#include "job.h"
#include "support/json_reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class PlanRanksTest : public testing::Test {
 protected:
  PlanRanksTest() { job_.Write(); }

  Outcome Run(std::vector<std::string> command, const std::vector<std::string>& more = {}) const {
    command.insert(command.end(), more.begin(), more.end());
    return RunHere(command, job_.options());
  }
  Outcome Plan(const std::vector<std::string>& more) const {
    return Run({"plan", "--solver=solver.prototxt"}, more);
  }
  JsonValue PlanJson(std::vector<std::string> more) const {
    more.push_back("--json");
    const Outcome outcome = Plan(more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return ReadJson(outcome.out);
  }
  void ExpectRefusal(const std::vector<std::string>& more, int code,
                     const std::string& part) const {
    const Outcome outcome = Plan(more);
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(part)));
  }

  Job job_;
};

void ExpectLinesOf80(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

// 7,840 weights and 10 biases, padded to 16, are 31,424 bytes. After backward, they take two steps
// of a half each at 50 us and 117.7 MB/s; loss and requests take one step of 4 bytes each.
TEST_F(PlanRanksTest, PredictsTheTimeThatAHandComputes) {
  const JsonValue json = PlanJson({"--ranks=2", "--compute=10", "--link=1GbE"});
  EXPECT_EQ(json["images_per_rank"].number, 16);
  ASSERT_THAT(json["slices"].items, SizeIs(1));
  EXPECT_EQ(json["slices"][0]["bytes"].number, 31424);
  const JsonValue& step = json["predictions"][0];
  const double sum = 2 * (0.05 + 15712 / 117.7e3), one = 0.05 + 4 / 117.7e3;
  EXPECT_NEAR(step["step_ms"].number, 10 + sum + 2 * one, 1e-6);
  EXPECT_NEAR(step["images_per_s"].number, 32e3 / step["step_ms"].number, 1e-6);
  EXPECT_EQ(step["limit"].text, "compute");
}

TEST_F(PlanRanksTest, EstimatesAGpuThatIsNotThere) {
  const Outcome outcome =
      Plan({"--ranks=8,64", "--ranks_per_node=8", "--compute=h100", "--link=NDR"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("estimated for one H100 (no GPU was used)"));
  EXPECT_TRUE(Finds(outcome.out, R"(\n +64 +8 +0\.\d+ )")) << outcome.out;
  ExpectLinesOf80(outcome.out);
}

TEST_F(PlanRanksTest, RefusesWhatMakesNoSense) {
  ExpectRefusal({"--ranks=two"}, 64, "--ranks: 'two' is not a number of ranks");
  ExpectRefusal({"--ranks=2,0"}, 64, "--ranks: '0' is not a number of ranks between 1 and 65536");
  ExpectRefusal({"--ranks=2", "--link=10GbF"}, 64, "Did you mean '10GbE'? Known links are 1GbE, ");
  ExpectRefusal({"--ranks=2", "--compute=fast"}, 64, "one of V100, A100, H100, H200");
  ExpectRefusal({"--ranks=2", "--compute=-1"}, 64, "give the milliseconds");
  ExpectRefusal({"--ranks=2", "--jitter=200"}, 64, "a percentage between 0 and 100");
}

TEST_F(PlanRanksTest, TakesWhatBenchCommMeasured) {
  const Outcome bench = RunProgram(
      {"bench-comm", "--ranks=2", "--mib=1", "--rounds=3", "--json=link.json"}, job_.options());
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_TRUE(Finds(bench.out, R"(\n +1\.00 MiB +\d+\.\d +\d+\.\d+ +- +-\n)")) << bench.out;
  EXPECT_THAT(bench.out, HasSubstr("inside a machine: "));
  ExpectLinesOf80(bench.out);
  const JsonValue sums = ReadJson(ReadText(job_.folder() / "link.json"));
  EXPECT_EQ(sums["machines"].number, 1);
  EXPECT_THAT(sums["sums"].items, SizeIs(10));  // 4 B, 16 B, ..., 1 MiB
  const JsonValue json =
      PlanJson({"--ranks=2", "--ranks_per_node=2", "--compute=10", "--link=link.json"});
  EXPECT_GT(json["predictions"][0]["exposed_ms"].number, 0);
}

TEST_F(PlanRanksTest, TakesALinkBetweenMachines) {
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun";
  const std::vector<std::string> command = {"bench-comm", "--mib=1", "--rounds=3",
                                            "--json=link.json"};
  RunOptions options = job_.options();
  options.launcher = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "1",
                      "-x",     "TRAINER_MACHINE=a",   ProgramPath()};
  options.launcher.insert(options.launcher.end(), command.begin(), command.end());
  options.launcher.insert(options.launcher.end(), {":", "-np", "1", "-x", "TRAINER_MACHINE=b"});
  const Outcome bench = RunProgram(command, options);
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  // bench-comm measures MPI's own sum too.
  EXPECT_TRUE(Finds(bench.out, R"(\n +1\.00 MiB +\d+\.\d +\d+\.\d+ +\d+\.\d +\d+\.\d\d\n)"))
      << bench.out;
  EXPECT_THAT(bench.out, HasSubstr("between machines: "));
  ExpectLinesOf80(bench.out);
  const JsonValue json = PlanJson({"--ranks=2,4", "--compute=10", "--link=link.json"});
  EXPECT_EQ(json["link"].text, "link.json");
  EXPECT_GT(json["predictions"][1]["exposed_ms"].number, 0);
}

}  // namespace
}  // namespace trainer
