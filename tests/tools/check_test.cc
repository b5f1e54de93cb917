// trainer check: all that would stop a run, in one list, and nothing written.

#include "check_job.h"
#include "json_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(CheckTest, AGoodRunGivesFiguresAndAVerdict) {
  const CheckJob job;
  job.Write();
  const auto before = job.Everything();
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(Lines(outcome, "error"), IsEmpty());
  EXPECT_THAT(Lines(outcome, "warning"), IsEmpty());
  EXPECT_THAT(Lines(outcome, "data "),
              ElementsAre(EndsWith("training net: data/train_lmdb, 100 records, batches of 16: 7 "
                                   "iterations per epoch, 3.2 epochs in all"),
                          EndsWith("test net #0: data/test_lmdb, 40 records, batches of 16, a "
                                   "test is one pass over all records")));
  EXPECT_THAT(Lines(outcome, "snapshots "),
              ElementsAre(EndsWith("2 of 61.4 KiB as snap_iter_...")));
  EXPECT_EQ(Lines(outcome, "first pass ").size(), 2u);
  EXPECT_THAT(Lines(outcome, "check: "),
              ElementsAre(AllOf(StartsWith("all good; "),
                                HasSubstr(" of memory, 100 records and 7 "
                                          "iterations per epoch"),
                                EndsWith("snapshots of 61.4 KiB"))));
  EXPECT_EQ(job.Everything(), before) << "nothing was written";
}

TEST(CheckTest, LinesFitTheColumnsAndKeepNumbersWithTheirUnits) {
  const CheckJob job;
  job.Write();
  RunOptions narrow = job.options();
  narrow.env.push_back("COLUMNS=60");
  const Outcome outcome = RunProgram({"check", "--solver=solver.prototxt"}, narrow);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  for (const std::string& line : SplitList(outcome.out, '\n')) {
    EXPECT_LE(line.size(), 60u);
    EXPECT_FALSE(Finds(line, "^ *([KMG]iB|B|ms|%)")) << line;
  }
  EXPECT_TRUE(Finds(outcome.out, R"(\n {12}\S)")) << outcome.out;
}

size_t PlannedBytes(const Outcome& outcome) {
  return static_cast<size_t>(ReadJson(outcome.out)["figures"]["memory"]["planned_bytes"].number);
}

TEST(CheckTest, TakesTheBatchAndTheMemoryThatTrainTakes) {
  const CheckJob job;
  EXPECT_THAT(
      Lines(job.Check({"--batch=25"}), "data "),
      ElementsAre(HasSubstr("batches of 25: 4 iterations per epoch"), HasSubstr("batches of 16")));
  const size_t all = PlannedBytes(job.Check({"--batch=100", "--json"}));
  EXPECT_GT(all, PlannedBytes(job.Check({"--json"})));
  job.ExpectOne(64, "--batch=none: give the number of images in a batch", {"--batch=none"});
  job.ExpectOne(64, "--memory=much: not a memory size", {"--memory=much"});
  job.ExpectOne(81, "--memory: the run may use 50.0 KiB but needs", {"--memory=50K"});
}

TEST(CheckTest, CountsTheMemoryThatThePlanCounts) {
  CheckJob job;
  job.solver = Edited(job.solver, "momentum: 0.9", "momentum: 0.9 ema_decay: 0.9");
  const size_t checked = PlannedBytes(job.Check({"--json"}));
  const Outcome plan = RunProgram({"plan", "--json", "--solver=solver.prototxt"}, job.options());
  EXPECT_EQ(ReadJson(plan.out)["bytes"]["together"].number, checked);
}

