// Findings of a preflight check in a run, and its report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <regex>

#include "preflight_job.h"
#include "support/error_of.h"
#include "support/json_reader.h"
#include "support/source_folder.h"
#include "trainer/analysis/memory/memory_estimate.h"
#include "trainer/analysis/memory/memory_room.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

TEST(CheckTest, AGoodRunGivesFiguresAndAVerdict) {
  const PreflightJob job;
  job.Write();
  const auto before = job.Everything();
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(outcome.Lines("error"), IsEmpty());
  EXPECT_THAT(outcome.Lines("warning"), IsEmpty());
  EXPECT_THAT(outcome.Lines("data "),
              ElementsAre(EndsWith("training net: data/train_lmdb, 100 records, batches of 16: 7 "
                                   "iterations per epoch, 3.2 epochs in all"),
                          EndsWith("test net #0: data/test_lmdb, 40 records, batches of 16, a "
                                   "test is one pass over all records")));
  EXPECT_THAT(outcome.Lines("snapshots "), ElementsAre(EndsWith("2 of 61.4 KiB as snap_iter_...")));
  EXPECT_EQ(outcome.Lines("first pass ").size(), 2u);
  EXPECT_THAT(outcome.Lines("check: "), ElementsAre(AllOf(StartsWith("all good; "),
                                                          HasSubstr(" of memory, 100 records and 7 "
                                                                    "iterations per epoch"),
                                                          EndsWith("snapshots of 61.4 KiB"))));
  EXPECT_EQ(job.Everything(), before) << "nothing was written";
}

TEST(CheckTest, LinesFitTheColumnsAndKeepNumbersWithTheirUnits) {
  const PreflightJob job;
  setenv("COLUMNS", "60", 1);
  const CheckOutcome outcome = job.Check();
  unsetenv("COLUMNS");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  for (const std::string& line : SplitList(outcome.out, '\n')) {
    EXPECT_LE(line.size(), 60u);
    EXPECT_FALSE(std::regex_search(line, std::regex("^ *([KMG]iB|B|ms|%)"))) << line;
  }
  EXPECT_TRUE(std::regex_search(outcome.out, std::regex(R"(\n {12}\S)"))) << outcome.out;
}

JsonValue CheckAsJson(const PreflightJob& job) {
  job.Write();
  const CurrentFolder here(job.folder().path());
  return ReadJson(ToJson(Preflight(job.request)).ToString());
}

size_t PlannedBytes(const PreflightJob& job) {
  return static_cast<size_t>(CheckAsJson(job)["figures"]["memory"]["planned_bytes"].number);
}

TEST(CheckTest, AppliesTheBatchAndTheMemoryOfTheRun) {
  PreflightJob job;
  const size_t usual = PlannedBytes(job);
  job.request.batch = "25";
  EXPECT_THAT(
      job.Check().Lines("data "),
      ElementsAre(HasSubstr("batches of 25: 4 iterations per epoch"), HasSubstr("batches of 16")));
  job.request.batch = "100";
  EXPECT_GT(PlannedBytes(job), usual);
  job.request.batch = "none";
  job.ExpectOne(64, "--batch=none: give the number of images in a batch");
  job.request.batch = "";
  job.request.memory = "much";
  job.ExpectOne(64, "--memory=much: not a memory size");
  job.request.memory = "50K";
  job.ExpectOne(81, "--memory: the run may use 50.0 KiB but needs");
}

TEST(CheckTest, CountsTheMemoryThatThePlanCounts) {
  PreflightJob job;
  job.solver = Edited(job.solver, "momentum: 0.9", "momentum: 0.9 ema_decay: 0.9");
  const size_t checked = PlannedBytes(job);
  const CurrentFolder here(job.folder().path());
  const std::unique_ptr<Device> device = MakeDevice();
  const MemoryEstimate estimate = EstimateMemory(LoadSolver("solver.prototxt"), *device);
  EXPECT_EQ(TotalBytes(estimate.Items(UnlimitedRoom(*device))), checked);
}

