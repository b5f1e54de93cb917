// Tests how fast several ranks train a net, with measured, given and estimated work.

#include "trainer/analysis/scaling/scaling_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "digits_run.h"
#include "scaling/rank_work.h"
#include "scaling/straggler_fit.h"
#include "support/error_of.h"
#include "trainer/analysis/communication/all_reduce_results.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

ScalingRequest RequestFor(std::vector<int> ranks, const std::string& link = "10GbE") {
  ScalingRequest request;
  request.ranks = std::move(ranks);
  request.cluster = FindCluster(link);
  return request;
}

IterationPrediction PredictRanks(const RankWork& work, int ranks) {
  ClusterModel cluster = work.cluster;
  cluster.ranks = ranks;
  return PredictIteration(work.profile, cluster, work.options);
}

void ExpectLinesOf80(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(ScalingReportTest, PredictsFromWhatIsMeasuredHere) {
  ScalingRequest request = RequestFor({1, 2, 16});
  request.iterations = 2;
  const std::string text = PredictScaling(request, DigitsRun().Load()).text;
  EXPECT_THAT(text, AllOf(HasSubstr("small: 16 images on each rank, 30.7 KiB of gradients"),
                          HasSubstr("compute (measured here, "),
                          HasSubstr("link: 10GbE, 25.0 us, 1.177 GB/s in each direction"),
                          HasSubstr("\nAn iteration on 16 ranks:\nforward  ")));
  for (const char* row : {R"(\n +1 +1 +\d+\.\d\d +\S+ +100\.0 +0\.00 +- +compute)",
                          R"(\n +2 +2 +\d)", R"(\n +16 +16 +\d)", R"(\nbucket 1: 30\.7 KiB +=)"}) {
    EXPECT_TRUE(std::regex_search(text, std::regex(row))) << row << "\n" << text;
  }
  ExpectLinesOf80(text);
}

// 7,840 weights and 10 biases, padded to 16, take 31,424 bytes: after backward, two steps of a half
// each at 50 us and 117.7 MB/s. The sums of the loss and of requests are one step of 4 bytes each.
TEST(ScalingReportTest, PredictsTheTimeThatAHandComputes) {
  ScalingRequest request = RequestFor({2}, "1GbE");
  request.compute_ms = 10;
  const RankWork work = DetermineRankWork(request, DigitsRun().Load());
  EXPECT_EQ(work.profile.images, 16);
  ASSERT_THAT(work.profile.gradients, SizeIs(1));
  EXPECT_EQ(work.profile.gradients[0].bytes, 31424);
  const IterationPrediction step = PredictRanks(work, 2);
  const double sum = 2 * (0.05 + 15712 / 117.7e3), one = 0.05 + 4 / 117.7e3;
  EXPECT_NEAR(1e3 * step.seconds, 10 + sum + 2 * one, 1e-6);
  EXPECT_EQ(step.bottleneck, Bottleneck::kCompute);
  const std::string json = PredictScaling(request, DigitsRun().Load()).json.ToString();
  for (const char* part :
       {"\"net\": \"small\"", "\"source\": \"as given\"", "\"images_per_rank\": 16",
        "\"bytes\": 31424", "\"limit\": \"compute\"", "\"link\": \"1GbE\"", "\"slices\": ["}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

TEST(ScalingReportTest, CountsEveryPassOfAnIteration) {
  ScalingRequest request = RequestFor({2});
  request.compute_ms = 10;
  const RankWork once = DetermineRankWork(request, DigitsRun().Load());
  const RankWork thrice = DetermineRankWork(request, DigitsRun().Load({"iter_size=3"}));
  EXPECT_EQ(thrice.profile.images, 48);
  EXPECT_GT(thrice.profile.forward, once.profile.forward);
  EXPECT_LT(thrice.profile.backward, once.profile.backward);
}

TEST(ScalingReportTest, EstimatesAGpuThatIsNotThere) {
  ScalingRequest request = RequestFor({8, 64}, "NDR");
  request.cluster.ranks_per_machine = 8;
  request.gpu = FindGpu("h100");
  ASSERT_NE(request.gpu, nullptr);
  const std::string text = PredictScaling(request, DigitsRun().Load()).text;
  EXPECT_THAT(text, HasSubstr("estimated for one H100 (no GPU was used)"));
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(\n +64 +8 +0\.\d+ )"))) << text;
  ExpectLinesOf80(text);
  EXPECT_EQ(FindGpu("h101"), nullptr);
  EXPECT_EQ(GpuNames(), "V100, A100, H100, H200");
}

TEST(ScalingReportTest, FitsTwoMeasuredRates) {
  ScalingRequest request = RequestFor({2, 4, 8}, "25GbE");
  request.compute_ms = 5;
  RankWork work = DetermineRankWork(request, DigitsRun().Load());
  const CalibratedProfile fitted =
      CalibrateStragglers(work.profile, work.cluster, work.options, {2, 320}, {4, 620});
  work.profile = fitted.profile;
  work.options.jitter = fitted.jitter;
  EXPECT_GT(fitted.jitter, 0);
  const auto rate = [&](int ranks) { return 16 * ranks / PredictRanks(work, ranks).seconds; };
  EXPECT_NEAR(rate(2), 320, 1);
  EXPECT_NEAR(rate(4), 620, 1);
  EXPECT_GT(rate(8), 1100);
  EXPECT_LT(rate(8), 1240);
}

TEST(ScalingReportTest, RefusesUnknownLinksAndNetsWithoutParameters) {
  const auto [code, text] = ErrorOf([] { FindCluster("10GbF"); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(text, HasSubstr("Did you mean '10GbE'? Known links are 1GbE, "));
  DigitsRun run;
  run.net = Edited(run.net, "bottom: \"data\"\n  top: \"ip\"",
                   "bottom: \"data\" top: \"ip\" param { lr_mult: 0 } param { lr_mult: 0 }");
  ScalingRequest request = RequestFor({2});
  request.compute_ms = 5;
  EXPECT_THAT(ErrorOf([&] { PredictScaling(request, run.Load()); }).second,
              HasSubstr("the net has no parameters to train"));
}

TEST(ScalingReportTest, TakesALinkFromAFileOfResults) {
  const TempFolder folder;
  AllReduceResults results{.ranks = 2, .machines = 1, .ranks_per_machine = 2, .sums = {}};
  for (const double bytes : {4.0, 1024.0, 1048576.0}) {
    results.sums.push_back({bytes, 1e-6 + 4 * bytes / 1e10});
  }
  WriteAllReduceResults(folder / "link.json", results, {});
  ScalingRequest request = RequestFor({2}, folder / "link.json");
  request.cluster.ranks_per_machine = 2;
  request.compute_ms = 10;
  EXPECT_GT(PredictRanks(DetermineRankWork(request, DigitsRun().Load()), 2).exposed, 0);
}

}  // namespace
}  // namespace trainer
