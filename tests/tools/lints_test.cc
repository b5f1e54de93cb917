// Warnings of settings that spoil a run: in `trainer check` and in the log of `trainer train`.

#include <algorithm>
#include <filesystem>

#include "check_job.h"
#include "support/source_folder.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
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

TEST(LintsTest, ANetWithoutALossIsAnErrorOfCheckAndTrain) {
  CheckJob job;
  job.net = Edited(job.net, "bottom: \"label\"\n  top: \"loss\"",
                   "bottom: \"label\"\n  top: \"loss\" include { phase: TEST }");
  job.ExpectOne(78, "net.prototxt: the training net has no loss");
}

// Data are not there, so that check ends with that error; the settings are looked at all the same.
TEST(LintsTest, TheSolversOfModelsHaveNoneOfTheSlips) {
  const TempFolder folder;
  const std::filesystem::path models = SourceFolder() + "/models";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(models)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("solver") || !name.ends_with(".prototxt")) continue;
    const Outcome check =
        RunProgram({"check", "--solver=" + entry.path().string()}, {.folder = folder.path()});
    std::vector<std::string> warnings = Lines(check, "warning: ");
    std::erase_if(warnings, [](const std::string& text) {
      return text.find("the learning rate is") == text.npos && text.find("TRAIN") == text.npos &&
             text.find("itself") == text.npos && text.find("no loss") == text.npos;
    });
    EXPECT_THAT(warnings, IsEmpty()) << entry.path();
    EXPECT_NE(check.exit_code, 70) << check.out << check.err;
  }
}

}  // namespace
}  // namespace trainer
