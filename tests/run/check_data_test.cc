// Findings of a preflight check in records.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_job.h"
#include "support/records.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(CheckDataTest, NamesTheRecordOfABadLabel) {
  PreflightJob job;
  PutRecord(job, "data/train_lmdb", 7, DigitOf(12).SerializeAsString());
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.Errors(),
              ElementsAre("data/train_lmdb: record '00000007' has label 12, but layer 'loss' "
                          "(SoftmaxWithLoss) has 10 classes, 0 to 9; correct the labels, raise "
                          "num_output of the layer that computes the scores, or set ignore_label"));
  EXPECT_THAT(outcome.Lines("first pass "), Contains(HasSubstr("training net: not run on bad")));
  job.net = Edited(job.net, "top: \"loss\"", "top: \"loss\" loss_param { ignore_label: 12 }");
  EXPECT_EQ(job.Check().exit_code, 0);
}

TEST(CheckDataTest, NamesTheRecordThatCannotBeRead) {
  PreflightJob job;
  PutRecord(job, "data/test_lmdb", 39, "no datum");
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr("data/test_lmdb: record '00000039'")));
}

TEST(CheckDataTest, NamesEveryFileThatIsNotThere) {
  PreflightJob job;
  job.net = Edited(job.net, "transform_param { scale: 0.00390625 }",
                   "transform_param { mean_file: \"no_mean\" }");
  job.net = Edited(job.net, "data/train_lmdb", "data/absent");
  job.net = Edited(job.net, "\"data/test_lmdb\"", "\"data/gone\"");
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 66);
  EXPECT_THAT(
      outcome.Errors(),
      ElementsAre(StartsWith("net.prototxt:8:21: layer 'digits' (Data): mean_file 'no_mean' does "
                             "not exist; tried /"),
                  StartsWith("net.prototxt:18:16: layer 'digits' (Data): source 'data/gone' does "
                             "not exist; tried /"),
                  StartsWith("net.prototxt:9:16: layer 'digits' (Data): source 'data/absent' does "
                             "not exist; tried /")));
}

TEST(CheckDataTest, WarnsOfATestThatDoesNotFitTheData) {
  PreflightJob job;
  job.solver = Edited(job.solver, "test_iter: 0", "test_iter: 3");
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(
      outcome.Warnings(),
      ElementsAre("Test net (#0): test_iter 3 with batches of 16 reads 48 records, and the data "
                  "of layer 'digits' has 40: some records count more often than others; "
                  "without test_iter, a test reads each record exactly once"));
}

TEST(CheckDataTest, WarnsOfClassesWithoutRecords) {
  PreflightJob job;
  job.net = Edited(job.net, "num_output: 10", "num_output: 12");
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(outcome.Warnings(),
              ElementsAre("data/train_lmdb: 2 of the 12 classes of layer 'loss' (SoftmaxWithLoss) "
                          "have no record: 10, 11"));
  EXPECT_THAT(outcome.out, HasSubstr("\ncheck: 0 errors, 1 warning; "));
}

TEST(CheckDataTest, WarnsOfUnbalancedClassesAndCountsABalancedEpoch) {
  PreflightJob job;
  const std::string path = job.folder() / "data/train_lmdb";
  std::filesystem::remove_all(path);
  const auto writer = CreateDb("LMDB", path);
  for (int i = 0; i < 100; ++i) {
    writer->Put(Join(1000 + i), DigitOf(i == 42 ? 3 : i % 2).SerializeAsString());
  }
  writer->Commit();
  job.net = Edited(job.net, "num_output: 10", "num_output: 4");
  const CheckOutcome outcome = job.Check();
  EXPECT_THAT(outcome.Warnings(),
              Contains(AllOf(StartsWith("net.prototxt:"),
                             HasSubstr("layer 'loss' (SoftmaxWithLoss): the classes of "
                                       "data/train_lmdb are unbalanced, 50 : 1: class 1 has 50 "
                                       "records and class 3 has 1"))));
  job.net = Edited(job.net, "source: \"data/train_lmdb\"",
                   "source: \"data/train_lmdb\" sampling: BALANCED");
  const CheckOutcome balanced = job.Check();
  EXPECT_THAT(balanced.Warnings(), Not(Contains(HasSubstr("unbalanced"))));
  EXPECT_THAT(balanced.out,
              HasSubstr("100 records, 150 in a balanced epoch, batches of 16: 10 iterations per "
                        "epoch"));
}

TEST(CheckDataTest, WorksOnLevelDb) {
  const PreflightJob job("LEVELDB");
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("100 records, batches of 16"));
}

}  // namespace
}  // namespace trainer
