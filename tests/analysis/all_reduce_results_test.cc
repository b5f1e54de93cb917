// Tests the file that bench-comm writes and plan reads.

#include "trainer/analysis/communication/all_reduce_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scaling/measured_cluster.h"
#include "support/error_of.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(AllReduceResultsTest, AreReadAsTheyWereWritten) {
  const TempFolder folder;
  const AllReduceResults written{.ranks = 4,
                                 .machines = 2,
                                 .ranks_per_machine = 2,
                                 .sums = {{4, 1e-5}, {1024, 2.5e-5}},
                                 .overlap_cost = 0.25};
  WriteAllReduceResults(folder / "link.json", written, {3e-5});
  EXPECT_THAT(ReadText(folder / "link.json"), HasSubstr("\"mpi_seconds\": null"));
  const AllReduceResults read = ReadAllReduceResults(folder / "link.json");
  EXPECT_EQ(read.ranks, 4);
  EXPECT_EQ(read.machines, 2);
  EXPECT_EQ(read.ranks_per_machine, 2);
  EXPECT_EQ(read.overlap_cost, 0.25);
  ASSERT_EQ(read.sums.size(), 2u);
  EXPECT_EQ(read.sums[1].bytes, 1024);
  EXPECT_EQ(read.sums[1].seconds, 2.5e-5);
}

TEST(AllReduceResultsTest, RefusesAFileThatHoldsNoSums) {
  const TempFolder folder;
  const auto expect = [&](const std::string& text, const std::string& part) {
    const std::string path = folder.Write("link.json", text);
    const auto [code, message] =
        ErrorOf([&] { FitCluster("link.json", ReadAllReduceResults(path)); });
    EXPECT_EQ(code, ErrorCode::kData);
    EXPECT_THAT(message, HasSubstr(part));
  };
  expect("nothing", "the file is not JSON; give a file that 'trainer bench-comm");
  expect("{\"kind\": \"cake\"}", "the file has no sums over ranks");
  const std::string start = "{\"kind\": \"sums over ranks\", \"ranks\": 2, \"machines\": 2, ";
  expect(start + "\"sums\": []}", "the file has no number 'ranks_per_machine'");
  expect(start + "\"ranks_per_machine\": 1, \"overlap_cost\": 0, \"sums\": []}",
         "the file needs measurements of at least two ranks");
  expect(start + "\"ranks_per_machine\": 0, \"overlap_cost\": 0, \"sums\": []}",
         "'ranks_per_machine' is 0");
}

}  // namespace
}  // namespace trainer
