// A whole run: its log, files and scores.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "in_process.h"
#include "job.h"
#include "support/source_folder.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Expects the texts in this order in the log.
void ExpectInOrder(const std::string& log, const std::vector<std::string>& texts) {
  size_t at = 0;
  for (const std::string& text : texts) {
    const size_t found = log.find(text, at);
    ASSERT_NE(found, std::string::npos) << "no '" << text << "' after position " << at << " of\n"
                                        << log;
    at = found + text.size();
  }
}

std::vector<std::string> Matches(const Outcome& outcome, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (const std::string& line : outcome.ErrLines()) {
    if (std::regex_search(line, regex)) found.push_back(line);
  }
  return found;
}

// Returns a field of the line, numbered from 1 as in awk.
std::string Field(const std::string& line, int number) {
  std::istringstream words(line);
  std::string word;
  while (number-- > 0) words >> word;
  return word;
}

TEST(TrainTest, LogsTheLinesOfCaffeInTheirOrder) {
  const Job job;
  const Outcome outcome = job.Train({"--log=caffe"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  ExpectInOrder(
      outcome.err,
      {"] Use CPU.\n",
       "] Initializing solver from parameters: \n",
       "base_lr: 0.05\n",
       "] Creating training net from net file: net.prototxt\n",
       "] The NetState phase (0) differed from the phase (1) specified by a rule in layer digits\n",
       "] Initializing net from parameters: \n",
       "] Creating Layer digits\n",
       "] digits -> data\n",
       "] Setting up digits\n",
       "] Top shape: 16 1 28 28 (12544)\n",
       "] Top shape: 16 (16)\n",
       "] Memory required for data: 50240\n",
       "] ip <- data\n",
       "] Top shape: (1)\n",
       "]     with loss weight 1\n",
       "] loss needs backward computation.\n",
       "] digits does not need backward computation.\n",
       "] This network produces output loss\n",
       "] Network initialization done.\n",
       "] Creating test net (#0) specified by net file: net.prototxt\n",
       "] This network produces output accuracy\n",
       "] Solver scaffolding done.\n",
       "] Starting Optimization\n",
       "] Solving small\n",
       "] Learning Rate Policy: inv\n",
       "] Iteration 0, Testing net (#0)\n",
       "]     Test net output #0: accuracy = ",
       "]     Test net output #1: loss = ",
       "] Iteration 0 (",
       "]     Train net output #0: loss = ",
       "] Iteration 0, lr = 0.05\n",
       "] Iteration 5 (",
       "] Snapshotting to binary proto file snap_iter_10.caffemodel\n",
       "] Snapshotting solver state to binary proto file snap_iter_10.solverstate\n",
       "] Iteration 10, Testing net (#0)\n",
       "] Iteration 10 (",
       "] Iteration 15 (",
       "snap_iter_20.solverstate\n",
       "] Iteration 20, loss = ",
       "] Iteration 20, Testing net (#0)\n",
       "] Optimization Done.\n",
       "] Optimization Done.\n"});
}

TEST(TrainTest, WithoutTheFlagAPipeHasALineForEachNetAndNoneForLayersAndEpochs) {
  const Job job;
  const Outcome outcome = job.Train({"--set", "max_iter=40"});  // several epochs
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  ExpectInOrder(outcome.err, {"] Net small, phase TRAIN: 3 layers, 7850 weights\n",
                              "] Net small, phase TEST: ", "] Iteration 0 ("});
  for (const char* text : {"Creating Layer", "Top shape", "needs backward",
                           "prefetching from start", "Initializing", "layer {"}) {
    EXPECT_EQ(outcome.err.find(text), std::string::npos) << text;
  }
  EXPECT_LT(outcome.err.find("Iteration 0"), 2000u) << "the first test is on the first screen";
  const Outcome all = job.Train({"--set", "max_iter=40", "--v=1"});
  for (const char* text : {"Creating Layer", "Top shape", "prefetching from start", "layer {"}) {
    EXPECT_NE(all.err.find(text), std::string::npos) << text;
  }
}

TEST(TrainTest, LogsWhatReadersOfCaffesLogSearchFor) {
  const Job job;
  const Outcome outcome = job.Train();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string prefix = R"(^I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.cc:\d+\] )";
  const std::string number = R"([\.\deE+-]+)";
  EXPECT_EQ(Matches(outcome, prefix + R"(Iteration \d+ \()" + number + " iter/s, " + number +
                                 R"(s/\d+ iters\), loss = )" + number + "$")
                .size(),
            4u);
  EXPECT_EQ(Matches(outcome, prefix + R"(    Train net output #(\d+): (\S+) = )" + number +
                                 R"( \(\* 1 = )" + number + R"( loss\)$)")
                .size(),
            4u);
  EXPECT_EQ(Matches(outcome, prefix + R"(    Test net output #(\d+): (\S+) = )" + number).size(),
            6u);
  EXPECT_EQ(Matches(outcome, prefix + R"(Iteration \d+, Testing net \(#0\)$)").size(), 3u);
  const auto rates = Matches(outcome, R"(lr = [-+]?[0-9]*\.?[0-9]+([eE]?[-+]?[0-9]+)?$)");
  ASSERT_EQ(rates.size(), 4u);
  EXPECT_EQ(Field(rates[0], 9), "0.05");
  const auto tests = Matches(outcome, "Test net output #0");
  ASSERT_EQ(tests.size(), 3u);
  EXPECT_THAT(Field(tests[0], 11), testing::MatchesRegex("[0-9.e-]+"));
}

TEST(TrainTest, EveryLineHasThePrefixOrBelongsToADump) {
  const Job job;
  const Outcome outcome = job.Train();
  const std::regex prefix(R"(^[IW]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.(cc|h):\d+\] .*)");
  const std::regex dump(R"(^ *(\w+: .*|\w+ \{|\}|)$)");
  for (const std::string& line : outcome.ErrLines()) {
    EXPECT_TRUE(std::regex_match(line, prefix) || std::regex_match(line, dump)) << line;
  }
}

TEST(TrainTest, LearnsDigits) {
  Job job;
  job.solver = Edited(job.solver, "max_iter: 20", "max_iter: 60");
  job.solver = Edited(job.solver, "test_interval: 10", "test_interval: 60");
  const Outcome outcome = job.Train();
  const auto scores = Matches(outcome, "Test net output #0: accuracy");
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_LT(std::stod(Field(scores[0], 11)), 0.25);
  EXPECT_GT(std::stod(Field(scores[1], 11)), 0.4);
}

// This needs a new process, because oneDNN reads the limit once.
TEST(TrainTest, SaysOnceThatBf16SavesNoTimeWithoutInstructionsForIt) {
  Job job;
  job.environment = {"DNNL_MAX_CPU_ISA=AVX2"};
  EXPECT_THAT(job.TrainAsProcess({"--set", "max_iter=1"}).err, Not(HasSubstr("16-bit values")));
  job.net = "default_forward_type: BFLOAT16\n" + job.net;
  const Outcome outcome = job.TrainAsProcess({"--set", "max_iter=1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string said = "net.prototxt:1:1: 16-bit values save memory, not time: ";
  ASSERT_THAT(outcome.err, HasSubstr(said));
  EXPECT_EQ(outcome.err.find(said), outcome.err.rfind(said));
}

TEST(TrainTest, TrainsLeNetOnBothDatabases) {
  for (const std::string backend : {"LMDB", "LEVELDB"}) {
    Job job(backend);
    std::string net = ReadText(SourceFolder() + "/models/lenet/train_test.prototxt");
    const std::string ending = backend == "LMDB" ? "lmdb" : "leveldb";
    for (const std::string set : {"train", "test"}) {
      net = Edited(net, "data/digits/" + set + "_lmdb\" backend: LMDB",
                   "data/" + set + "_" + ending + "\" backend: " + backend);
    }
    job.net = Edited(net, "batch_size: 100", "batch_size: 20");
    job.Write();
    RunOptions options = job.options();
    options.env.clear();  // all threads
    const Outcome outcome = RunHere(job.TrainCommand(), options);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("] Opened " + ending + " data/train_" + ending));
    EXPECT_THAT(job.Files("snap"),
                ElementsAre("snap_iter_10.caffemodel", "snap_iter_10.solverstate",
                            "snap_iter_20.caffemodel", "snap_iter_20.solverstate",
                            "snap_last.solverstate"));
  }
}

TEST(TrainTest, RepeatsItselfBitForBit) {
  const Job a, b;
  const Outcome first = a.Train(), second = b.Train();
  EXPECT_EQ(LogFrom(first, "Solving"), LogFrom(second, "Solving"));
  EXPECT_EQ(ReadText(a.folder() / "snap_iter_20.caffemodel"),
            ReadText(b.folder() / "snap_iter_20.caffemodel"));
}

TEST(TrainTest, MemoryModesGiveTheSameBits) {
  std::string expected;
  for (const char* mode : {"shared", "separate", "poisoned"}) {
    const Job job;
    const Outcome outcome = job.Train({std::string("--memory=") + mode});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string weights = ReadText(job.folder() / "snap_iter_20.caffemodel");
    if (expected.empty()) expected = weights;
    EXPECT_EQ(weights, expected) << mode;
  }
}

TEST(TrainTest, SaysThatAFinishedRunIsFinished) {
  const Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const Outcome again = job.Train({"--snapshot=snap_iter_20.solverstate"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("the run is finished, nothing to do"));
}

TEST(TrainTest, StartsFromWeights) {
  const Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  const Outcome tuned = job.Train({"--weights=snap_iter_20.caffemodel"});
  EXPECT_EQ(tuned.exit_code, 0);
  EXPECT_THAT(tuned.err, HasSubstr("] Finetuning from snap_iter_20.caffemodel\n"));
  EXPECT_THAT(tuned.err, HasSubstr("] Iteration 0, lr = 0.05\n"));
  const Outcome first = job.Train();
  const auto loss = [](const Outcome& outcome) {
    return std::stod(Field(Matches(outcome, "Train net output #0")[0], 11));
  };
  EXPECT_LT(loss(tuned), loss(first));
}

TEST(TestTest, ScoresWhatTrainingScored) {
  const Job job;
  const Outcome trained = job.Train();
  const Outcome scored = RunHere(
      {"test", "--model=net.prototxt", "--weights=snap_iter_20.caffemodel", "--iterations=3"},
      job.options());
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  EXPECT_EQ(Matches(scored, R"(\] Batch [012], accuracy = \S+$)").size(), 3u);
  EXPECT_EQ(Matches(scored, R"(\] Batch [012], loss = \S+$)").size(), 3u);
  EXPECT_EQ(Matches(scored, R"(\] Loss: \S+$)").size(), 1u);
  EXPECT_EQ(Matches(scored, R"(\] accuracy = \S+$)").size(), 1u);
  EXPECT_EQ(Matches(scored, R"(\] loss = \S+ \(\* 1 = \S+ loss\)$)").size(), 1u);
}

TEST(TestTest, GivesTheMeansOfTheFirstTestOfARun) {
  Job job;
  job.solver = Edited(job.solver, "max_iter: 20", "max_iter: 1");
  job.solver = Edited(job.solver, "base_lr: 0.05", "base_lr: 0");
  const Outcome trained = job.Train();
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome scored = RunHere(
      {"test", "--model=net.prototxt", "--weights=snap_iter_1.caffemodel", "--iterations=3"},
      job.options());
  const auto before = Matches(trained, "Test net output #0: accuracy = ");
  const auto after = Matches(scored, R"(\] accuracy = )");
  ASSERT_FALSE(before.empty());
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(Field(before[0], 11), Field(after[0], 7));
}

TEST(TestTest, RefusesWeightsOfAnotherNet) {
  Job job;
  ASSERT_EQ(job.Train().exit_code, 0);
  job.net = Edited(job.net, "name: \"ip\"", "name: \"other\"");
  job.Write();
  const Outcome outcome =
      RunHere({"test", "--model=net.prototxt", "--weights=snap_iter_20.caffemodel"}, job.options());
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.Errors(),
              ElementsAre(StartsWith("snap_iter_20.caffemodel: no layer name in this file")));
}

}  // namespace
}  // namespace trainer
