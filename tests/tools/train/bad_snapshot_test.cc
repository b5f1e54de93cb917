// Snapshots that cannot be written, and files that are not snapshots.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "in_process.h"
#include "job.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(BadSnapshotTest, AFolderWithoutPermissionIsRefusedBeforeTraining) {
  using std::filesystem::perms;
  Job job;
  const std::string closed = job.folder() / "closed";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(closed, perms::owner_read | perms::owner_exec);
  job.solver = Edited(job.solver, "\"snap\"", "\"closed/snap\"");
  job.Write();
  const Outcome outcome = RunProgram(job.TrainCommand(), job.OptionsWithoutRoot());
  if (outcome.exit_code == 126) GTEST_SKIP() << "another user may not start the program";
  ExpectRefused(job, outcome, 77, "", "closed");
  EXPECT_THAT(outcome.err, Not(HasSubstr("Starting Optimization")));
}

TEST(BadSnapshotTest, AFolderThatIsAFileIsRefusedBeforeTraining) {
  Job job;
  job.solver = Edited(job.solver, "\"snap\"", "\"net.prototxt/snap\"");
  const Outcome outcome = job.Train();
  ExpectRefused(job, outcome, 73, "", "net.prototxt");
  EXPECT_THAT(outcome.err, Not(HasSubstr("Starting Optimization")));
}

class BadResumeTest : public testing::Test {
 protected:
  BadResumeTest() { EXPECT_EQ(job_.Train().exit_code, 0); }
  Outcome Resume(const std::string& file) const { return job_.Train({"--snapshot=" + file}); }
  Job job_;
};

TEST_F(BadResumeTest, WeightsAreNoSnapshot) {
  ExpectRefused(job_, Resume("snap_iter_20.caffemodel"), 64, "snap_iter_20.caffemodel",
                "--weights");
}

TEST_F(BadResumeTest, AMissingSnapshotIsNamed) {
  ExpectRefused(job_, Resume("snap_iter_30.solverstate"), 66, "", "snap_iter_30.solverstate");
}

TEST_F(BadResumeTest, ASnapshotOfAnotherNetIsRefused) {
  job_.net = Edited(job_.net, "num_output: 10", "num_output: 11");
  ExpectRefused(job_, Resume("snap_iter_20.solverstate"), 83, "snap_iter_20.solverstate", "'ip'");
}

TEST_F(BadResumeTest, ASnapshotOfALayerWithAnotherNameIsRefused) {
  job_.net = Edited(job_.net, "name: \"ip\"", "name: \"other\"");
  ExpectRefused(job_, Resume("snap_iter_20.solverstate"), 83, "snap_iter_20.solverstate",
                "'other'");
}

TEST_F(BadResumeTest, EveryDifferenceIsListed) {
  job_.net = Edited(job_.net, "name: \"ip\"", "name: \"other\"");
  job_.solver = Edited(job_.solver, "momentum: 0.9", "momentum: 0.9 type: \"Adam\"");
  ExpectRefused(job_, Resume("snap_iter_20.solverstate"), 83, "snap_iter_20.solverstate: ",
                "the snapshot is from a solver of type 'SGD', but this solver has type 'Adam'; it "
                "has 2 history blobs, but this solver needs 4; its weights "
                "'snap_iter_20.caffemodel': layer 'other' is not in the file; its weights "
                "'snap_iter_20.caffemodel': the net has no layer 'ip'. The snapshot was made with "
                "another solver or net");
}

TEST_F(BadResumeTest, WeightsInAnotherFolderNeedAFlag) {
  std::filesystem::create_directory(job_.folder() / "moved");
  std::filesystem::rename(job_.folder() / "snap_iter_20.solverstate",
                          job_.folder() / "moved/snap_iter_20.solverstate");
  ExpectRefused(job_, Resume("moved/snap_iter_20.solverstate"), 83,
                "moved/snap_iter_20.solverstate: the weights are not in the folder of this solver "
                "state",
                "--allow_outside");
  EXPECT_EQ(job_.Train({"--snapshot=moved/snap_iter_20.solverstate", "--allow_outside"}).exit_code,
            0);
}

TEST_F(BadResumeTest, ATruncatedSnapshotIsRefused) {
  const std::string state = ReadText(job_.folder() / "snap_iter_20.solverstate");
  WriteText(job_.folder() / "snap_iter_20.solverstate", state.substr(0, state.size() / 2));
  ExpectRefused(job_, Resume("snap_iter_20.solverstate"), 83, "snap_iter_20.solverstate");
}

TEST_F(BadResumeTest, AChangedBitIsFound) {
  std::string weights = ReadText(job_.folder() / "snap_iter_20.caffemodel");
  weights[weights.size() / 2] = static_cast<char>(weights[weights.size() / 2] ^ 1);
  WriteText(job_.folder() / "snap_iter_20.caffemodel", weights);
  ExpectRefused(job_, Resume("snap_iter_20.solverstate"), 83, "", "snap_iter_20");
}

TEST_F(BadResumeTest, MissingWeightsAreNamed) {
  std::filesystem::remove(job_.folder() / "snap_iter_20.caffemodel");
  ExpectRefused(job_, Resume("snap_iter_20.solverstate"), 83, "", "snap_iter_20.caffemodel");
}

TEST(BadWeightsTest, OtherFilesAreNoWeights) {
  const Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const std::pair<std::string, int> files[] = {
      {"absent.caffemodel", 66}, {"net.prototxt", 65}, {"snap_iter_20.solverstate", 64}};
  for (const auto& [file, code] : files) {
    ExpectRefused(job, job.Train({"--weights=" + file}), code, "", file);
    ExpectRefused(job,
                  RunHere({"test", "--model=net.prototxt", "--weights=" + file}, job.options()),
                  code, "", file);
  }
}

}  // namespace
}  // namespace trainer
