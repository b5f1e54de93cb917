// Warnings about settings that spoil a run: in `trainer check` and in the log of `trainer train`.

#include "check_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

TEST(LintsTest, CheckAndTrainWarnOfTheSameSlips) {
  CheckJob job;
  AddSlips(job);
  const Outcome check = job.Check();
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  const std::vector<std::string> warnings = Lines(check, "warning: ");
  EXPECT_THAT(
      warnings,
      UnorderedElementsAre(
          AllOf(StartsWith("solver.prototxt:4:"),
                HasSubstr("the learning rate is up to 3, and Adam")),
          AllOf(StartsWith("net.prototxt:"), HasSubstr("layer 'loss' (SoftmaxWithLoss) computes a "
                                                       "Softmax itself")),
          AllOf(StartsWith("net.prototxt:17:"),
                HasSubstr("layer 'digits' (Data) has scale 1 in TEST and scale 0.0039")),
          HasSubstr("has mean_value 33 in TEST and no mean in TRAIN"),
          HasSubstr("has mirror: true in TEST and none in TRAIN"),
          HasSubstr("no loss depends on layer 'side', so its weights keep"),
          "data/train_lmdb: 2 of the 12 classes of layer 'loss' (SoftmaxWithLoss) have no record: "
          "10, 11"));
  const Outcome train = job.Train();
  for (const std::string& warning : warnings) EXPECT_THAT(train.err, HasSubstr(warning));
  EXPECT_LT(train.err.find(warnings.front()), train.err.find("Iteration 0"));
}

}  // namespace
}  // namespace trainer
