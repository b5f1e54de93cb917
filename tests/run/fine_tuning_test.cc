// --freeze, --unfreeze_at and --reset in a check and in a run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_job.h"
#include "support/error_of.h"
#include "support/json_reader.h"
#include "support/log_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/run/start_point.h"
#include "trainer/run/training_run.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

// The job's net with a layer fc1 before its last layer, ip.
class TunedJob : public PreflightJob {
 public:
  TunedJob() {
    net = Edited(net, "layer {\n  name: \"ip\"",
                 "layer { name: \"fc1\" type: \"InnerProduct\" bottom: \"data\" top: \"fc1\"\n"
                 "  inner_product_param { num_output: 4 weight_filler { type: \"xavier\" } } }\n"
                 "layer {\n  name: \"ip\"");
    net = Edited(net, "bottom: \"data\"\n  top: \"ip\"", "bottom: \"fc1\"\n  top: \"ip\"");
  }
};

constexpr char kPretrained[] = "snap_iter_20.caffemodel";

TEST(FineTuningTest, ACheckCountsWhatLearns) {
  TunedJob job;
  EXPECT_THAT(job.Check().Lines("learning "),
              ElementsAre(EndsWith("2 of 2 layers learn, 3190 of 3190 weights")));
  job.request.solver.freeze = "all-but-last";
  EXPECT_THAT(job.Check().Lines("learning "),
              ElementsAre(EndsWith("1 of 2 layers learn, 50 of 3190 weights; frozen: fc1")));
  job.request.solver.unfreeze_at = 5;
  EXPECT_THAT(job.Check().Lines("learning "),
              ElementsAre(EndsWith("; frozen: fc1; all learn from iteration 5 on")));
  const CurrentFolder here(job.folder().path());
  const JsonValue learning =
      ReadJson(ToJson(Preflight(job.request)).ToString())["figures"]["learning"];
  EXPECT_EQ(learning["learned_layers"].number, 1);
  EXPECT_EQ(learning["learned_weights"].number, 50);
  EXPECT_EQ(learning["weights"].number, 3190);
  EXPECT_EQ(learning["unfreeze_at"].number, 5);
}

TEST(FineTuningTest, ACheckReportsAWrongFreezeAndGoesOn) {
  TunedJob job;
  job.request.solver.freeze = "/conv.*/";
  job.ExpectOne(64, "--freeze=/conv.*/: no layer has a name that matches /conv.*/");
}

TEST(FineTuningTest, ACheckWarnsOfAnUnfreezeAtWithoutEffect) {
  TunedJob job;
  job.solver = Edited(job.solver, "max_iter: 20", "max_iter: 20 unfreeze_at: 20");
  EXPECT_THAT(job.Check().Warnings(),
              ElementsAre(HasSubstr("solver.prototxt:11:14: unfreeze_at 20 has no effect, because "
                                    "no layer of the training net is frozen; write freeze: true in "
                                    "layers, or give --freeze")));
  job.request.solver.freeze = "1";
  EXPECT_THAT(job.Check().Warnings(),
              Contains(HasSubstr("unfreeze_at 20 is never reached, because max_iter is 20")));
}

// Trains in the job's folder and returns the lines that the run logs.
std::vector<std::string> Train(const TunedJob& job, const TrainRequest& request) {
  job.Write();
  const CurrentFolder here(job.folder().path());
  const LogCollector log;
  TrainingRunDeps deps;
  deps.join = [](const RankOptions&, int) { return nullptr; };
  EXPECT_EQ(TrainingRun(request, nullptr, deps).Run(), 0);
  return log.lines;
}

TEST(FineTuningTest, ARunStartsALastLayerOfAnotherSizeAnew) {
  TunedJob job;
  job.Train();
  job.net = Edited(job.net, "num_output: 10", "num_output: 12");
  job.request.start.weights = kPretrained;
  job.request.solver.freeze = "all-but-last";
  job.request.solver.unfreeze_at = 10;
  const std::vector<std::string> lines = Train(job, job.request);
  EXPECT_THAT(lines,
              Contains("transferred 2 of 4 blobs; ip: 10 -> 12 (initialised by the fillers)"));
  EXPECT_THAT(lines, Contains("1 of 2 layers learn, 60 of 3200 weights; frozen: fc1"));
  EXPECT_THAT(lines, Contains("Iteration 10 (unfreeze_at): frozen layers begin to learn: fc1"));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("is not in the given weights files"))));
  EXPECT_THAT(ReadText(job.folder() / "snap_resolved.prototxt"), HasSubstr("freeze: true"));
  EXPECT_THAT(ReadText(job.folder() / "snap_resolved.prototxt"), HasSubstr("unfreeze_at: 10"));
}

TEST(FineTuningTest, SeveralFilesAreCountedTogether) {
  TunedJob job;
  job.Train();
  job.net = Edited(job.net, "num_output: 10", "num_output: 12");
  job.request.start.weights = Join("snap_iter_10.caffemodel,", kPretrained);
  EXPECT_THAT(Train(job, job.request),
              AllOf(Contains("Loaded 1 layer from snap_iter_10.caffemodel"),
                    Contains("Loaded 1 layer from snap_iter_20.caffemodel"),
                    Contains("transferred 2 of 4 blobs; ip: 10 -> 12 (initialised by the "
                             "fillers)")));
}

TEST(FineTuningTest, AnotherSizeElsewhereStopsUnlessReset) {
  TunedJob job;
  job.Train();
  job.net = Edited(job.net, "num_output: 4", "num_output: 5");
  job.request.start.weights = kPretrained;
  job.Write();
  EXPECT_THAT(job.Check().Errors(), ElementsAre(HasSubstr("--reset=fc1")));
  job.request.start.reset = "fc1";
  const std::vector<std::string> lines = Train(job, job.request);
  EXPECT_THAT(lines, Contains("transferred 0 of 4 blobs; fc1: reset, ip: 10 4 (40) -> 10 5 (50) "
                              "(initialised by the fillers)"));
}

TEST(ResetLayersTest, AreNamesOrAPattern) {
  const std::vector<std::string> weights = {"a.caffemodel"};
  EXPECT_THAT(ResetLayers({}, {}), IsEmpty());
  EXPECT_THAT(ResetLayers({.reset = "fc7, fc8"}, weights), ElementsAre("fc7", "fc8"));
  EXPECT_THAT(ResetLayers({.reset = "/fc[7,8]/"}, weights), ElementsAre("/fc[7,8]/"));
  EXPECT_THAT(ErrorOf([] { ResetLayers({.reset = "fc8"}, {}); }),
              Pair(ErrorCode::kUsage,
                   "--reset=fc8: no weights are loaded, so every layer starts anew; give "
                   "--weights=FILE, or leave --reset out"));
  EXPECT_THAT(ErrorOf([] { RequireOneStart({.snapshot = "s.solverstate", .reset = "fc8"}); }),
              Pair(ErrorCode::kUsage, HasSubstr("--snapshot and --reset cannot both be given")));
  EXPECT_THAT(ErrorOf([] { RequireOneStart({.resume = "s.solverstate", .reset = "fc8"}); }),
              Pair(ErrorCode::kUsage, HasSubstr("--resume=FILE and --reset cannot both be given")));
}

}  // namespace
}  // namespace trainer
