// Tests the differences between two runs.

#include "trainer/monitor/run_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "history/solver_differences.h"
#include "support/edited.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/monitor/run_card.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

constexpr char kSolver[] = R"(base_lr: 0.05
momentum: 0.9
display: 5
max_iter: 20
snapshot_prefix: "snap"
random_seed: 7
net_param {
  name: "small"
  layer { name: "digits" type: "Data" include { phase: TRAIN } data_param { source: "a/train" } }
  layer { name: "digits" type: "Data" include { phase: TEST } data_param { source: "a/test" } }
  layer { name: "ip" type: "InnerProduct" inner_product_param { num_output: 10 } }
}
)";

// Returns "kind what: text" for each difference.
std::vector<std::string> Lines(const std::vector<RunDifference>& differences) {
  std::vector<std::string> lines;
  for (const RunDifference& d : differences) {
    const char* const kind = d.kind == DifferenceKind::kAffects    ? "affects "
                             : d.kind == DifferenceKind::kHarmless ? "harmless "
                                                                   : "result ";
    lines.push_back(kind + d.what + ": " + d.text);
  }
  return lines;
}

// Compares kSolver with a copy that has one change.
std::vector<std::string> SolverLines(const std::string& from, const std::string& to) {
  caffe::SolverParameter a, b;
  ParseTextString("a", kSolver, &a);
  ParseTextString("b", Edited(kSolver, from, to), &b);
  return Lines(CompareSolvers(a, b));
}

TEST(SolverDifferencesTest, NamesTheFieldAndBothValues) {
  EXPECT_THAT(SolverLines("base_lr: 0.05", "base_lr: 0.01"),
              ElementsAre("affects solver base_lr: 0.05 -> 0.01"));
  EXPECT_THAT(SolverLines("momentum: 0.9\n", ""), ElementsAre("affects solver momentum: 0.9 -> 0"));
  EXPECT_THAT(SolverLines("momentum: 0.9\n", "momentum: 0.9 gamma: 2\n"),
              ElementsAre("affects solver gamma: 0 -> 2"));
}

TEST(SolverDifferencesTest, AnElementOfAListThatIsMissingIsNone) {
  EXPECT_THAT(SolverLines("max_iter: 20\n", "max_iter: 20 stepvalue: 5\n"),
              ElementsAre("affects solver stepvalue[0]: none -> 5"));
}

TEST(SolverDifferencesTest, ADefaultValueEqualsAFieldThatIsNotSet) {
  EXPECT_THAT(SolverLines("momentum: 0.9\n", "momentum: 0.9 iter_size: 1\n"), IsEmpty());
}

TEST(SolverDifferencesTest, PathsSeedAndDisplayAreHarmless) {
  EXPECT_THAT(SolverLines("display: 5", "display: 1"),
              ElementsAre("harmless solver display: 5 -> 1"));
  EXPECT_THAT(SolverLines("\"snap\"", "\"other\""),
              ElementsAre("harmless solver snapshot_prefix: \"snap\" -> \"other\""));
  EXPECT_THAT(SolverLines("random_seed: 7", "random_seed: 8"),
              ElementsAre("harmless solver random_seed: 7 -> 8"));
  EXPECT_THAT(SolverLines("a/test", "b/test"),
              ElementsAre("harmless net layer 'digits' (TEST) data_param.source: \"a/test\" -> "
                          "\"b/test\""));
}

TEST(SolverDifferencesTest, ALayerOfOnePhaseIsNamedWithIt) {
  EXPECT_THAT(SolverLines("{ source: \"a/train\" }", "{ source: \"a/train\" batch_size: 9 }"),
              ElementsAre("affects net layer 'digits' (TRAIN) data_param.batch_size: 0 -> 9"));
  EXPECT_THAT(SolverLines("name: \"small\"",
                          "name: \"small\" layer { name: \"a\" include { phase: TEST } }"
                          "layer { name: \"b\" include { stage: \"x\" } }"
                          "layer { name: \"digits\" type: \"Data\" include { phase: TEST } }"),
              AllOf(Contains("affects net layer 'a' (TEST): none -> a layer of type "),
                    Contains("affects net layer 'b': none -> a layer of type "),
                    Contains("affects net layer 'digits' (TEST) (2): none -> a layer of type "
                             "Data")));
}

