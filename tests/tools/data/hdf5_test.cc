// Snapshots and weights as HDF5, through the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "in_process.h"
#include "job.h"
#include "support/source_folder.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGolden = SourceFolder() + "/tests/golden/";

// A job with a mask and a layer's name with a slash, whose snapshots are HDF5.
struct Hdf5Job : Job {
  Hdf5Job() {
    net = Edited(net, "name: \"ip\"\n  type", "name: \"block/ip\"\n  type");
    net = Edited(net, "layer {\n  name: \"accuracy\"",
                 "layer { name: \"block/drop\" type: \"Dropout\" bottom: \"ip\" top: \"ip\" }\n"
                 "layer {\n  name: \"accuracy\"");
    solver += "average_loss: 4\nsnapshot_format: HDF5\n";
  }
};

TEST(Hdf5ResumeTest, TwentyIterationsAreTenAndTenMore) {
  Hdf5Job whole, halves;
  const std::string all = whole.solver;
  ASSERT_EQ(whole.Train().exit_code, 0);
  halves.solver = Edited(all, "max_iter: 20", "max_iter: 10");
  ASSERT_EQ(halves.Train().exit_code, 0);
  halves.solver = all;
  const Outcome resumed = halves.Train({"--snapshot=snap_iter_10.solverstate.h5"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("] Resuming from snap_iter_10.solverstate.h5\n"));
  EXPECT_THAT(halves.Files("snap"),
              ElementsAre("snap_iter_10.caffemodel.h5", "snap_iter_10.solverstate.h5",
                          "snap_iter_20.caffemodel.h5", "snap_iter_20.solverstate.h5",
                          "snap_last.solverstate.h5"));
  for (const std::string& name : halves.Files("snap")) {
    const std::string bytes = ReadText(whole.folder() / name);
    EXPECT_GT(bytes.size(), 30000u) << name;
    EXPECT_TRUE(bytes == ReadText(halves.folder() / name)) << name;
  }
}

TEST(Hdf5ResumeTest, TheNumbersAreThoseOfBinarySnapshots) {
  Hdf5Job hdf5, binary;
  binary.solver = Edited(binary.solver, "HDF5", "BINARYPROTO");
  ASSERT_EQ(hdf5.Train().exit_code, 0);
  ASSERT_EQ(binary.Train().exit_code, 0);
  const auto test = [](const Job& job, const std::string& weights) {
    const Outcome outcome = RunHere(
        {"test", "--model=net.prototxt", "--iterations=2", "--weights=" + weights}, job.options());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return LogFrom(outcome, "Batch 0");
  };
  const auto expected = test(binary, "snap_iter_20.caffemodel");
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(test(hdf5, "snap_iter_20.caffemodel.h5"), expected);
}

TEST(Hdf5ResumeTest, WeightsOfBothFormatsMixInOneList) {
  Hdf5Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  job.solver = Edited(job.solver, "HDF5", "BINARYPROTO");
  const Outcome outcome = job.Train({"--weights=snap_iter_10.caffemodel.h5"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Outcome both = job.Train({"--weights=snap_iter_10.caffemodel,snap_iter_20.caffemodel.h5"});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.err, HasSubstr("] Finetuning from snap_iter_10.caffemodel\n"));
  EXPECT_THAT(both.err, HasSubstr("] Finetuning from snap_iter_20.caffemodel.h5\n"));
}

TEST(Hdf5ResumeTest, StoresGradientsWhenAskedTo) {
  Hdf5Job job;
  job.solver += "snapshot_diff: true\n";
  ASSERT_EQ(job.Train().exit_code, 0);
  const Outcome resumed = job.Train({"--snapshot=snap_iter_10.solverstate.h5"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

// One layer shares another's weights: the file stores them once.
TEST(Hdf5ResumeTest, SharedWeightsComeBack) {
  Hdf5Job whole, halves;
  for (Hdf5Job* job : {&whole, &halves}) {
    job->net = Edited(job->net, "inner_product_param {\n    num_output: 10",
                      "param { name: \"w\" } inner_product_param {\n    num_output: 10");
    job->net += R"(
layer { name: "twin" type: "InnerProduct" bottom: "data" top: "twin" param { name: "w" }
        inner_product_param { num_output: 10 } }
layer { name: "loss2" type: "SoftmaxWithLoss" bottom: "twin" bottom: "label" top: "loss2" }
)";
  }
  const std::string all = whole.solver;
  ASSERT_EQ(whole.Train().exit_code, 0);
  halves.solver = Edited(all, "max_iter: 20", "max_iter: 10");
  ASSERT_EQ(halves.Train().exit_code, 0);
  halves.solver = all;
  const Outcome resumed = halves.Train({"--snapshot=snap_iter_10.solverstate.h5"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(ReadText(whole.folder() / "snap_iter_20.caffemodel.h5") ==
              ReadText(halves.folder() / "snap_iter_20.caffemodel.h5"));
}

// Trains on rows of HDF5 files.
struct RowsJob : Hdf5Job {
  RowsJob() {
    WriteText(folder() / "list.txt", kGolden + "hdf5_rows_a.h5\n" + kGolden + "hdf5_rows_b.h5\n");
    net = R"(
layer { name: "rows" type: "HDF5Data" top: "image" top: "label"
        hdf5_data_param { source: "list.txt" batch_size: 3 shuffle: true } }
layer { name: "scaled" type: "Power" bottom: "image" top: "x" power_param { scale: 0.001 } }
layer { name: "block/ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";
  }
};

TEST(Hdf5DataRunTest, TwentyIterationsAreTenAndTenMore) {
  RowsJob whole, halves;
  const std::string all = whole.solver;
  const Outcome once = whole.Train();
  ASSERT_EQ(once.exit_code, 0) << once.err;
  halves.solver = Edited(all, "max_iter: 20", "max_iter: 10");
  ASSERT_EQ(halves.Train().exit_code, 0);
  halves.solver = all;
  ASSERT_EQ(halves.Train({"--snapshot=snap_iter_10.solverstate.h5"}).exit_code, 0);
  for (const std::string& name : halves.Files("snap")) {
    EXPECT_TRUE(ReadText(whole.folder() / name) == ReadText(halves.folder() / name)) << name;
  }
}

TEST(Hdf5DataRunTest, BadListsAreRefusedWithASentence) {
  const RowsJob job;
  const std::string a = kGolden + "hdf5_rows_a.h5";
  const auto refused = [&](const std::string& list, int code, const std::string& part) {
    WriteText(job.folder() / "list.txt", list);
    ExpectRefused(job, job.Train(), code, "net.prototxt:", part);
  };
  refused("", 65, "this list of HDF5 files is empty");
  refused(a + "\nnone.h5\n", 66, "list.txt:2: ");
  refused("net.prototxt", 65, "not an HDF5 file");
  refused(kGolden + "hdf5_weights.h5", 65, "'image' is not in this file; the file has: data");
  WriteText(job.folder() / "cut.h5", ReadText(a).substr(0, 9999));
  refused("cut.h5", 65, "truncated file");
  std::filesystem::remove(job.folder() / "list.txt");
  const Outcome gone = job.Train();
  EXPECT_EQ(gone.exit_code, 66) << gone.err;
}

TEST(BadHdf5Test, NamesThatCannotBeKeptApartAreRefusedBeforeTraining) {
  Hdf5Job job;
  job.net = Edited(job.net, "\"block/drop\"", "\"block/ip/0\"");
  ExpectRefused(job, job.Train(), 78, "layer 'block/ip/0' cannot be saved as HDF5: blob 0 of layer",
                "set snapshot_format: BINARYPROTO");
}

TEST(BadHdf5Test, DamagedSnapshotsAreRefused) {
  Hdf5Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const std::string state = job.folder() / "snap_iter_20.solverstate.h5";
  const std::string whole = ReadText(state);
  WriteText(state, whole.substr(0, whole.size() / 2));
  const auto resume = [&](const std::string& file) { return job.Train({"--snapshot=" + file}); };
  ExpectRefused(job, resume("snap_iter_20.solverstate.h5"), 83, "snap_iter_20.solverstate.h5",
                "the file is truncated");
  std::string flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 4);
  WriteText(state, flipped);
  ExpectRefused(job, resume("snap_iter_20.solverstate.h5"), 83, "snap_iter_20.solverstate.h5",
                "checksum does not match");
  ExpectRefused(job, resume("snap_iter_20.caffemodel.h5"), 64, "snap_iter_20.caffemodel.h5",
                "--snapshot=snap_iter_20.solverstate.h5");
}

TEST(BadHdf5Test, BadWeightsAreRefusedWithASentence) {
  const Hdf5Job job;
  job.Write();
  WriteText(job.folder() / "cut.h5", ReadText(kGolden + "hdf5_weights.h5").substr(0, 9000));
  const auto refused = [&](const std::string& file, int code, const std::string& part) {
    ExpectRefused(job, job.Train({"--weights=" + file}), code, file, part);
  };
  refused(kGolden + "hdf5_rows_a.h5", 65, "the file has no group 'data'");
  refused(kGolden + "hdf5_weights.h5", 65, "no layer name in this file matches a layer");
  refused(kGolden + "hdf5_bad.h5", 65, "the file has no group 'data'");
  refused(kGolden + "hdf5_loop.h5", 65, "is a second name of another object");
  refused("cut.h5", 65, "this HDF5 file cannot be opened: truncated file");
}

}  // namespace
}  // namespace trainer