TEST(CheckTest, TheJsonHoldsTheSame) {
  PreflightJob job;
  job.solver = Edited(job.solver, "lr_policy: \"inv\"\ngamma: 0.01\npower: 0.75",
                      "lr_policy: \"multistep\" gamma: 0.1 stepvalue: 5 stepvalue: 50");
  const JsonValue json = CheckAsJson(job);
  EXPECT_EQ(json["exit_code"].number, 0);
  EXPECT_EQ(json["good"].text, "true");
  EXPECT_EQ(json["errors"].number, 0);
  EXPECT_EQ(json["warnings"].number, 1);
  EXPECT_EQ(json["findings"][0]["severity"].text, "warning");
  EXPECT_EQ(json["findings"][0]["place"].text, "solver.prototxt:5:48");
  EXPECT_THAT(json["findings"][0]["message"].text, StartsWith("stepvalue 50 is never reached"));
  EXPECT_EQ(json["figures"]["data"][0]["records"].number, 100);
  EXPECT_EQ(json["figures"]["data"][0]["iterations_per_epoch"].number, 7);
  EXPECT_EQ(json["figures"]["snapshot"]["bytes"].number, 7856 * 4 * 2);
  EXPECT_NEAR(json["figures"]["rate"]["last"].number, 0.005, 1e-7);
  EXPECT_GT(json["figures"]["memory"]["planned_bytes"].number, 7850 * 4 * 3);
  EXPECT_GT(json["figures"]["first_pass"]["training net"]["loss"].number, 1);
  job.net = Edited(job.net, "num_output: 10", "num_ouput: 10");
  const JsonValue bad = CheckAsJson(job);
  EXPECT_EQ(bad["exit_code"].number, 78);
  const JsonValue first = bad["findings"][0];
  EXPECT_EQ(first["severity"].text, "error");
  EXPECT_EQ(first["exit_code"].number, 78);
  EXPECT_EQ(first["place"].text, "net.prototxt:26:5");
}

TEST(CheckTest, GoesOnAfterAnErrorToFindTheNext) {
  PreflightJob job;
  job.solver = Edited(job.solver, "base_lr: 0.05", "base_lr: -1");
  job.solver = Edited(job.solver, "max_iter: 20", "max_iter: 0");
  job.solver = Edited(job.solver, "\"snap\"", "\"absent/snap\"");
  job.solver = Edited(job.solver, "random_seed: 7", "type: \"SDG\"");
  job.net = Edited(job.net, "data/train_lmdb", "data/absent");
  job.net = Edited(job.net, "num_output: 10", "num_output: 0");
  job.net = Edited(job.net, "bottom: \"label\"\n  top: \"accuracy\"",
                   "bottom: \"label\"\n  top: \"accuracy\" accuracy_param { top_k: 0 }");
  job.net += R"(
layer { name: "other" type: "Convolution" bottom: "ip" top: "other" convolution_param { } }
layer { name: "typo" type: "Poling" bottom: "ip" top: "typo" }
)";
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 78) << outcome.out;
  EXPECT_THAT(outcome.Errors(),
              UnorderedElementsAre(HasSubstr("base_lr is -1"), HasSubstr("max_iter is 0"),
                                   HasSubstr("Did you mean 'SGD'?"), HasSubstr("data/absent"),
                                   HasSubstr("num_output"), HasSubstr("Did you mean 'Pooling'?"),
                                   HasSubstr("the folder for snapshots does not exist")))
      << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("\ncheck: 7 errors, "));
}

