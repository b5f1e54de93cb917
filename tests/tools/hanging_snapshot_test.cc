// Snapshots of a disk or file server that does not answer when a run begins.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct HangingPart {
  const char* name;
  std::string part;   // of the path of what does not answer
  std::string named;  // in the error
};

class HangingSnapshotTest : public testing::TestWithParam<HangingPart> {};

INSTANTIATE_TEST_SUITE_P(Of, HangingSnapshotTest,
                         testing::Values(HangingPart{"TheState", "_iter_10.solverstate",
                                                     "saved/snap_iter_10.solverstate: "},
                                         HangingPart{"TheWeights", "_iter_10.caffemodel",
                                                     "saved/snap_iter_10.caffemodel: "},
                                         HangingPart{"TheLock", "/.snap.lock",
                                                     "saved/.snap.lock: "},
                                         HangingPart{"TheFolder", "saved", "saved"}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(HangingSnapshotTest, EndsTheRunThatWouldGoOnAndLeavesIt) {
  Job job;
  job.solver = Edited(job.solver, "\"snap\"", "\"saved/snap\"");
  job.Write();
  std::filesystem::create_directory(job.folder() / "saved");
  ASSERT_EQ(job.Train({"--set=max_iter=10"}).exit_code, 0);
  RunOptions options = job.options();
  for (const std::string& variable :
       {std::string("LD_PRELOAD=" TRAINER_FAULTY_IO),
        std::string("ASAN_OPTIONS=verify_asan_link_order=0"), "FAULTY_IO_PATH=" + GetParam().part,
        "FAULTY_IO_SWITCH=" + job.folder().path(), std::string("FAULTY_IO_ERROR=hang")}) {
    options.env.push_back(variable);
  }
  const Outcome outcome =
      RunProgram(job.TrainCommand({"--resume=auto", "--io_timeout=1"}), options);
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(AllOf(HasSubstr(GetParam().named),
                                HasSubstr("has not come back within 1 s (--io_timeout)"))));
  EXPECT_EQ(job.Train({"--resume=auto"}).exit_code, 0);
}

}  // namespace
}  // namespace trainer
