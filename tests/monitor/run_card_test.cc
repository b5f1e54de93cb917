// Tests the run card: its file, its totals, and the observer that writes it.

#include "trainer/monitor/run_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_of.h"
#include "support/json_reader.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/monitor/card_observer.h"
#include "trainer/monitor/metrics_observer.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

CardStart SomeStart() {
  CardStart start;
  start.info.host = "node7";
  start.info.command = {"trainer", "train"};
  start.info.libraries = {{"LMDB", "0.9.24"}};
  start.solver_crc32c = "1a2b";
  start.seed = "9223372036854775807";
  start.gpu_flags = "--tf32";
  start.parent = {"snap_iter_8.solverstate", "ab", 80};
  start.weights = {{"base.caffemodel", "cd", 90}};
  start.data = {{"train", "data/train", 100, "100 records", true, "ef"},
                {"test 0", "data/test", -1, "cannot be read (none)", false, ""}};
  start.first_iter = 8;
  start.last_iter = 20;
  start.records = 192;
  start.seconds = 1800;
  start.energy = {{"node7", "package-0", 7200, ""}, {"node7", "GPU", 0, "no counter"}};
  return start;
}

TEST(RunCardTest, ReadsBackWhatItWrote) {
  const TempFolder folder;
  RunCard card;
  card.state = "finished";
  card.net = "LeNet";
  card.max_iter = 20;
  card.loss = 0.25;
  card.best = BestTest{"accuracy", false, 0.5, 10, "snap_iter_10.caffemodel"};
  card.test_iter = 20;
  card.test = {{"accuracy", 0.375}, {"loss", 2}};
  card.model = {"snap_iter_20.caffemodel", "12", 34};
  card.starts = {SomeStart()};
  const std::string text = ToJson(card).ToString();
  folder.Write("card.json", text);
  const RunCard read = ReadRunCard(folder.path());
  EXPECT_EQ(ToJson(read).ToString(), text);
  EXPECT_EQ(read.starts[0].seed, "9223372036854775807");
  EXPECT_FALSE(read.starts[0].data[1].is_read);
  const JsonValue json = ReadJson(text);
  EXPECT_EQ(json["starts"][0]["environment"]["host"].text, "node7");
  EXPECT_EQ(json["starts"][0]["environment"]["libraries"]["LMDB"].text, "0.9.24");
  EXPECT_EQ(json["starts"][0]["data"][1]["not_readable"].text, "cannot be read (none)");
  EXPECT_EQ(json["results"]["best_test"]["value"].number, 0.5);
}

// The starts took half an hour and an hour, and 7,200 and 3,600 joules.
TEST(RunCardTest, TotalsAreSumsOverTheStarts) {
  RunCard card;
  card.starts = {SomeStart(), SomeStart()};
  card.starts[1].seconds = 3600;
  card.starts[1].energy[0].joules = 3600;
  const CardTotals totals = TotalsOf(card);
  EXPECT_DOUBLE_EQ(totals.hours, 1.5);
  EXPECT_EQ(totals.records, 384);
  EXPECT_DOUBLE_EQ(totals.records_per_second, 384 / 5400.0);
  ASSERT_TRUE(totals.watt_hours);
  EXPECT_DOUBLE_EQ(*totals.watt_hours, 3);
  EXPECT_THAT(totals.unmeasured, ElementsAre("node7, GPU: no counter"));
  card.starts[0].energy.erase(card.starts[0].energy.begin());
  card.starts.pop_back();
  EXPECT_FALSE(TotalsOf(card).watt_hours);
}

TEST(RunCardTest, AMissingOrDamagedCardIsRefused) {
  const TempFolder folder;
  EXPECT_THAT(
      ErrorOf([&] { ReadRunCard(folder.path()); }),
      Pair(ErrorCode::kNoInput,
           folder.path() + ": this folder has no metrics.jsonl, so it is not the folder of a run; "
                           "'trainer train --run=DIR' makes such a folder"));
  folder.Write("metrics.jsonl", "");
  EXPECT_THAT(
      ErrorOf([&] { ReadRunCard(folder.path()); }),
      Pair(ErrorCode::kNoInput,
           folder.path() + ": the run has no card.json; 'trainer train --run=DIR' writes one"));
  for (const char* text : {"", "{", "{}", R"({"card": 2, "starts": [{}]})", R"({"card": 1})"}) {
    folder.Write("card.json", text);
    EXPECT_THAT(ErrorOf([&] { ReadRunCard(folder.path()); }),
                Pair(ErrorCode::kData, HasSubstr("/card.json: this is not the card of a run in the "
                                                 "format of this version")))
        << text;
  }
}

