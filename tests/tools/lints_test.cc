// Warnings of settings that spoil a run: in `trainer check` and in the log of `trainer train`.

#include "check_job.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

// Gives the job every slip that a lint is for.
void AddSlips(CheckJob& job) {
  job.net = Edited(job.net, "num_output: 10", "num_output: 12");
  job.net = Edited(job.net, "include { phase: TEST }\n  transform_param { scale: 0.00390625 }",
                   "include { phase: TEST }\n  transform_param { mean_value: 33 mirror: true }");
  job.net =
      Edited(job.net, "layer {\n  name: \"loss\"\n  type: \"SoftmaxWithLoss\"\n  bottom: \"ip\"",
             "layer { name: \"prob\" type: \"Softmax\" bottom: \"ip\" top: \"prob\" }\n"
             "layer { name: \"side\" type: \"InnerProduct\" bottom: \"data\" top: \"side\"\n  "
             "inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } } }\n"
             "layer {\n  name: \"loss\"\n  type: \"SoftmaxWithLoss\"\n  bottom: \"prob\"");
  job.solver = Edited(job.solver, "base_lr: 0.05", "type: \"Adam\" base_lr: 3");
}

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
