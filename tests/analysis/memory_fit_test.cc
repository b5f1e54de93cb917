// Tests whether runs fit into memory, and how much their activations may take.

#include "trainer/analysis/memory/memory_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "digits_run.h"
#include "support/error_of.h"
#include "support/scoped.h"
#include "support/test_device.h"
#include "trainer/backend/device/meta_device.h"
#include "trainer/monitor/observer.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr size_t kMiB = size_t{1} << 20;

TEST(MemoryFitTest, ComparesTheItemsWithTheRoomAndNamesABatch) {
  const std::vector<MemoryItem> items = {{"parameters", "parameters", 10 * kMiB},
                                         {"values", "values", 20 * kMiB, true}};
  EXPECT_EQ(ToText(CheckFit(items, {}, 16)), "30.0 MiB of memory");
  const MemoryFit fits = CheckFit(items, {.bytes = 50 * kMiB, .name = "50.0 MiB"}, 16);
  EXPECT_EQ(ToText(fits), "30.0 MiB of memory fits into 50.0 MiB; so does a batch of 32");
  const MemoryFit small = CheckFit(items, {.bytes = 20 * kMiB, .name = "20.0 MiB"}, 16);
  EXPECT_FALSE(small.fits);
  EXPECT_EQ(ToText(small), "30.0 MiB of memory does not fit into 20.0 MiB; a batch of 8 would fit");
  const MemoryFit never = CheckFit(items, {.bytes = 9 * kMiB, .name = "9 MiB"}, 16);
  EXPECT_THAT(ToText(never), EndsWith("; no batch would fit"));
  EXPECT_THAT(ToJson(small).ToString(),
              AllOf(HasSubstr("\"fits\": false"), HasSubstr("\"batch_that_fits\": 8")));
}

// The GPU need not exist.
TEST(MemoryFitTest, TheBatchThatItNamesFits) {
  const DigitsRun run;
  const std::unique_ptr<Device> device = MakeMetaDevice();
  const MemoryRoom room = {.gpu = true, .estimated = true, .bytes = 641 * kMiB, .name = ""};
  const auto fit = [&](int64_t batch) {
    const MemoryEstimate estimate =
        EstimateMemory(run.Load({Join("layer[digits].data_param.batch_size=", batch)}), *device);
    return CheckFit(estimate.Items(room), room, estimate.batch);
  };
  const auto most = static_cast<double>(fit(16).batch_that_fits);
  ASSERT_GT(most, 16);
  EXPECT_TRUE(fit(static_cast<int64_t>(0.9 * most)).fits);
  EXPECT_FALSE(fit(static_cast<int64_t>(1.1 * most)).fits);
}

// No GPU could hold this batch, but planning takes no memory.
TEST(MemoryFitTest, ABatchOfMillionsIsPlanned) {
  const DigitsRun run;
  const std::unique_ptr<Device> device = MakeMetaDevice();
  const MemoryEstimate estimate =
      EstimateMemory(run.Load({"layer[digits].data_param.batch_size=4000000"}), *device);
  const MemoryRoom room = {.gpu = true, .estimated = true, .bytes = size_t{80} << 30, .name = ""};
  EXPECT_TRUE(CheckFit(estimate.Items(room), room, estimate.batch).fits);
}

class ActivationBudgetTest : public testing::Test {
 protected:
  ActivationBudgetTest() {
    run_.net = WithConvolutions(run_.net, 16);
    spec_ = run_.Load();
  }
  size_t Needed(size_t budget) const {
    return TotalBytes(
        MemoryEstimator(*device_).Estimate(spec_, budget).Items(UnlimitedRoom(*device_)));
  }

  DigitsRun run_;
  const std::unique_ptr<Device> device_ = MakeTestDevice(1);
  SolverSpec spec_;
};

TEST_F(ActivationBudgetTest, IsNoneWhereTheRunFits) {
  EXPECT_EQ(ActivationBudget(Needed(0), spec_, *device_), 0u);
}

TEST_F(ActivationBudgetTest, KeepsTheRunWithinTheLimitByRecomputation) {
  const size_t limit = Needed(0) - EstimateMemory(spec_, *device_).train_activations / 8;
  const size_t budget = ActivationBudget(limit, spec_, *device_);
  ASSERT_GT(budget, 0u);
  EXPECT_LE(Needed(budget), limit);
  EXPECT_GT(MemoryEstimator(*device_).Estimate(spec_, budget).recomputed, 0);
}

TEST_F(ActivationBudgetTest, RefusesALimitBelowWhatElseTheRunNeeds) {
  const auto [code, text] = ErrorOf([&] { ActivationBudget(100 << 10, spec_, *device_); });
  EXPECT_EQ(code, ErrorCode::kResource);
  EXPECT_THAT(text, HasSubstr("--memory: the run may use 100.0 KiB but needs "));
}

TEST(RequireRunFitsTest, RefusesARunThatNeedsMoreThanTheJobHas) {
  TRAINER_CPU_ONLY("a GPU's memory is checked by each net");
  const DigitsRun run;
  const SolverSpec spec = run.Load();
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  SolverOptions options;
  options.saves = false;
  ObserverList nobody;
  Solver solver(spec, options, *device, nobody);
  EXPECT_NO_THROW(RequireRunFits(spec, *device, {}, solver));
  const ScopedEnvironment job("SLURM_MEM_PER_NODE", "12");
  const auto [code, text] = ErrorOf([&] { RequireRunFits(spec, *device, {}, solver); });
  EXPECT_EQ(code, ErrorCode::kResource);
  EXPECT_THAT(text, HasSubstr("SLURM_MEM_PER_NODE has 12.0 MiB; the largest parts: the program "));
  EXPECT_THAT(text, HasSubstr(" of memory, but SLURM_MEM_PER_NODE has 12.0 MiB"));
}

}  // namespace
}  // namespace trainer
