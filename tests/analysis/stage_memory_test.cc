// Tests the memory of the ranks of a pipeline.

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
  PipelineComparison Compare(const std::vector<int>& stages) const {
    return ComparePipelines(spec_, *device_, UnlimitedRoom(*device_), stages);
  }

  DigitsRun run_;
  const std::unique_ptr<Device> device_ = MakeTestDevice(1);
  SolverSpec spec_;
};

// Batches of 16 are split into parts of 2, or into parts of 1 with four stages.
TEST_F(StageMemoryTest, ComparesTheStagesWithOneRank) {
  const PipelineComparison comparison = Compare({2, 4});
  const std::string text = ToText(comparison);
  EXPECT_THAT(text, HasSubstr("2 stages, 8 micro-batches of 2 records"));
  EXPECT_THAT(text, HasSubstr("bubble: (p - 1) / (m + p - 1) = 1 / 9 = 11.1 % of the time"));
  EXPECT_THAT(text, HasSubstr("4 stages, 16 micro-batches of 1 records"));
  EXPECT_THAT(text, HasSubstr("bubble: (p - 1) / (m + p - 1) = 3 / 19 = 15.8 % of the time"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(ToJson(comparison).ToString(),
              HasSubstr(Join("\"one_rank_bytes\": ", comparison.one_rank_bytes)));
}

TEST_F(StageMemoryTest, ARankHoldsLessThanOneRankAlone) {
  const PipelineComparison comparison = Compare({2});
  const PipelineEstimate& pipeline = comparison.pipelines[0];
  EXPECT_EQ(comparison.one_rank_bytes,
            TotalBytes(EstimateMemory(spec_, *device_).Items(UnlimitedRoom(*device_))));
  EXPECT_LT(pipeline.LargestBytes(), comparison.one_rank_bytes);
  for (int stage = 0; stage < 2; ++stage) {
    EXPECT_EQ(EstimateStageMemory(spec_, *device_, 2, stage).bytes,
              pipeline.stages[static_cast<size_t>(stage)].bytes);
  }
}

TEST_F(StageMemoryTest, TheBudgetOfARankIsThatOfItsStage) {
  const size_t largest = Compare({2}).pipelines[0].LargestBytes();
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
