// Tables in the program: creating them, training on them and predicting.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "in_process.h"
#include "program.h"
#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kNet[] = R"(name: "Table"
layer { name: "table" type: "HDF5Data" top: "data" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "train.txt" batch_size: 20 } }
layer { name: "table" type: "HDF5Data" top: "data" top: "label" include { phase: TEST }
        hdf5_data_param { source: "val.txt" batch_size: 20 } }
layer { name: "y" type: "InnerProduct" bottom: "data" top: "y"
        inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "label" top: "loss" }
)";
constexpr char kSolver[] = R"(net: "net.prototxt" type: "Adam" base_lr: 0.1 momentum: 0.9
lr_policy: "fixed" max_iter: 200 display: 0 snapshot_prefix: "t" solver_mode: CPU random_seed: 1
)";

class CsvVerbTest : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments) const {
    RunOptions options;
    options.folder = folder_.path();
    return RunHere(arguments, options);
  }

  TempFolder folder_;
};

// Returns a table with y = 1000 + 10 a, or 50 more in group v.
std::string LinearTable() {
  std::string text = "id;a;group;y\r\n";
  for (int i = 0; i < 100; ++i) {
    const bool in_v = i % 3 == 0;
    text += "\"n; " + std::to_string(i) + "\";" + std::to_string(i) + (in_v ? ";v;" : ";u;") +
            std::to_string(1000 + 10 * i + (in_v ? 50 : 0)) + "\r\n";
  }
  return text;
}

TEST_F(CsvVerbTest, ATableIsTrainedOnAndPredictedInItsUnit) {
  folder_.Write("t.csv", LinearTable());
  folder_.Write("net.prototxt", kNet);
  folder_.Write("solver.prototxt", kSolver);
  const Outcome made =
      Run({"dataset", "csv", "t.csv", "train.h5", "--label=y", "--ignore=id", "--categorical=group",
           "--separator=;", "--scale=znorm", "--scale_labels", "--val=20"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("train.h5: 80 records of 3 inputs and 1 label\n"
                                        "val.h5: 20 records\n"
                                        "columns: train.h5.columns.json\n"),
                              HasSubstr("inputs 1-2"), HasSubstr("u, v")));
  ASSERT_EQ(Run({"train", "--solver=solver.prototxt"}).exit_code, 0);
  const Outcome deployed =
      Run({"deploy", "--model=net.prototxt", "--output=y", "--out=deploy.prototxt"});
  ASSERT_EQ(deployed.exit_code, 0) << deployed.err;
  EXPECT_THAT(ReadText(folder_ / "deploy.prototxt"),
              HasSubstr("# To prepare tables as its training did: trainer predict --like="));
  folder_.Write("new.csv", "group;a;id\nv;10;\"x; 1\"\nw;20;y\n");
  const std::vector<std::string> predict = {"predict", "--model=deploy.prototxt",
                                            "--weights=t_iter_200.caffemodel", "new.csv"};
  const Outcome predicted = Run(predict);
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("id;y\n\"x; 1\";11"));
  EXPECT_THAT(predicted.err, HasSubstr("new.csv: column 'group': 1 rows with a category that"));
}

TEST_F(CsvVerbTest, BadRowsAreLeftOutUpToALimit) {
  folder_.Write("t.csv", "a,y\n1,2\nx,3\n4,5\n");
  const Outcome stopped = Run({"dataset", "csv", "t.csv", "t.h5", "--label=y"});
  EXPECT_EQ(stopped.exit_code, 65);
  EXPECT_THAT(stopped.err, HasSubstr("t.csv:3: column 'a' has 'x', which is not a number"));
  const Outcome made =
      Run({"dataset", "csv", "t.csv", "t.h5", "--label=y", "--bad_records=skip=1"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("left out: 1 bad row\n"));
}

TEST_F(CsvVerbTest, BothSetsGetChecksums) {
  folder_.Write("t.csv", "a,y\n1,0\n2,1\n3,0\n4,1\n");
  const Outcome made = Run({"dataset", "csv", "t.csv", "t_lmdb", "--label=y", "--val=50%",
                            "--val_out=v_lmdb", "--write_crc"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("t_lmdb: checksums written to t_lmdb/records.crc32c"),
                              HasSubstr("v_lmdb: checksums written to v_lmdb/records.crc32c")));
}

TEST_F(CsvVerbTest, RefusesATableWithoutASet) {
  folder_.Write("new.csv", "a\n1\n");
  folder_.Write("deploy.prototxt",
                "name: 'x' layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: 1 "
                "dim: 1 } } } layer { name: 'y' type: 'Power' bottom: 'd' top: 'y' }");
  folder_.Write("w.caffemodel", "");
  const Outcome outcome =
      Run({"predict", "--model=deploy.prototxt", "--weights=w.caffemodel", "new.csv"});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("new.csv is a table, and nothing says how its columns become "
                                     "the net's inputs; give the set that 'trainer dataset csv' "
                                     "made for training, with --like=SET"));
  const Outcome several = Run({"predict", "--model=deploy.prototxt", "--weights=w.caffemodel",
                               "--like=train.h5", "new.csv", "more.csv"});
  EXPECT_EQ(several.exit_code, 64);
  EXPECT_THAT(several.err, HasSubstr("--like is for one table, but there are 2 files"));
  const Outcome json =
      Run({"predict", "--model=deploy.prototxt", "--weights=w.caffemodel", "--json", "new.csv"});
  EXPECT_EQ(json.exit_code, 64);
  EXPECT_THAT(json.err, HasSubstr("--json, --resume and --list are for images, not for a table"));
}

}  // namespace
}  // namespace trainer
