// The memory of the ranks of a pipeline.

#include "trainer/analysis/memory/stage_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "digits_run.h"
#include "support/error_of.h"
#include "support/test_device.h"
#include "trainer/analysis/memory/memory_fit.h"

namespace trainer {
namespace {

using testing::HasSubstr;

class StageMemoryTest : public testing::Test {
 protected:
  StageMemoryTest() {
    run_.net = WithConvolutions(run_.net, 16);
    spec_ = run_.Load({"strategy=pipeline", "strategy_param.stages=auto"});
  }
  PipelineEstimate Estimate(int stages) const {
    return EstimatePipelineMemory(spec_, *device_, UnlimitedRoom(*device_), stages);
  }

  DigitsRun run_;
  const std::unique_ptr<Device> device_ = MakeTestDevice(1);
  SolverSpec spec_;
};

// Batches of 16 in parts of 2, from four stages on of 1.
TEST_F(StageMemoryTest, ComparesTheStagesWithOneRank) {
  const std::string two = ToText(Estimate(2), size_t{1} << 26);
  EXPECT_THAT(two, HasSubstr("2 stages, 8 micro-batches of 2 records"));
  EXPECT_THAT(two, HasSubstr("bubble: (p - 1) / (m + p - 1) = 1 / 9 = 11.1 % of the time"));
  EXPECT_THAT(ToText(Estimate(4), size_t{1} << 26),
              HasSubstr("bubble: (p - 1) / (m + p - 1) = 3 / 19 = 15.8 % of the time"));
  std::istringstream lines(two);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(ToJson(Estimate(2), size_t{1} << 26).ToString(),
              HasSubstr("\"one_rank_bytes\": 67108864"));
}

TEST_F(StageMemoryTest, ARankHoldsLessThanOneRankAlone) {
  const PipelineEstimate pipeline = Estimate(2);
  const size_t alone = TotalBytes(EstimateMemory(spec_, *device_).Items(UnlimitedRoom(*device_)));
  EXPECT_LT(pipeline.LargestBytes(), alone);
  for (int stage = 0; stage < 2; ++stage) {
    EXPECT_EQ(EstimateStageMemory(spec_, *device_, 2, stage).bytes,
              pipeline.stages[static_cast<size_t>(stage)].bytes);
  }
}

TEST_F(StageMemoryTest, TheBudgetOfARankIsThatOfItsStage) {
  const size_t largest = Estimate(2).LargestBytes();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ActivationBudget(largest, spec_, *device_, {.rank = rank, .size = 2}), 0u);
  }
  const auto [code, text] =
      ErrorOf([&] { ActivationBudget(100 << 10, spec_, *device_, {.rank = 0, .size = 2}); });
  EXPECT_EQ(code, ErrorCode::kResource);
  EXPECT_THAT(text, HasSubstr("--memory: the run may use 100.0 KiB but"));
}

}  // namespace
}  // namespace trainer
