// `trainer time`; tests/analysis/net_profile_test.cc checks its measurements.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "job.h"

namespace trainer {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(TimeTest, PrintsTablesAndLogsAsCaffeDoes) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunHere({"time", "--model=net.prototxt", "--phase=TEST", "--iterations=2"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("layer "));
  EXPECT_THAT(outcome.err, HasSubstr("] *** Benchmark ends ***\n"));
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("declined")));
}

TEST(TimeTest, PrintsJsonAndSavesNothing) {
  Job job;
  job.solver = Edited(job.solver, "snapshot: 10", "snapshot: 1");
  job.Write();
  const Outcome outcome =
      RunHere({"time", "--solver=solver.prototxt", "--iterations=2", "--json"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("{\n  \"net\": \"small\",\n  \"iterations\": 2,\n"));
  EXPECT_THAT(job.Files("snap"), ElementsAre());
}

TEST(TimeTest, TellsAtVerbosityOneWhichImplementationsDeclined) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunHere({"time", "--model=net.prototxt", "--iterations=1", "--v=1"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ContainsRegex("\nImplementations that were not chosen, and why:\n"
                                         "ip\n"
                                         "  own product: [^\n]+\n"
                                         "  onednn sgemm: it adds no bias\n"));
  EXPECT_TRUE(Finds(outcome.err, R"(\] matrix product of 16 x 784 times \S.*: onednn matmul\n)"))
      << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("]   declined: onednn sgemm: it adds no bias\n"));
}

}  // namespace
}  // namespace trainer