TEST(CheckTest, TheJsonHoldsTheSame) {
  CheckJob job;
  job.solver = Edited(job.solver, "lr_policy: \"inv\"\ngamma: 0.01\npower: 0.75",
                      "lr_policy: \"multistep\" gamma: 0.1 stepvalue: 5 stepvalue: 50");
  const Outcome outcome = job.Check({"--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const JsonValue json = ReadJson(outcome.out);
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
  const Outcome bad = job.Check({"--json"});
  EXPECT_EQ(bad.exit_code, 78);
  const JsonValue first = ReadJson(bad.out)["findings"][0];
  EXPECT_EQ(first["severity"].text, "error");
  EXPECT_EQ(first["exit_code"].number, 78);
  EXPECT_EQ(first["place"].text, "net.prototxt:26:5");
}

TEST(CheckTest, GoesOnAfterAnErrorToFindTheNext) {
  CheckJob job;
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
  const Outcome outcome = job.Check();
  EXPECT_EQ(outcome.exit_code, 78) << outcome.out;
  EXPECT_THAT(
      Lines(outcome, "error: "),
      testing::UnorderedElementsAre(HasSubstr("base_lr is -1"), HasSubstr("max_iter is 0"),
                                    HasSubstr("Did you mean 'SGD'?"), HasSubstr("data/absent"),
                                    HasSubstr("num_output"), HasSubstr("Did you mean 'Pooling'?"),
                                    HasSubstr("the folder for snapshots does not exist")))
      << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("\ncheck: 7 errors, "));
}

TEST(CheckTest, SaysWhatIsWrongWithTheFiles) {
  const CheckJob start;
  {
    CheckJob job = CheckJob();
    job.net = Edited(job.net, "data/test_lmdb", "data/absent");
    job.ExpectOne(66, "source 'data/absent' does not exist; tried /");
  }
  {
    CheckJob job;
    std::filesystem::resize_file(job.folder() / "data/train_lmdb/data.mdb", 5 * 4096);
    job.ExpectOne(65, "data.mdb is truncated");
  }
  {
    CheckJob job;
    job.net = Edited(job.net, "scale: 0.00390625", "mean_file: \"mean\"");
    job.ExpectOne(66, "mean");
  }
  {
    CheckJob job;
    job.solver = Edited(job.solver, "\"net.prototxt\"", "\"nt.prototxt\"");
    job.ExpectOne(66, "the net file 'nt.prototxt' does not exist");
  }
  {
    CheckJob job;
    job.solver = Edited(job.solver, "\"snap\"", "\"" + std::string(230, 's') + "\"");
    job.ExpectOne(73, "choose a shorter one");
  }
  {
    CheckJob job;
    job.solver = Edited(job.solver, "solver_mode: CPU", "solver_mode: GPU");
    job.ExpectOne(69, "write solver_mode: CPU or give --set solver_mode=CPU");
    EXPECT_EQ(job.Check({"--set", "solver_mode=CPU"}).exit_code, 0);
    EXPECT_EQ(job.Train({"--set", "solver_mode=CPU"}).exit_code, 0);
  }
  {
    CheckJob job;
    job.solver = Edited(job.solver, "max_iter: 20\n", "");
    job.ExpectOne(78,
                  "max_iter is missing: the number of iterations to train for; write max_iter: "
                  "10000, or give --set max_iter=10000");
    EXPECT_EQ(job.Check({"--set", "max_iter=10"}).exit_code, 0);
    EXPECT_EQ(job.Train({"--set", "max_iter=10"}).exit_code, 0);
  }
  {
    CheckJob job;
    job.solver += "iter_size: 0\n";
    job.ExpectOne(78, "iter_size is 0; it must be at least 1");
  }
  {
    CheckJob job;
    job.solver = Edited(job.solver, "\"snap\"", "\"\"");
    job.ExpectOne(78, "solver.prototxt:13:1: snapshot_prefix is empty");
  }
}

// Untrained, each batch norm multiplies by 316 in the TEST phase.
TEST(CheckTest, ATestThatOverflowsBeforeTheTrainingIsAWarningIfTheRunMakesIt) {
  CheckJob job;
  std::string norms;
  for (int i = 0; i < 20; ++i) {
    norms += "layer { name: \"bn" + std::to_string(i) +
             "\" type: \"BatchNorm\" bottom: \"ip\" top: \"ip\" }\n";
  }
  job.net =
      Edited(job.net, "layer {\n  name: \"accuracy\"", norms + "layer {\n  name: \"accuracy\"");
  for (const char* set : {"test_initialization=true", "test_initialization=false"}) {
    const Outcome outcome = job.Check({"--set", set});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
    const std::vector<std::string> warnings = Lines(outcome, "warning: ");
    if (std::string_view(set).ends_with("false")) {
      EXPECT_THAT(warnings, IsEmpty()) << "the run makes no such test";
    } else {
      EXPECT_THAT(warnings, ElementsAre(AllOf(StartsWith("net.prototxt:"),
                                              HasSubstr("the loss of the test net #0 is"))));
    }
    EXPECT_EQ(job.Train({"--set", set}).exit_code, 0);
    for (const std::string& name : job.Files("snap")) {
      std::filesystem::remove(job.folder() / name);
    }
  }
}

TEST(CheckStartTest, ReadsTheWeightsAndTheSnapshot) {
  CheckJob job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const auto before = job.Everything();
  for (const char* flag : {"--snapshot=snap_iter_10.solverstate", "--resume=auto",
                           "--weights=snap_iter_10.caffemodel"}) {
    const Outcome outcome = job.Check({flag});
    EXPECT_EQ(outcome.exit_code, 0) << flag << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\ncheck: all good"));
  }
  EXPECT_EQ(job.Everything(), before) << "nothing was written";
  const std::string state = job.folder() / "snap_iter_10.solverstate";
  std::filesystem::resize_file(state, 1000);
  const Outcome cut = job.Check({"--snapshot=snap_iter_10.solverstate"});
  EXPECT_EQ(cut.exit_code, 83) << cut.out;
  EXPECT_THAT(Lines(cut, "error: "), ElementsAre(HasSubstr("snap_iter_10.solverstate")));
  EXPECT_EQ(Lines(cut, "first pass ").size(), 2u) << "without it";
  job.net = Edited(job.net, "num_output: 10", "num_output: 11");
  const Outcome other = job.Check({"--weights=snap_iter_20.caffemodel"});
  EXPECT_EQ(other.exit_code, 65) << other.out;
  EXPECT_THAT(Lines(other, "error: "), ElementsAre(HasSubstr("its shape is 10 784")));
  EXPECT_EQ(job.Check({"--weights=a", "--snapshot=b"}).exit_code, 64);
}

TEST(CheckStartTest, LayersWithoutWeightsAreAWarning) {
  CheckJob job;
  ASSERT_EQ(job.Train().exit_code, 0);
  job.net += R"(
layer { name: "new" type: "InnerProduct" bottom: "data" top: "new"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "quiet" type: "Silence" bottom: "new" })";
  const Outcome outcome = job.Check({"--weights=snap_iter_20.caffemodel"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(Lines(outcome, "warning: "),
              ElementsAre(HasSubstr("1 layer of the net is not in the given weights files"),
                          HasSubstr("no loss depends on layer 'new'")));
}

TEST(CheckModelTest, ChecksOneNet) {
  CheckJob job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"check", "--model=net.prototxt"});
    return RunProgram(more, job.options());
  };
  const Outcome train = run({});
  EXPECT_EQ(train.exit_code, 0) << train.out << train.err;
  EXPECT_THAT(train.out, HasSubstr("net: data/train_lmdb, 100 records"));
  const Outcome test = run({"--phase=TEST", "--weights=snap_iter_20.caffemodel"});
  EXPECT_EQ(test.exit_code, 0) << test.out << test.err;
  EXPECT_THAT(test.out, HasSubstr("net: data/test_lmdb, 40 records"));
  EXPECT_THAT(test.out, HasSubstr("accuracy = "));
  EXPECT_EQ(run({"--weights=none"}).exit_code, 66);
  EXPECT_EQ(run({"--set=layer[ip].inner_product_param.num_output=5"}).exit_code, 65);
  EXPECT_EQ(run({"--resume=auto"}).exit_code, 64);
  EXPECT_EQ(run({"--set=layer[none].type=ReLU"}).exit_code, 64);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(CheckMemoryTest, NamesWhatARunTooLargeForTheMachineIsMadeOf) {
  CheckJob job;
  job.net = Edited(job.net, "num_output: 10", "num_output: 1000000");
  job.Write();
  RunOptions options = job.options();
  options.memory_limit = size_t{4} << 30;
  const Outcome outcome = RunProgram({"check", "--solver=solver.prototxt"}, options);
  EXPECT_EQ(outcome.exit_code, 81) << outcome.out << outcome.err;
  EXPECT_THAT(
      Lines(outcome, "error: "),
      ElementsAre(AllOf(HasSubstr("ulimit -v has 4.00 GiB; the largest parts: copy for snapshots"),
                        HasSubstr("Lower batch_size or prefetch"))));
}
#endif

}  // namespace
}  // namespace trainer