TEST(RunCardTest, FilesAreIdentifiedByTheirChecksum) {
  const TempFolder folder;
  caffe::NetParameter net;
  net.set_name("a");
  const FileChecksum written = WriteModel(folder / "a.caffemodel", net);
  const CardFile own = IdentifyForCard(folder / "a.caffemodel");
  EXPECT_EQ(own.crc32c, Join(std::hex, written.crc32c));
  EXPECT_EQ(own.bytes, written.file_bytes);
  const CardFile other = IdentifyForCard(folder.Write("b.caffemodel", "123456789"));
  EXPECT_EQ(other.crc32c, "e3069283");  // the check value of CRC-32C
  EXPECT_EQ(other.bytes, 9u);
  EXPECT_EQ(IdentifyForCard(folder / "none").crc32c, "");
  EXPECT_EQ(IdentifyForCard("").file, "");
}

class CardObserverTest : public testing::Test {
 protected:
  CardObserver::Options Options(bool resumes = false) const {
    CardObserver::Options options;
    options.folder = folder_.path();
    options.start.info.host = "node7";
    options.resumes = resumes;
    return options;
  }
  RunCard Card() const { return ReadRunCard(folder_.path()); }
  // Sends the events of iterations `first` to `last` with a test at the end.
  void Play(TrainingObserver& observer, int first, int last, float accuracy) const {
    RunStart start;
    start.net = "small";
    start.first_iter = first;
    start.max_iter = 20;
    start.records = 16;
    start.seed = 7;
    observer.OnStart(start);
    for (int iter = first + 1; iter <= last; ++iter) observer.OnStep(iter);
    IterationReport report;
    report.iter = last;
    report.loss = 0.25f;
    observer.OnIteration(report);
    const std::vector<ReportedValue> outputs = {
        {"prob", 0.1f}, {"prob", 0.9f}, {"accuracy", accuracy}};
    TestReport test;
    test.iter = last;
    test.outputs = outputs;
    observer.OnTest(test);
  }
  void Save(TrainingObserver& observer, int iter) const {
    SnapshotReport report;
    report.iter = iter;
    report.model = folder_.Write(Join("snap_iter_", iter, ".caffemodel"), "123456789");
    observer.OnSnapshot(report);
  }

  const TempFolder folder_;
};

TEST_F(CardObserverTest, WritesAtTheStartAtSnapshotsAndAtTheEnd) {
  CardObserver observer(Options());
  Play(observer, 0, 10, 0.5f);
  EXPECT_EQ(Card().state, "running");
  EXPECT_EQ(Card().starts[0].last_iter, 0) << "nothing was written since the start";
  EXPECT_EQ(Card().starts[0].seed, "7");
  Save(observer, 10);
  RunCard card = Card();
  EXPECT_EQ(card.starts[0].last_iter, 10);
  EXPECT_EQ(card.starts[0].records, 160);
  EXPECT_EQ(card.model.crc32c, "e3069283");
  ASSERT_TRUE(card.best);
  EXPECT_EQ(card.best->output, "accuracy");
  EXPECT_EQ(card.best->weights, folder_ / "snap_iter_10.caffemodel");
  EXPECT_THAT(card.test, ElementsAre(Pair("accuracy", 0.5), Pair("prob[0]", testing::_),
                                     Pair("prob[1]", testing::_)));
  EXPECT_EQ(card.loss, 0.25);
  observer.OnEnd({.stopped_early = true});
  EXPECT_EQ(Card().state, "stopped");
  observer.OnEnd({});
  EXPECT_EQ(Card().state, "finished");
}

