// Runs that end at --until and are continued later.

#include "trainer/run/until.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/run/training_run.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

TEST(UntilIterTest, IsAnIterationOrAShareOfThem) {
  EXPECT_EQ(UntilIter("", 900), 0);
  EXPECT_EQ(UntilIter("1000", 900), 1000);
  EXPECT_EQ(UntilIter("1/9", 901), 100);
  EXPECT_EQ(UntilIter("1/9", 4), 1);
  EXPECT_EQ(UntilIter("2/3", 2000000000), 1333333333);
  for (const char* text : {"0", "-1", "soon", "1.5", "1/0", "2/1", "/3", "1/"}) {
    EXPECT_THAT(ErrorOf([&] { UntilIter(text, 900); }),
                Pair(ErrorCode::kUsage, HasSubstr("give an iteration, such as 1000, or a share of "
                                                  "max_iter, such as 1/9")))
        << text;
  }
}

TEST(UntilFlagTest, RefusesOtherTextsAndQuickLooksBeforeAFileIsRead) {
  TrainRequest request;
  request.solver.file = "missing.prototxt";
  request.stop.until = "soon";
  EXPECT_THAT(ErrorOf([&] { Train(request); }),
              Pair(ErrorCode::kUsage, HasSubstr("--until=soon: give an iteration")));
  request.stop.until = "9";
  request.look.quick = true;
  EXPECT_THAT(ErrorOf([&] { Train(request); }),
              Pair(ErrorCode::kUsage, HasSubstr("--quick and --until cannot both be given: a short "
                                                "run chooses its own end")));
}

TEST(UntilFlagTest, AShareOfTheIterationsEndsARunThatIsContinuedLater) {
  const TempFolder folder;
  folder.Write("net.prototxt", R"(
layer { name: "data" type: "DummyData" top: "x" top: "y" dummy_data_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 } data_filler { type: "gaussian" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" }
)");
  TrainRequest request;
  request.solver.file = folder.Write(
      "solver.prototxt", Join("net: \"", folder / "net.prototxt", "\" snapshot_prefix: \"",
                              folder / "snap", "\" base_lr: 0.01 lr_policy: \"fixed\" display: 0 ",
                              "random_seed: 3 solver_mode: CPU max_iter: 6"));
  request.start.resume = "auto";
  TrainingRunDeps deps;
  deps.join = [](const RankOptions&, int) { return nullptr; };
  deps.make_device = [](const DeviceChoice&) { return MakeTestDevice(1); };
  deps.scheduler.variable = [](const char*) { return std::string(); };
  const LogCollector log;
  const auto run_until = [&](const char* until) {
    request.stop.until = until;
    EXPECT_EQ(TrainingRun(request, nullptr, deps).Run(), 0);
  };
  const auto has = [&](int iter) {
    return std::filesystem::exists(folder / Join("snap_iter_", iter, ".solverstate"));
  };
  run_until("1/2");
  EXPECT_TRUE(has(3));
  EXPECT_THAT(log.lines, Contains(HasSubstr("--until=1/2: the run ended at iteration 3 of 6")));
  EXPECT_THAT(log.lines, Not(Contains("Optimization Done.")));
  run_until("2/3");
  EXPECT_TRUE(has(4));
  run_until("3");
  EXPECT_THAT(log.lines, Contains("Already at iteration 4, after --until=3: nothing to do"));
  EXPECT_FALSE(has(6));
  run_until("");
  EXPECT_TRUE(has(6));
  EXPECT_THAT(log.lines, Contains("Optimization Done."));
}

}  // namespace
}  // namespace trainer
