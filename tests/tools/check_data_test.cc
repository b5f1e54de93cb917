// trainer check: what it finds in records and in the first pass.

#include "check_job.h"
#include "records.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(CheckDataTest, NamesTheRecordOfABadLabel) {
  CheckJob job;
  PutRecord(job, "data/train_lmdb", 7, DigitOf(12).SerializeAsString());
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(Lines(outcome, "error: "),
              ElementsAre("data/train_lmdb: record '00000007' has label 12, but layer 'loss' "
                          "(SoftmaxWithLoss) has 10 classes, 0 to 9; correct the labels, raise "
                          "num_output of the layer that computes the scores, or set ignore_label"));
  EXPECT_THAT(Lines(outcome, "first pass "), Contains(HasSubstr("training net: not run on bad")));
  job.net = Edited(job.net, "top: \"loss\"", "top: \"loss\" loss_param { ignore_label: 12 }");
  EXPECT_EQ(job.Check().exit_code, 0);
}

TEST(CheckDataTest, NamesTheRecordThatCannotBeRead) {
  CheckJob job;
  PutRecord(job, "data/test_lmdb", 39, "no datum");
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(Lines(outcome, "error: "),
              ElementsAre(HasSubstr("data/test_lmdb: record '00000039'")));
}

TEST(CheckDataTest, NamesEveryFileThatIsNotThere) {
  CheckJob job;
  job.net = Edited(job.net, "transform_param { scale: 0.00390625 }",
                   "transform_param { mean_file: \"no_mean\" }");
  job.net = Edited(job.net, "data/train_lmdb", "data/absent");
  job.net = Edited(job.net, "\"data/test_lmdb\"", "\"data/gone\"");
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 66);
  EXPECT_THAT(
      Lines(outcome, "error: "),
      ElementsAre(StartsWith("net.prototxt:8:21: layer 'digits' (Data): mean_file 'no_mean' does "
                             "not exist; tried /"),
                  StartsWith("net.prototxt:18:16: layer 'digits' (Data): source 'data/gone' does "
                             "not exist; tried /"),
                  StartsWith("net.prototxt:9:16: layer 'digits' (Data): source 'data/absent' does "
                             "not exist; tried /")));
}

TEST(CheckDataTest, WarnsOfATestThatDoesNotFitTheData) {
  CheckJob job;
  job.solver = Edited(job.solver, "test_iter: 0", "test_iter: 3");
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(
      Lines(outcome, "warning: "),
      ElementsAre("Test net (#0): test_iter 3 with batches of 16 reads 48 records, and the data "
                  "of layer 'digits' has 40: some records count more often than others; "
                  "without test_iter, a test reads each record exactly once"));
  EXPECT_THAT(job.Train().err, HasSubstr("Test net (#0): test_iter 3 with batches of 16 reads 48"));
}

TEST(CheckDataTest, WarnsOfClassesWithoutRecords) {
  CheckJob job;
  job.net = Edited(job.net, "num_output: 10", "num_output: 12");
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(Lines(outcome, "warning: "),
              ElementsAre("data/train_lmdb: 2 of the 12 classes of layer 'loss' (SoftmaxWithLoss) "
                          "have no record: 10, 11"));
  EXPECT_THAT(outcome.out, HasSubstr("\ncheck: 0 errors, 1 warning; "));
}

TEST(CheckDataTest, WorksOnLevelDb) {
  const CheckJob job("LEVELDB");
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("100 records, batches of 16"));
}

TEST(CheckPassTest, FindsALossThatIsNotFinite) {
  CheckJob job;
  job.net = Edited(job.net, "bottom: \"data\"\n  top: \"ip\"", "bottom: \"log\"\n  top: \"ip\"");
  job.net = Edited(job.net, "layer {\n  name: \"ip\"",
                   "layer { name: \"log\" type: \"Log\" bottom: \"data\" top: \"log\" }\n"
                   "layer {\n  name: \"ip\"");
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 80) << outcome.out;
  EXPECT_THAT(Lines(outcome, "error: "),
              ElementsAre(AllOf(StartsWith("net.prototxt:20:1: the loss of the training net is "),
                                HasSubstr("the first layer with an output that is not finite is "
                                          "layer 'log' (Log)"))));
  EXPECT_THAT(Lines(outcome, "warning: "),
              testing::Contains(HasSubstr("the loss of the test net #0 is ")));
  EXPECT_EQ(job.Train().exit_code, 80);
}

TEST(CheckPassTest, WarnsOfAStartFarFromGuessingAndOfDeadLayers) {
  CheckJob job;
  job.net =
      Edited(job.net, "transform_param { scale: 0.00390625 }", "transform_param { scale: 10 }");
  const Outcome large = job.Check();
  EXPECT_EQ(large.exit_code, 0);
  EXPECT_THAT(Lines(large, "warning: "),
              testing::Contains(HasSubstr("guessing among 10 classes would give 2.30259")));
  job.net = Edited(job.net, "scale: 10", "scale: 0.004");
  job.net = Edited(job.net, "bottom: \"data\"\n  top: \"ip\"", "bottom: \"low\"\n  top: \"ip\"");
  job.net = Edited(job.net, "    weight_filler { type: \"xavier\" }\n", "");
  job.net = Edited(job.net, "layer {\n  name: \"ip\"",
                   "layer { name: \"low\" type: \"InnerProduct\" bottom: \"data\" top: \"low\" "
                   "inner_product_param { num_output: 5 weight_filler { type: \"xavier\" } } }\n"
                   "layer {\n  name: \"ip\"");
  const Outcome dead = job.Check();
  EXPECT_THAT(Lines(dead, "warning: "),
              ElementsAre(HasSubstr("the gradient of layer 'low' (parameter 0) is zero")));
}

TEST(CheckPassTest, WritesNoHdf5Output) {
  CheckJob job;
  job.net += R"(
layer { name: "out" type: "HDF5Output" bottom: "ip" bottom: "label"
        hdf5_output_param { file_name: "out.h5" } })";
  job.ExpectOne(78, "another layer of this run writes 'out.h5'; give each layer its own file");
  EXPECT_THAT(job.Files("out"), IsEmpty());
  job.net = Edited(job.net, "\"out.h5\"", "\"out.h5\" } include { phase: TRAIN");
  EXPECT_EQ(job.Check().exit_code, 0);
  EXPECT_THAT(job.Files("out"), IsEmpty());
}

}  // namespace
}  // namespace trainer