TEST_F(CardObserverTest, AnInterruptedTestAndOtherNetsDoNotCount) {
  CardObserver observer(Options());
  Play(observer, 0, 10, 0.5f);
  const std::vector<ReportedValue> outputs = {{"accuracy", 0.9f}};
  TestReport test;
  test.iter = 10;
  test.outputs = outputs;
  test.interrupted = true;
  observer.OnTest(test);
  test.interrupted = false;
  test.net = 1;
  observer.OnTest(test);
  observer.OnEnd({});
  EXPECT_EQ(Card().best->value, 0.5);
}

// The second start tests at iteration 20 with a lower accuracy, so iteration 5 keeps the best test.
TEST_F(CardObserverTest, AResumedRunKeepsItsStartsAndItsBestTest) {
  {
    ObserverList list;
    list.Add(MakeMetricsObserver(folder_.path()));
    list.Add(std::make_unique<CardObserver>(Options()));
    Play(list, 0, 5, 0.5f);
    for (const int iter : {6, 7, 8}) list.OnStep(iter);
    Save(list, 8);
  }
  CardObserver::Options options = Options(true);
  options.start.info.host = "node8";
  options.start.parent = {"snap_iter_8.solverstate", "ab", 80};
  ObserverList list;
  list.Add(MakeMetricsObserver(folder_.path()));
  list.Add(std::make_unique<CardObserver>(options));
  Play(list, 8, 20, 0.25f);
  list.OnEnd({});
  const RunCard card = Card();
  ASSERT_THAT(card.starts, SizeIs(2));
  EXPECT_EQ(card.starts[0].info.host, "node7");
  EXPECT_EQ(card.starts[0].last_iter, 8);
  EXPECT_EQ(card.starts[1].info.host, "node8");
  EXPECT_EQ(card.starts[1].parent.file, "snap_iter_8.solverstate");
  EXPECT_EQ(card.starts[1].first_iter, 8);
  EXPECT_EQ(card.starts[1].records, 12 * 16);
  ASSERT_TRUE(card.best);
  EXPECT_EQ(card.best->iter, 5);
  EXPECT_EQ(card.best->value, 0.5);
  EXPECT_EQ(card.test_iter, 20);
  EXPECT_EQ(TotalsOf(card).records, 20 * 16);
}

TEST_F(CardObserverTest, ARunFromTheBeginningReplacesTheCard) {
  folder_.Write("card.json", "of an earlier run");
  CardObserver observer(Options());
  Play(observer, 0, 10, 0.5f);
  EXPECT_THAT(Card().starts, SizeIs(1));
}

TEST_F(CardObserverTest, ADamagedCardOfAResumedRunIsAWarning) {
  folder_.Write("card.json", "{");
  const LogCollector log;
  CardObserver observer(Options(true));
  Play(observer, 8, 20, 0.5f);
  EXPECT_THAT(log.lines, Contains(HasSubstr("the new card lacks earlier starts of the run: ")));
  EXPECT_THAT(Card().starts, SizeIs(1));
}

TEST_F(CardObserverTest, AFolderThatCannotBeWrittenIsAWarning) {
  CardObserver::Options options = Options();
  options.folder = folder_ / "none";
  RunFolderIsWritable();
  const LogCollector log;
  CardObserver observer(options);
  Play(observer, 0, 10, 0.5f);
  observer.OnEnd({});
  RunFolderIsWritable();
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("none/")));
}

// Two ranks share a GPU.
TEST_F(CardObserverTest, EachPartOfAHostCountsOnce) {
  CardObserver observer(Options());
  Play(observer, 0, 10, 0.5f);
  observer.OnEnd({});
  observer.AddEnergy(
      {{"a", "GPU 1", 3600, ""}, {"a", "GPU 1", 3500, ""}, {"b", "GPU 1", 3600, ""}});
  observer.AddEnergy({{"b", "GPU 1", 3600, ""}});
  EXPECT_THAT(Card().starts[0].energy, SizeIs(2));
  EXPECT_DOUBLE_EQ(TotalsOf(Card()).watt_hours.value_or(0), 2);
  EXPECT_EQ(Card().state, "finished");
}

}  // namespace
}  // namespace trainer
