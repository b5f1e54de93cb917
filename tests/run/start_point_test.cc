// Where a run starts, and the solver that it reads.

#include "trainer/run/start_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/scoped.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/input/bad_records.h"
#include "trainer/run/input_options.h"
#include "trainer/run/solver_source.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kStagedNet[] = R"(
layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 } } }
layer { name: "s" type: "Silence" bottom: "x" include { stage: "small" } }
)";

std::string WriteStartSolver(const TempFolder& folder, const std::string& fields) {
  folder.Write("net.prototxt", kStagedNet);
  return folder.Write(
      "solver.prototxt",
      Join("net: \"", folder / "net.prototxt", "\" snapshot_prefix: \"", folder / "snap",
           "\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 4 ", fields));
}

TEST(WeightFilesTest, OfTheOptionsReplaceThoseOfTheSolver) {
  const TempFolder folder;
  const SolverSpec spec = LoadSolver(
      WriteStartSolver(folder, "weights: \"a.caffemodel, b.caffemodel\" weights: \"c\""));
  EXPECT_THAT(WeightFiles({}, spec), ElementsAre("a.caffemodel", "b.caffemodel", "c"));
  EXPECT_THAT(WeightFiles({.weights = "d,e"}, spec), ElementsAre("d", "e"));
}

TEST(ResumePointTest, IsTheSnapshotThatIsNamed) {
  const TempFolder folder;
  const SolverSpec spec = LoadSolver(WriteStartSolver(folder, ""));
  const LogCollector log;
  EXPECT_EQ(FindResumePoint({.snapshot = "s.solverstate"}, spec, {}).state, "s.solverstate");
  EXPECT_EQ(FindResumePoint({.resume = "s.solverstate"}, spec, {}).state, "s.solverstate");
  EXPECT_EQ(FindResumePoint({}, spec, {}).state, "");
  EXPECT_TRUE(log.lines.empty());
  EXPECT_EQ(FindResumePoint({.resume = "auto"}, spec, {}).state, "");
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("exists yet: starting from the beginning")));
}

TEST(ReadSolverTest, AppliesTheChanges) {
  const TempFolder folder;
  const SolverSource source = {WriteStartSolver(folder, ""), {"base_lr=0.5"}, {0, {"small"}}};
  const SolverSpec spec = ReadSolver(source);
  EXPECT_FLOAT_EQ(spec.proto.base_lr(), 0.5f);
  EXPECT_EQ(FilterLayers(*spec.train.net, spec.train.state).size(), 2u);
}

TEST(ReadSolverTest, RefusesAStageThatNoLayerUses) {
  const TempFolder folder;
  const std::string file = WriteStartSolver(folder, "");
  EXPECT_THAT(
      ErrorOf([&] {
        ReadSolver({file, {}, {0, {"smal", "x"}}});
      }),
      Pair(ErrorCode::kUsage, AllOf(HasSubstr("--stage=smal,x: no layer of"),
                                    HasSubstr("Did you mean 'small'? The layers use small"))));
}

TEST(BadRecordsTest, AreSkippedUpToANumber) {
  for (const std::string wrong : {"skip", "skip=", "skip=-1", "skip=3x", "stopp"}) {
    EXPECT_THAT(ErrorOf([&] { ApplyBadRecords(wrong); }),
                Pair(ErrorCode::kUsage, HasSubstr("--bad_records='" + wrong)));
  }
  ApplyBadRecords("skip=3");
  ApplyBadRecords("stop");
}

}  // namespace
}  // namespace trainer