// The rate of lr_policy "plateau" follows the averaged loss.
TEST(SolverDifferencesTest, TheAverageOfLossesAffectsARateThatFollowsTheLoss) {
  EXPECT_THAT(SolverLines("momentum: 0.9\n", "momentum: 0.9 average_loss: 20\n"),
              ElementsAre("harmless solver average_loss: 1 -> 20"));
  EXPECT_THAT(
      SolverLines("momentum: 0.9\n", "momentum: 0.9 average_loss: 20 lr_policy: \"plateau\"\n"),
      Contains("affects solver average_loss: 1 -> 20"));
}

TEST(SolverDifferencesTest, TheSeedOfALayerAffectsResults) {
  EXPECT_THAT(SolverLines("source: \"a/train\" }",
                          "source: \"a/train\" } transform_param { random_seed: 3 }"),
              ElementsAre("affects net layer 'digits' (TRAIN) transform_param.random_seed: -1 -> "
                          "3"));
}

TEST(SolverDifferencesTest, LayersArePairedByName) {
  EXPECT_THAT(SolverLines("num_output: 10", "num_output: 12"),
              ElementsAre("affects net layer 'ip' inner_product_param.num_output: 10 -> 12"));
  EXPECT_THAT(SolverLines("layer { name: \"ip\"",
                          "layer { name: \"relu\" type: \"ReLU\" }\n"
                          "layer { name: \"ip\""),
              ElementsAre("affects net layer 'relu': none -> a layer of type ReLU"));
  EXPECT_THAT(SolverLines("name: \"ip\"", "name: \"fc\""),
              ElementsAre("affects net layer 'ip': a layer of type InnerProduct -> none",
                          "affects net layer 'fc': none -> a layer of type InnerProduct"));
  EXPECT_THAT(
      SolverLines("name: \"small\"", "name: \"small\" layer { name: \"ip\" type: \"ReLU\" }"),
      Contains("affects net layer 'ip' (2): none -> a layer of type InnerProduct"));
}

TEST(SolverDifferencesTest, TheOrderOfLayersCounts) {
  const std::string ip =
      "  layer { name: \"ip\" type: \"InnerProduct\" inner_product_param { num_output: 10 } }\n";
  caffe::SolverParameter a, b;
  ParseTextString("a", kSolver, &a);
  ParseTextString(
      "b", Edited(Edited(kSolver, ip, ""), "  name: \"small\"\n", "  name: \"small\"\n" + ip), &b);
  EXPECT_THAT(Lines(CompareSolvers(a, b)),
              ElementsAre("affects net order of the layers: 'digits' (TRAIN) -> 'ip'"));
}

TEST(SolverDifferencesTest, TestNetsAreCompared) {
  EXPECT_THAT(SolverLines("net_param", "test_net_param { name: \"t\" }\nnet_param"),
              ElementsAre("affects test net 0 name: \"\" -> \"t\""));
}

class RunComparisonTest : public testing::Test {
 protected:
  RunComparisonTest() {
    start_.info.program = "trainer 1, checksum a";
    start_.info.commit = "1a2b";
    start_.info.host = "node7";
    start_.info.device = "CPU, 2 threads, AVX2";
    start_.info.ranks = 1;
    start_.info.libraries = {{"LMDB", "0.9.24"}, {"libjpeg-turbo", "2.1.5"}};
    start_.seed = "7";
    start_.data = {{"train", "a/train", 100, "100 records", true, ""}};
    start_.last_iter = 20;
    Write("a", {start_});
  }
  // Writes the folder of a run with these starts.
  std::string Write(const std::string& name, std::vector<CardStart> starts,
                    const std::string& solver = kSolver) const {
    std::filesystem::create_directory(folder_ / name);
    folder_.Write(name + "/solver.prototxt", solver);
    const std::string sum = Join(std::hex, Crc32c(solver.data(), solver.size()));
    if (starts.back().solver_crc32c.empty()) {
      for (CardStart& start : starts) start.solver_crc32c = sum;
    }
    RunCard card;
    card.state = "finished";
    card.starts = std::move(starts);
    card.model = model_;
    folder_.Write(name + "/card.json", ToJson(card).ToString());
    return folder_ / name;
  }
  std::vector<std::string> With(const std::vector<CardStart>& starts) const {
    return Lines(CompareRuns(folder_ / "a", Write("b", starts)));
  }

