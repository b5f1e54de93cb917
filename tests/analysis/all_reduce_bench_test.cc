// Tests the benchmark of all-reduces, on ranks that are processes.

#include "trainer/analysis/communication/all_reduce_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "parallel/ranks.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Throws in the process of a rank, where a failed expectation would be lost.
void Require(bool condition, const char* what) {
  if (!condition) throw Error(ErrorCode::kInternal, what);
}

TEST(AllReduceBenchTest, TimesEachSizeOnTwoRanks) {
  ExpectRanks(2, [](World& world) {
    AllReduceBenchOptions options;
    options.max_bytes = 1 << 20;
    options.rounds = 3;
    const AllReduceBenchReport report = BenchAllReduce(world, options);
    Require(report.timings.size() == 10, "4 B, 16 B, ..., 1 MiB");
    Require(report.results.sums.size() == 10, "a result for each size");
    Require(report.results.ranks == 2 && report.results.machines == 1, "ranks and machines");
    Require(report.results.overlap_cost == 0, "no overlap in one machine");
    for (const AllReduceTiming& timing : report.timings) {
      Require(timing.own.size() == 3 && timing.own.Min() > 0, "three rounds");
    }
    world.Finish();
  });
}

AllReduceBenchReport ReportOf(int machines) {
  AllReduceBenchReport report;
  report.ranks = "2 ranks";
  report.results = {
      .ranks = 2, .machines = machines, .ranks_per_machine = 2 / machines, .sums = {}};
  for (const size_t bytes : {size_t{4}, size_t{4096}, size_t{1} << 20}) {
    AllReduceTiming timing{.bytes = bytes, .own = {}, .mpi = {}};
    timing.own.Add(0.01 + static_cast<double>(bytes) * 1e-6);
    if (machines > 1) timing.mpi.Add(2 * timing.own.Median());
    report.results.sums.push_back({static_cast<double>(bytes), timing.own.Median() / 1000});
    report.timings.push_back(timing);
  }
  return report;
}

TEST(AllReduceBenchTest, PrintsAMachineOrTheLinkBetweenMachines) {
  const std::string one = ToText(ReportOf(1));
  EXPECT_THAT(one, HasSubstr("inside a machine: "));
  EXPECT_THAT(one, HasSubstr("1.00 MiB   1058.6  0.991                  -      -\n"));
  EXPECT_THAT(ReportOf(1).MpiSeconds(), IsEmpty());
  const std::string two = ToText(ReportOf(2));
  EXPECT_THAT(two, HasSubstr("between machines: "));
  EXPECT_THAT(two, HasSubstr("2117.2   2.00\n"));
  EXPECT_EQ(ReportOf(2).MpiSeconds().size(), 3u);
  std::istringstream lines(two);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace trainer
