// `trainer plan --gpu`: the memory of a run on a GPU that need not be present.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class PlanGpuTest : public testing::Test {
 protected:
  PlanGpuTest() { job_.Write(); }
  Outcome Plan(const std::vector<std::string>& more) const {
    std::vector<std::string> command = {"plan", "--solver=solver.prototxt", "--verbose"};
    command.insert(command.end(), more.begin(), more.end());
    return RunHere(command, job_.options());
  }

  Job job_;
};

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
}

TEST_F(PlanGpuTest, RefusesWhatIsNeitherASizeNorAGpu) {
  const Outcome absent = Plan({"--gpu=16"});
  EXPECT_EQ(absent.exit_code, 69);
  EXPECT_THAT(absent.Errors(), ElementsAre(StartsWith("--gpu=16: ")));
  const Outcome wrong = Plan({"--gpu=16 gib"});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.Errors(), ElementsAre(HasSubstr("such as 16GiB, or the number of a GPU")));
}

}  // namespace
}  // namespace trainer