  // Writes a model as the newest snapshot of the next run. Its net contains the path of its data.
  void SaveModel(const std::string& name, const std::string& source, float weight) {
    caffe::NetParameter net;
    caffe::LayerParameter* const data = net.add_layer();
    data->set_name("data");
    data->mutable_data_param()->set_source(source);
    caffe::LayerParameter* const ip = net.add_layer();
    ip->set_name("ip");
    ip->add_blobs()->add_data(weight);
    WriteModel(folder_ / name, net);
    model_ = IdentifyForCard(folder_ / name);
  }

  const TempFolder folder_;
  CardStart start_;
  CardFile model_;
};

TEST_F(RunComparisonTest, EqualRunsHaveNoDifference) {
  EXPECT_THAT(With({start_}), IsEmpty());
  EXPECT_EQ(ToText({}), "0 differences, none of them affects results\n");
}

TEST_F(RunComparisonTest, WhatAffectsResultsComesFirst) {
  CardStart other = start_;
  other.info.host = "node8";
  other.info.ranks = 4;
  other.info.libraries[0].second = "0.9.31";
  other.info.libraries[1].second = "3.0.0";
  other.info.commit = "3c4d";
  other.seed = "8";
  other.last_iter = 10;
  const auto differences = CompareRuns(folder_ / "a", Write("b", {other}));
  EXPECT_THAT(
      Lines(differences),
      ElementsAre("affects commit: 1a2b -> 3c4d", "affects seed: 7 -> 8", "affects ranks: 1 -> 4",
                  "affects libjpeg-turbo: 2.1.5 -> 3.0.0", "harmless LMDB: 0.9.24 -> 0.9.31",
                  "harmless host: node7 -> node8", "result iterations: 20 -> 10"));
  EXPECT_TRUE(AffectsResults(differences));
  EXPECT_THAT(ToText(differences), HasSubstr("affects results  commit: 1a2b -> 3c4d\n"));
  EXPECT_THAT(ToText(differences), HasSubstr("no effect        host: node7 -> node8\n"));
  EXPECT_THAT(ToText(differences), HasSubstr("result           iterations: 20 -> 10\n"
                                             "7 differences, 4 of them affect results\n"));
}

TEST_F(RunComparisonTest, AnotherHostAloneAffectsNothing) {
  CardStart other = start_;
  other.info.host = "node8";
  const auto differences = CompareRuns(folder_ / "a", Write("b", {other}));
  EXPECT_FALSE(AffectsResults(differences));
  EXPECT_EQ(ToText(differences),
            "no effect        host: node7 -> node8\n"
            "1 difference, none of them affects results\n");
}

// The path differs because it is a copy.
TEST_F(RunComparisonTest, DataIsComparedByItsContent) {
  CardStart copy = start_;
  copy.data[0].source = "b/train";
  EXPECT_THAT(With({copy}), ElementsAre("harmless path of the train net's data: a/train -> "
                                        "b/train"));
  copy = start_;
  copy.data[0].all_records = "1f";
  EXPECT_THAT(With({copy}), ElementsAre("affects data of the train net: 100 records -> 100 "
                                        "records, all records 1f"));
  copy.data = {start_.data[0], start_.data[0]};
  copy.data[1].content = "50 records";
  EXPECT_THAT(With({copy}), Contains("affects data of the train net (2): none -> 50 records"));
}

TEST_F(RunComparisonTest, DataThatCannotBeReadIsADifference) {
  start_.data[0].content = "cannot be read (none)";
  start_.data[0].is_read = false;
  Write("a", {start_});
  EXPECT_THAT(With({start_}),
              ElementsAre("affects data of the train net: cannot be read (none) -> cannot be read "
                          "(none)"));
}