TEST(CheckTest, SaysWhatIsWrongWithTheFiles) {
  {
    PreflightJob job;
    job.net = Edited(job.net, "data/test_lmdb", "data/absent");
    job.ExpectOne(66, "source 'data/absent' does not exist; tried /");
  }
  {
    PreflightJob job;
    std::filesystem::resize_file(job.folder() / "data/train_lmdb/data.mdb", 5 * 4096);
    job.ExpectOne(65, "data.mdb is truncated");
  }
  {
    PreflightJob job;
    job.net = Edited(job.net, "scale: 0.00390625", "mean_file: \"mean\"");
    job.ExpectOne(66, "mean");
  }
  {
    PreflightJob job;
    job.solver = Edited(job.solver, "\"net.prototxt\"", "\"nt.prototxt\"");
    job.ExpectOne(66, "the net file 'nt.prototxt' does not exist");
  }
  {
    PreflightJob job;
    job.solver = Edited(job.solver, "\"snap\"", "\"" + std::string(230, 's') + "\"");
    job.ExpectOne(73, "choose a shorter one");
  }
  if (FindGpus().gpus.empty()) {
    PreflightJob job;
    job.solver = Edited(job.solver, "solver_mode: CPU", "solver_mode: GPU");
    job.ExpectOne(69, "write solver_mode: CPU or give --set solver_mode=CPU");
    job.request.solver.set = {"solver_mode=CPU"};
    EXPECT_EQ(job.Check().exit_code, 0);
  }
  {
    PreflightJob job;
    job.solver = Edited(job.solver, "max_iter: 20\n", "");
    job.ExpectOne(78,
                  "max_iter is missing: the number of iterations to train for; write max_iter: "
                  "10000, or give --set max_iter=10000");
    job.request.solver.set = {"max_iter=10"};
    EXPECT_EQ(job.Check().exit_code, 0);
  }
  {
    PreflightJob job;
    job.solver += "iter_size: 0\n";
    job.ExpectOne(78, "iter_size is 0; it must be at least 1");
  }
  {
    PreflightJob job;
    job.solver = Edited(job.solver, "\"snap\"", "\"\"");
    job.ExpectOne(78, "solver.prototxt:13:1: snapshot_prefix is empty");
  }
}

// Untrained, each batch norm multiplies by 316 in the TEST phase.
TEST(CheckTest, ATestThatOverflowsBeforeTheTrainingIsAWarningIfTheRunMakesIt) {
  PreflightJob job;
  std::string norms;
  for (int i = 0; i < 20; ++i) {
    norms += "layer { name: \"bn" + std::to_string(i) +
             "\" type: \"BatchNorm\" bottom: \"ip\" top: \"ip\" }\n";
  }
  job.net =
      Edited(job.net, "layer {\n  name: \"accuracy\"", norms + "layer {\n  name: \"accuracy\"");
  for (const char* set : {"test_initialization=true", "test_initialization=false"}) {
    job.request.solver.set = {set};
    const CheckOutcome outcome = job.Check();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
    const std::vector<std::string> warnings = outcome.Warnings();
    if (std::string_view(set).ends_with("false")) {
      EXPECT_THAT(warnings, IsEmpty()) << "the run makes no such test";
    } else {
      EXPECT_THAT(warnings, ElementsAre(AllOf(StartsWith("net.prototxt:"),
                                              HasSubstr("the loss of the test net #0 is"))));
    }
  }
}

TEST(CheckStartTest, ReadsTheWeightsAndTheSnapshot) {
  PreflightJob job;
  job.Train();
  const auto before = job.Everything();
  const StartOptions starts[] = {{.snapshot = "snap_iter_10.solverstate"},
                                 {.resume = "auto"},
                                 {.weights = "snap_iter_10.caffemodel"}};
  for (const StartOptions& start : starts) {
    job.request.start = start;
    const CheckOutcome outcome = job.Check();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("\ncheck: all good"));
  }
  EXPECT_EQ(job.Everything(), before) << "nothing was written";
  const std::string state = job.folder() / "snap_iter_10.solverstate";
  std::filesystem::resize_file(state, 1000);
  job.request.start = {.snapshot = "snap_iter_10.solverstate"};
  const CheckOutcome cut = job.Check();
  EXPECT_EQ(cut.exit_code, 83) << cut.out;
  EXPECT_THAT(cut.Errors(), ElementsAre(HasSubstr("snap_iter_10.solverstate")));
  EXPECT_EQ(cut.Lines("first pass ").size(), 2u) << "without it";
  job.net = Edited(job.net, "num_output: 10", "num_output: 11");
  job.request.start = {.weights = "snap_iter_20.caffemodel"};
  const CheckOutcome other = job.Check();
  EXPECT_EQ(other.exit_code, 0) << other.out;
  EXPECT_THAT(other.out, HasSubstr("warning: transferred 0 of 2 blobs; ip: 10 -> 11"));
  job.request.start = {.snapshot = "b", .weights = "a"};
  EXPECT_EQ(ErrorOf([&] { job.Check(); }).first, ErrorCode::kUsage);
}

