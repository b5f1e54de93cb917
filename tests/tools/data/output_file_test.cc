// Files that a net writes: HDF5Output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check_job.h"
#include "in_process.h"
#include "trainer/hdf5/reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    job_.net += R"(
layer { name: "out" type: "HDF5Output" bottom: "ip" bottom: "label" include { phase: TRAIN }
        hdf5_output_param { file_name: "out.h5" } })";
    job_.Write();
  }
  int64_t Rows(const std::string& name) const {
    return Hdf5Reader(job_.folder() / name).Array("data").dims()[0];
  }
  CheckJob job_;
};

TEST_F(OutputFileTest, OnlyARunWritesIt) {
  ASSERT_EQ(job_.Train({"--set=layer[out].hdf5_output_param.file_name=new.h5"}).exit_code, 0);
  WriteText(job_.folder() / "out.h5", "precious");
  const std::vector<std::vector<std::string>> commands = {
      {"time", "--solver=solver.prototxt", "--iterations=1"},
      {"time", "--model=net.prototxt", "--iterations=1"},
      {"plan", "--solver=solver.prototxt"},
      {"show", "--model=net.prototxt", "--phase=TRAIN"},
      {"draw", "--model=net.prototxt", "--out=net.svg"},
      {"features", "--model=net.prototxt", "--phase=TRAIN", "--blobs=ip", "--iterations=1",
       "--weights=snap_iter_10.caffemodel", "--out=features.h5"}};
  for (const auto& command : commands) {
    const Outcome outcome = RunHere(command, job_.options());
    EXPECT_EQ(outcome.exit_code, 0) << command[0] << outcome.err;
    EXPECT_EQ(ReadText(job_.folder() / "out.h5"), "precious") << command[0];
  }
  std::filesystem::remove(job_.folder() / "out.h5");
  for (const auto& command : commands) RunHere(command, job_.options());
  EXPECT_EQ(job_.Check().exit_code, 0);
  EXPECT_THAT(job_.Files("out"), IsEmpty());
}

TEST_F(OutputFileTest, AFileThatIsThereIsRefusedBeforeTheFirstIteration) {
  WriteText(job_.folder() / "out.h5", "precious");
  job_.ExpectOne(73, "'out.h5' already exists and is not overwritten; move it away");
  const Outcome outcome = job_.Train();
  ExpectRefused(job_, outcome, 73,
                "net.prototxt:47:29: layer 'out' (HDF5Output): ", "'out.h5' already exists");
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("Starting Optimization")));
  EXPECT_EQ(ReadText(job_.folder() / "out.h5"), "precious");
  EXPECT_EQ(job_.Train({"--set=layer[out].hdf5_output_param.file_name=new.h5"}).exit_code, 0);
  EXPECT_EQ(Rows("new.h5"), 21 * 16);  // one more pass for the last line of the log
}

TEST_F(OutputFileTest, ARunThatGoesOnWritesItsRowsToTheNextFile) {
  const std::string all = job_.solver;
  job_.solver = Edited(all, "max_iter: 20", "max_iter: 10");
  ASSERT_EQ(job_.Train({"--resume=auto"}).exit_code, 0);
  const std::string before = ReadText(job_.folder() / "out.h5");
  EXPECT_EQ(Rows("out.h5"), 11 * 16);  // one more pass for the last line of the log
  job_.solver = all;
  EXPECT_EQ(job_.Check({"--resume=auto"}).exit_code, 0);
  const Outcome outcome = job_.Train({"--resume=auto"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Layer 'out': 'out.h5' already exists; the resumed run "
                                     "writes its rows to 'out_2.h5'"));
  EXPECT_THAT(job_.Files("out"), ElementsAre("out.h5", "out_2.h5"));
  EXPECT_TRUE(ReadText(job_.folder() / "out.h5") == before);
  EXPECT_EQ(Rows("out_2.h5"), 11 * 16);
}

TEST_F(OutputFileTest, TestWritesAndReplacesNothing) {
  job_.net = Edited(job_.net, "include { phase: TRAIN }\n        hdf5",
                    "include { phase: TEST }\n "
                    "       hdf5");
  ASSERT_EQ(job_.Train({"--set=test_iter=3"}).exit_code, 0);
  std::filesystem::rename(job_.folder() / "out.h5", job_.folder() / "of_training.h5");
  const std::vector<std::string> command = {"test", "--model=net.prototxt", "--iterations=2",
                                            "--weights=snap_iter_20.caffemodel"};
  const Outcome outcome = RunHere(command, job_.options());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(Rows("out.h5"), 2 * 16);
  EXPECT_EQ(RunHere(command, job_.options()).exit_code, 73);
  EXPECT_EQ(Rows("out.h5"), 2 * 16);
}

}  // namespace
}  // namespace trainer
