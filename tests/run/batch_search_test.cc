// The search for a batch size, and its report.

#include "trainer/run/search/batch_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "batch_size.h"
#include "support/current_folder.h"
#include "support/digits_job.h"
#include "support/error_of.h"
#include "support/json_reader.h"
#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/analysis/memory/memory_room.h"
#include "trainer/base/text/text.h"
#include "trainer/run/device.h"
#include "trainer/run/search/batch_report.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class BatchSearchTest : public testing::Test {
 protected:
  BatchSearchTest() {
    options_ = MakeBatchSearchOptions("", BufferReuse::kShared, *device_);
    options_.iterations = 1;
    options_.time = std::chrono::seconds(60);
  }

  SolverSpec Solver() const {
    job_.Write();
    const CurrentFolder here(job_.folder().path());
    return LoadSolver("solver.prototxt");
  }
  BatchSearchResult Find() const {
    SolverSpec spec = Solver();
    const CurrentFolder here(job_.folder().path());
    return SearchBatchSize(options_, *device_, &spec);
  }
  // Returns the memory of a run with this batch.
  size_t EstimateBytes(uint32_t batch) const {
    SolverSpec spec = Solver();
    const CurrentFolder here(job_.folder().path());
    SetBatchSize(batch, &spec);
    return TotalBytes(EstimateMemory(spec, *device_).Items(UnlimitedRoom(*device_)));
  }
  std::string Text(const BatchSearchResult& result) const {
    return ToText(result, options_, Solver());
  }

  const std::unique_ptr<Device> device_ = MakeDevice();
  DigitsJob job_;
  BatchSearchOptions options_;
};

TEST_F(BatchSearchTest, ReportsEachBatchTheLargestAndTheBest) {
  job_.Write();
  const std::vector<std::string> before = job_.folder().Names();
  options_.max_batch = 8;
  const BatchSearchResult result = Find();
  EXPECT_TRUE(result.max_fits);
  EXPECT_TRUE(result.proved);
  EXPECT_EQ(result.given, 16u);
  EXPECT_THAT(Text(result),
              AllOf(HasSubstr("recomputed  ms/iteration"), HasSubstr("images/s  median"),
                    HasSubstr("A batch of 8 (--most) fits into "), HasSubstr("The fastest is "),
                    HasSubstr("--batch=")));
  EXPECT_EQ(job_.folder().Names(), before);
}

TEST_F(BatchSearchTest, CandidatesRunInThreeRoundsAndTheShortestIterationCounts) {
  options_.max_batch = 2;
  const BatchSearchResult result = Find();
  size_t most = 0;
  for (const BatchTrial& trial : result.trials) {
    most = std::max(most, trial.samples.size());
    EXPECT_LE(trial.Ms(), trial.samples.Median());
  }
  EXPECT_EQ(most, 3u) << "one iteration in each round";
  const JsonValue json = ReadJson(ToJson(result, options_).ToString());
  EXPECT_EQ(json["batches"].size(), result.trials.size());
  EXPECT_LE(json["batches"][0]["ms"].number, json["batches"][0]["median_ms"].number);
}

// Returns the number that the pattern's group matches.
double Figure(const std::string& text, const std::string& pattern) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(text, found, std::regex(pattern))) << text;
  return found.empty() ? 0 : std::stod(found[1]);
}

// The data have 100 records. Each type has its own rule for the learning rate.
TEST_F(BatchSearchTest, RecommendsAtMostATenthOfTheRecordsAndALearningRateForTheType) {
  const char kTry[] = R"(with\s\d+\stry\s(\S+)\swith)";
  options_.max_batch = 32;
  const auto report = [&](const std::string& type) {
    const DigitsJob usual;
    job_.solver = Edited(usual.solver, "momentum: 0.9", type);
    const std::string text = Text(Find());
    EXPECT_LE(Figure(text, R"(--batch=(\d+)\sor\sbatch_size)"), 10) << text;
    EXPECT_TRUE(std::regex_search(
        text, std::regex(R"(No\sbatch\sabove\s10,\sa\stenth\sof\sthe\s100\srecords,)")))
        << text;
    return text;
  };
  const auto times = [](const std::string& text) {
    return Figure(text, R"(--batch=(\d+)\sor\sbatch_size)") / 16;
  };
  const std::string sgd = report("momentum: 0.9");
  EXPECT_NEAR(Figure(sgd, kTry), 0.05 * times(sgd), 1e-6);
  EXPECT_THAT(sgd, Not(HasSubstr("Warning")));
  const std::string adam = report("type: \"Adam\"");
  EXPECT_NEAR(Figure(adam, kTry), 0.05 * std::sqrt(times(adam)), 1e-6);
  EXPECT_TRUE(std::regex_search(adam, std::regex(R"(Warning:\sfor\sAdam\s)"))) << adam;
  const std::string other = report("type: \"AdaGrad\"");
  EXPECT_TRUE(std::regex_search(
      other, std::regex(R"(no\srule\ssays\show\sto\sscale\sthe\slearning\srate)")))
      << other;
  EXPECT_FALSE(std::regex_search(other, std::regex(kTry))) << other;
}

