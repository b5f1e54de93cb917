// `trainer plan --gpu`: what a run takes on a GPU that need not be there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"
#include "json_reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class PlanGpuTest : public testing::Test {
 protected:
  PlanGpuTest() { job_.Write(); }
  Outcome Plan(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"plan", "--solver=solver.prototxt", "--verbose"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProgram(command, job_.options());
  }
  JsonValue PlanJson(const std::string& gpu) const { return ReadJson(Plan({"--json", gpu}).out); }

  Job job_;
};

TEST_F(PlanGpuTest, ListsWhatTheRunHoldsAndWhatOfItIsAnEstimate) {
  const Outcome outcome = Plan({"--gpu"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* row : {"parameters", "gradients", "rule state", "values of all nets",
                          "batches in transfer", "context and libraries \\(estimate\\)"}) {
    EXPECT_TRUE(Finds(outcome.out, std::string("\n *\\S+ [KM]iB  ") + row + "\n")) << row;
  }
  EXPECT_THAT(outcome.out, HasSubstr("No GPU was used"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("fit into")));
  EXPECT_THAT(outcome.out, HasSubstr("held at the peak"));
  const JsonValue json = PlanJson("--gpu");
  EXPECT_EQ(json["estimated"].text, "true");
  EXPECT_EQ(json["bytes"]["parameters"].number, 7856 * 4);
  EXPECT_EQ(json["bytes"]["rule_state"].number, 7856 * 4);
  EXPECT_GE(json["bytes"]["staging"].number, 2 * 16 * 784) << "of both nets, as bytes";
}

TEST_F(PlanGpuTest, SaysWhatIsStoredIn16BitsThereAndHere) {
  const std::vector<std::string> f16 = {"--set", "default_forward_type=FLOAT16"};
  const Outcome cpu = Plan(f16), gpu = Plan({"--gpu", f16[0], f16[1]});
  EXPECT_TRUE(Finds(cpu.out, R"(\n *\d+ +320 +ip +16 10 \(160\) .* bf16)")) << cpu.out;
  EXPECT_TRUE(Finds(gpu.out, R"(\n *\d+ +320 +ip +16 10 \(160\) .* f16)")) << gpu.out;
  EXPECT_THAT(gpu.out + gpu.err, Not(HasSubstr("bf16")));
  EXPECT_THAT(Plan({"--gpu"}).out, Not(HasSubstr("f16")));
}

TEST_F(PlanGpuTest, SaysWhetherItFitsAndWhichBatchWould) {
  const Outcome fits = Plan({"--gpu=16GiB"});
  EXPECT_EQ(fits.exit_code, 0);
  EXPECT_TRUE(
      Finds(fits.out, R"(\n\S+ MiB of memory fits into 16\.0 GiB; so does a batch of \d+\n)"))
      << fits.out;
  const Outcome not_now = Plan({"--gpu", "640.1MiB"});
  EXPECT_EQ(not_now.exit_code, 81);
  EXPECT_THAT(not_now.Errors(), testing::IsEmpty());
  EXPECT_TRUE(
      Finds(not_now.out,
            R"(\n\S+ MiB of memory does not fit into 640\.1 MiB; a batch of \d+ would\sfit\n)"))
      << not_now.out;
  const Outcome never = Plan({"--gpu=100MiB"});
  EXPECT_EQ(never.exit_code, 81);
  EXPECT_THAT(never.out, HasSubstr("; no batch would fit"));
}

TEST_F(PlanGpuTest, TheBatchThatItNamesFits) {
  const double most = PlanJson("--gpu=641MiB")["fit"]["batch_that_fits"].number;
  ASSERT_GT(most, 1);
  const auto with = [&](double batch) {
    const std::string size = "batch_size: " + std::to_string(static_cast<int>(batch));
    Job job;
    job.net = Edited(job.net, "batch_size: 16", size);
    job.net = Edited(job.net, "batch_size: 16", size);
    job.Write();
    return RunProgram({"plan", "--solver=solver.prototxt", "--gpu=641MiB"}, job.options())
        .exit_code;
  };
  EXPECT_EQ(with(0.9 * most), 0);
  EXPECT_EQ(with(1.1 * most), 81);
}

TEST_F(PlanGpuTest, RefusesWhatIsNeitherASizeNorAGpu) {
  for (const std::string wrong : {"16", "-16GiB", "GiB", "1e99GiB", "16 gib", "nanGiB"}) {
    const Outcome outcome = Plan({"--gpu=" + wrong});
    if (wrong == "16") {
      EXPECT_EQ(outcome.exit_code, 69);
      EXPECT_THAT(outcome.Errors(), ElementsAre(StartsWith("--gpu=16: ")));
      continue;
    }
    EXPECT_EQ(outcome.exit_code, 64) << wrong;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("such as 16GiB, or the number of a GPU")));
  }
}

TEST_F(PlanGpuTest, NeedsNoGpuAndTakesNoMemoryForIt) {
  job_.net = Edited(job_.net, "batch_size: 16", "batch_size: 4000000");
  job_.Write();
  const Outcome outcome = Plan({"--gpu=80GiB"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.out, R"(data +\d+ +4000000 1 28 28)")) << outcome.out;
}

}  // namespace
}  // namespace trainer