TEST_F(RunComparisonTest, TheWeightsOfTheBeginningAreComparedByTheirChecksums) {
  start_.weights = {{"x.caffemodel", "1a", 10}};
  Write("a", {start_});
  CardStart other = start_;
  other.weights[0].file = "y.caffemodel";
  EXPECT_THAT(With({other}), IsEmpty());
  other.weights[0].crc32c = "1b";
  EXPECT_THAT(With({other}), ElementsAre("affects start: weights of 10 bytes, checksum 1a -> "
                                         "weights of 10 bytes, checksum 1b"));
  other.weights.clear();
  other.parent = {"s.solverstate", "2c", 30};
  EXPECT_THAT(With({other}), ElementsAre("affects start: weights of 10 bytes, checksum 1a -> a "
                                         "snapshot of 30 bytes, checksum 2c"));
}

TEST_F(RunComparisonTest, EqualWeightsInDifferentFilesAreNoDifference) {
  SaveModel("a.caffemodel", "a/train", 1);
  Write("a", {start_});
  SaveModel("b.caffemodel", "other/train", 1);
  EXPECT_THAT(With({start_}), IsEmpty());
  folder_.Write("b.caffemodel", "replaced since");
  EXPECT_THAT(With({start_}), ElementsAre(StartsWith("result weights: ")));
  SaveModel("b.caffemodel", "a/train", 2);
  EXPECT_THAT(With({start_}), ElementsAre(StartsWith("result weights: ")));
}

// A stop with a resume has no effect.
TEST_F(RunComparisonTest, AResumedRunIsComparedByItsStarts) {
  CardStart first = start_, second = start_;
  first.last_iter = second.first_iter = 10;
  second.parent = {"snap_iter_10.solverstate", "1a", 10};
  EXPECT_THAT(With({first, second}), ElementsAre("result starts: 1 -> 2"));
  second.info.ranks = 2;
  EXPECT_THAT(With({first, second}), Contains("affects ranks: 1 -> 1, then 2"));
  // The first start continued to iteration 20 on 4 ranks, but the run resumed from iteration 10.
  CardStart lost = second;
  lost.info.ranks = 4;
  second.info.ranks = 1;
  EXPECT_THAT(With({first, lost, second}), ElementsAre("result starts: 1 -> 3"));
}

TEST_F(RunComparisonTest, AnEarlierStartWithAnotherSolverIsADifference) {
  CardStart first = start_, second = start_;
  second.first_iter = 10;
  first.solver_crc32c = "1a2b";
  const std::string solver = kSolver;
  second.solver_crc32c = Join(std::hex, Crc32c(solver.data(), solver.size()));
  EXPECT_THAT(With({first, second}),
              Contains("affects solver of the starts: the same at all starts -> 1a2b, then " +
                       second.solver_crc32c));
}

TEST_F(RunComparisonTest, AnEarlierStartWithOtherDataIsADifference) {
  CardStart first = start_, second = start_;
  second.first_iter = 10;
  first.data[0].content = "50 records";
  EXPECT_THAT(With({first, second}),
              Contains("affects data of the starts: the same at all starts -> 50 records, then 100 "
                       "records"));
}

TEST_F(RunComparisonTest, TheSolversAreCompared) {
  const std::string b = Write("b", {start_}, Edited(kSolver, "0.05", "0.01"));
  EXPECT_THAT(Lines(CompareRuns(folder_ / "a", b)),
              ElementsAre("affects solver base_lr: 0.05 -> 0.01"));
}

TEST_F(RunComparisonTest, ASolverThatWasChangedAfterTheRunIsRefused) {
  const std::string b = Write("b", {start_});
  folder_.Write("b/solver.prototxt", Edited(kSolver, "0.05", "0.01"));
  const auto [code, text] = ErrorOf([&] { CompareRuns(folder_ / "a", b); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(text, HasSubstr("b/solver.prototxt: this is not the solver of the run: its checksum "
                              "is "));
  EXPECT_THAT(text,
              HasSubstr("; the file was changed after the run, so restore it or train again"));
}

TEST_F(RunComparisonTest, AFolderWithoutACardIsRefused) {
  EXPECT_THAT(ErrorOf([&] { CompareRuns(folder_ / "a", folder_ / "none"); }),
              Pair(ErrorCode::kNoInput, HasSubstr("none: there is no such file or folder.")));
}

TEST_F(RunComparisonTest, NamesCannotDriveATerminal) {
  CardStart other = start_;
  other.info.host = "node\033[2J";
  EXPECT_THAT(ToText(CompareRuns(folder_ / "a", Write("b", {other}))), Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace trainer