// The memory must be enough after unfreeze_at, but the trials measure the net as it starts.
TEST_F(BatchSearchTest, ANetThatUnfreezesMustFitWhenAllOfItLearns) {
  job_.net = Edited(job_.net, "layer {\n  name: \"ip\"",
                    "layer { name: \"fc1\" type: \"InnerProduct\" bottom: \"data\" top: \"fc1\"\n"
                    "  freeze: true\n"
                    "  inner_product_param { num_output: 4 weight_filler { type: \"xavier\" } } }\n"
                    "layer {\n  name: \"ip\"");
  job_.net = Edited(job_.net, "bottom: \"data\"\n  top: \"ip\"", "bottom: \"fc1\"\n  top: \"ip\"");
  const size_t frozen = EstimateBytes(2);
  job_.solver += "unfreeze_at: 1\n";
  EXPECT_GT(EstimateBytes(2), frozen);
  options_.max_batch = 2;
  SolverSpec spec = Solver();
  const CurrentFolder here(job_.folder().path());
  const BatchSearchResult result = SearchBatchSize(options_, *device_, &spec);
  EXPECT_TRUE(result.proved);
  EXPECT_EQ(result.largest, 2u);
  EXPECT_EQ(result.largest_bytes, EstimateBytes(2));
  for (const BatchTrial& trial : result.trials) EXPECT_TRUE(trial.runs()) << trial.batch;
  EXPECT_EQ(spec.proto.unfreeze_at(), 1) << "the search restores it";
}

TEST_F(BatchSearchTest, TheLargestBatchFitsAndTheNextStepDoesNot) {
  options_.time = std::chrono::seconds(0);
  options_.room = EstimateBytes(100);
  const BatchSearchResult result = Find();
  EXPECT_FALSE(result.proved);
  EXPECT_GT(result.largest, 64u);
  EXPECT_EQ(result.largest_bytes, EstimateBytes(result.largest));
  EXPECT_LE(result.largest_bytes, options_.room);
  EXPECT_GT(EstimateBytes(result.largest + result.largest / 4), options_.room);
}

TEST_F(BatchSearchTest, SaysWhyNoBatchFits) {
  options_.room = size_t{16} << 20;
  EXPECT_THAT(ErrorOf([&] { Find(); }),
              Pair(ErrorCode::kResource, HasSubstr("not even a batch of 1 fits: ")));
}

TEST_F(BatchSearchTest, RefusesANetWithoutABatchSize) {
  job_.net = Edited(job_.net, "batch_size: 16", "");
  EXPECT_THAT(
      ErrorOf([&] { Find(); }),
      Pair(ErrorCode::kUsage, HasSubstr("no data layer of the training net has a batch_size")));
}

TEST_F(BatchSearchTest, KeepsTheBatchOfTheSolver) {
  SolverSpec spec = Solver();
  const CurrentFolder here(job_.folder().path());
  options_.max_batch = 4;
  SearchBatchSize(options_, *device_, &spec);
  EXPECT_EQ(BatchSizeOf(&spec), 16u);
}

TEST_F(BatchSearchTest, ARunThatResumesKeepsTheBatchThatWasFound) {
  SolverSpec spec = Solver();
  const CurrentFolder here(job_.folder().path());
  WriteText("snap_resolved.prototxt", ReadText("solver.prototxt"));
  WriteText("net.prototxt", Edited(job_.net, "batch_size: 16", "batch_size: 48"));
  ApplyBestBatch(options_, *device_, true, &spec);
  EXPECT_EQ(BatchSizeOf(&spec), 48u);
}

}  // namespace
}  // namespace trainer