TEST(CheckStartTest, LayersWithoutWeightsAreAWarning) {
  PreflightJob job;
  job.Train();
  job.net += R"(
layer { name: "new" type: "InnerProduct" bottom: "data" top: "new"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "quiet" type: "Silence" bottom: "new" })";
  job.request.start.weights = "snap_iter_20.caffemodel";
  const CheckOutcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(outcome.Warnings(),
              ElementsAre(HasSubstr("1 layer of the net is not in the given weights files"),
                          HasSubstr("no loss depends on layer 'new'")));
}

TEST(CheckNetTest, ChecksOneNet) {
  PreflightJob job;
  job.Train();
  NetRequest net;
  net.model.file = "net.prototxt";
  const CheckOutcome train = job.Check(net);
  EXPECT_EQ(train.exit_code, 0) << train.out;
  EXPECT_THAT(train.out, HasSubstr("net: data/train_lmdb, 100 records"));
  net.phase = caffe::TEST;
  net.weights = {"snap_iter_20.caffemodel"};
  const CheckOutcome test = job.Check(net);
  EXPECT_EQ(test.exit_code, 0) << test.out;
  EXPECT_THAT(test.out, HasSubstr("net: data/test_lmdb, 40 records"));
  EXPECT_THAT(test.out, HasSubstr("accuracy = "));
  net.model.set = {"layer[ip].inner_product_param.num_output=5"};
  EXPECT_EQ(job.Check(net).exit_code, 65);
  net.model.set = {"layer[none].type=ReLU"};
  EXPECT_EQ(job.Check(net).exit_code, 64);
  net.model.set = {};
  net.weights = {"none"};
  EXPECT_EQ(job.Check(net).exit_code, 66);
}

TEST(CheckNetTest, EveryUnknownFillerIsReported) {
  PreflightJob job;
  job.net =
      R"(layer { name: "d" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 3 } } }
layer { name: "a" type: "InnerProduct" bottom: "x" top: "a"
  inner_product_param { num_output: 2 weight_filler { type: "one" } bias_filler { type: "two" } } }
)";
  NetRequest net;
  net.model.file = "net.prototxt";
  const CheckOutcome outcome = job.Check(net);
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.out, HasSubstr("layer 'a' (InnerProduct): filler: unknown type 'one'"));
  EXPECT_THAT(outcome.out, HasSubstr("layer 'a' (InnerProduct): filler: unknown type 'two'"));
}

TEST(LintsTest, CheckWarnsOfEverySlip) {
  PreflightJob job;
  AddSlips(job);
  const CheckOutcome check = job.Check();
  EXPECT_EQ(check.exit_code, 0) << check.out;
  const std::vector<std::string> warnings = check.Warnings();
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
}

TEST(LintsTest, ANetWithoutALossIsAnErrorOfCheckAndTrain) {
  PreflightJob job;
  job.net = Edited(job.net, "bottom: \"label\"\n  top: \"loss\"",
                   "bottom: \"label\"\n  top: \"loss\" include { phase: TEST }");
  job.ExpectOne(78, "net.prototxt: the training net has no loss");
}

// The data are missing, which is an error; the settings are checked nevertheless.
TEST(LintsTest, TheSolversOfModelsHaveNoneOfTheSlips) {
  const TempFolder folder;
  const CurrentFolder here(folder.path());
  const std::filesystem::path models = SourceFolder() + "/models";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(models)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("solver") || !name.ends_with(".prototxt")) continue;
    TrainRequest request;
    request.solver.file = entry.path().string();
    const PreflightReport report = Preflight(request);
    std::vector<std::string> warnings = report.diagnostics.WarningTexts();
    std::erase_if(warnings, [](const std::string& text) {
      return text.find("the learning rate is") == text.npos && text.find("TRAIN") == text.npos &&
             text.find("itself") == text.npos && text.find("no loss") == text.npos;
    });
    EXPECT_THAT(warnings, IsEmpty()) << entry.path();
    EXPECT_NE(report.diagnostics.ExitCode(), 70) << ToText(report);
  }
}

}  // namespace
}  // namespace trainer
