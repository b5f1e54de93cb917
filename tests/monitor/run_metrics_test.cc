// Tests the reading of logs and metrics.

#include "trainer/monitor/run_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// A log as `caffe train` writes it, across midnight on New Year's Eve.
constexpr char kCaffeLog[] = R"(I1231 23:59:50.000000  4711 caffe.cpp:218] Using GPUs 0
I1231 23:59:51.000000  4711 net.cpp:84] Creating Layer conv1
I1231 23:59:52.500000  4711 solver.cpp:273] Solving LeNet
I1231 23:59:52.500000  4711 solver.cpp:274] Learning Rate Policy: inv
I1231 23:59:52.600000  4711 solver.cpp:330] Iteration 0, Testing net (#0)
I1231 23:59:53.500000  4711 solver.cpp:397]     Test net output #0: accuracy = 0.0625
I1231 23:59:53.500000  4711 solver.cpp:397]     Test net output #1: loss = 2.34712 (* 1 = 2.34712 loss)
I1231 23:59:54.000000  4711 solver.cpp:218] Iteration 0 (-1.4e-43 iter/s, 0.25s/100 iters), loss = 2.3
I1231 23:59:54.000000  4711 solver.cpp:237]     Train net output #0: loss = 2.3 (* 1 = 2.3 loss)
I1231 23:59:54.000001  4711 sgd_solver.cpp:105] Iteration 0, lr = 0.01
I0101 00:00:02.500000  4711 solver.cpp:218] Iteration 100 (12.5 iter/s, 8s/100 iters), loss = 0.25
I0101 00:00:02.500000  4711 solver.cpp:237]     Train net output #0: loss = 0.25 (* 1 = 0.25 loss)
I0101 00:00:02.500001  4711 sgd_solver.cpp:105] Iteration 100, lr = 0.00992565
I0101 00:00:02.600000  4711 solver.cpp:449] Snapshotting to binary proto file lenet_iter_200.caffemodel
I0101 00:00:10.500000  4711 solver.cpp:330] Iteration 200, Testing net (#0)
I0101 00:00:11.500000  4711 solver.cpp:397]     Test net output #0: accuracy = 0.98
I0101 00:00:11.500000  4711 solver.cpp:397]     Test net output #1: loss = 1e-05 (* 1 = 1e-05 loss)
I0101 00:00:11.600000  4711 solver.cpp:218] Iteration 200 (12.5 iter/s, 8s/100 iters), loss = nan
I0101 00:00:11.600000  4711 solver.cpp:310] Iteration 200, loss = 0.125
I0101 00:00:11.700000  4711 solver.cpp:315] Optimization Done.
)";

class HistoryTest : public testing::Test {
 protected:
  RunMetrics Log(const std::string& text) {
    WriteText(folder_ / "train.log", text);
    return ReadTrainingLog(folder_ / "train.log");
  }
  RunMetrics Metrics(const std::string& text) {
    WriteText(folder_ / "metrics.jsonl", text);
    return ReadRunMetrics(folder_.path());
  }
  TempFolder folder_;
};

TEST_F(HistoryTest, ALogOfCaffeGivesTheTablesOfParseLog) {
  const RunMetrics run = Log(kCaffeLog);
  EXPECT_EQ(LogCsv(run.train),
            "NumIters,Seconds,LearningRate,loss\r\n"
            "0.0,1.5,0.01,2.3\r\n"
            "100.0,10.0,0.01,0.25\r\n");
  ASSERT_THAT(run.tests, SizeIs(1));
  EXPECT_EQ(LogCsv(run.tests[0]),
            "NumIters,Seconds,LearningRate,accuracy,loss\r\n"
            "0.0,1.0,0.00992565,0.0625,2.34712\r\n"
            "200.0,19.0,0.00992565,0.98,1e-05\r\n");
}

TEST_F(HistoryTest, ALogTellsLossesRatesAndTheEnd) {
  const RunMetrics run = Log(kCaffeLog);
  EXPECT_EQ(run.net, "LeNet");
  EXPECT_TRUE(run.ended);
  EXPECT_EQ(run.last_iter, 200);
  EXPECT_EQ(run.model, "lenet_iter_200.caffemodel");
  EXPECT_THAT(run.loss,
              ElementsAre(Field(&MetricPoint::value, 2.3), Field(&MetricPoint::value, 0.25),
                          Field(&MetricPoint::value, 0.125)));
  EXPECT_THAT(run.rate, SizeIs(2));
}

TEST_F(HistoryTest, AYearInThePrefixIsNoDifference) {
  std::string text;
  for (const char* line :
       {"I20251231 23:59:52.500000 1 solver.cpp:1] Solving a\n",
        "I20251231 23:59:54.000000 1 solver.cpp:1] Iteration 0, loss = 2\n",
        "I20260101 00:00:02.500000 1 solver.cpp:1]     Test net output #0: a = 1\n"}) {
    text += line;
  }
  const RunMetrics run = Log(text);
  EXPECT_EQ(run.tests.at(0).at(0).seconds, 10);
}

TEST_F(HistoryTest, WhatAResumedRunRepeatsReplacesWhatWasThere) {
  const std::string line = "I0101 00:00:00.000000 1 solver.cpp:1] ";
  const RunMetrics run = Log(line + "Solving a\n" + line + "Iteration 0, loss = 3\n" + line +
                             "Iteration 100, loss = 2\n" + line + "Iteration 200, loss = 1\n" +
                             line + "Solving a\n" + line + "Iteration 100, loss = 2.5\n");
  EXPECT_THAT(run.loss,
              ElementsAre(Field(&MetricPoint::value, 3), Field(&MetricPoint::value, 2.5)));
  EXPECT_EQ(run.first_iter, 100);
}

TEST_F(HistoryTest, TestNetsHaveTablesOfTheirOwn) {
  const std::string line = "I0101 00:00:00.000000 1 solver.cpp:1] ";
  const RunMetrics run =
      Log(line + "Solving a\n" + line + "Iteration 0, Testing net (#0)\n" + line +
          "    Test net output #0: a = 1\n" + line + "Iteration 0, Testing net (#1)\n" + line +
          "    Test net output #0: a = 2\n");
  ASSERT_THAT(run.tests, SizeIs(2));
  EXPECT_THAT(run.tests[1].at(0).outputs, ElementsAre(Pair("a", 2)));
}

// Each test reads the log format of another version of Caffe; numbers and names are made up.

// Logs of 2013 have the rate before the loss, tests without a number, and outputs without names.
TEST_F(HistoryTest, ALogOf2013HasScoresWithoutNames) {
  const RunMetrics run = Log(R"(I0317 21:52:49.300000 2008298256 solver.cpp:47] Solving quick
I0317 21:53:12.100000 2008298256 solver.cpp:208] Iteration 100, lr = 0.002
I0317 21:53:12.300000 2008298256 solver.cpp:65] Iteration 100, loss = 1.75
I0317 21:54:41.300000 2008298256 solver.cpp:87] Iteration 500, Testing net
I0317 21:54:47.300000 2008298256 solver.cpp:114] Test score #0: 0.5625
I0317 21:54:47.300000 2008298256 solver.cpp:114] Test score #1: 1.25
I0317 21:54:48.300000 2008298256 solver.cpp:129] Snapshotting to quick_iter_500
I0317 21:54:48.400000 2008298256 solver.cpp:136] Snapshotting solver state to quick_iter_500.solverstate
)");
  EXPECT_EQ(LogCsv(run.tests.at(0)),
            "NumIters,Seconds,LearningRate,score[0],score[1]\r\n"
            "500.0,118.0,0.002,0.5625,1.25\r\n");
  EXPECT_THAT(run.loss, ElementsAre(Field(&MetricPoint::value, 1.75)));
  EXPECT_EQ(run.model, "quick_iter_500");
}

// Logs of 2014 number their tests, and snapshots are called .caffemodel.
TEST_F(HistoryTest, ALogOf2014HasSeveralTestNetsAndItsSnapshots) {
  const RunMetrics run = Log(R"(I1113 06:24:10.000000 10024 solver.cpp:160] Solving two
I1113 06:24:17.000000 10024 solver.cpp:247] Iteration 0, Testing net (#0)
I1113 06:24:17.200000 10024 solver.cpp:298]     Test net output #0: acc = 0.125
I1113 06:24:17.200000 10024 solver.cpp:298]     Test net output #1: loss = 37.5 (* 1 = 37.5 loss)
I1113 06:24:17.200000 10024 solver.cpp:247] Iteration 0, Testing net (#1)
I1113 06:24:17.400000 10024 solver.cpp:298]     Test net output #0: acc = 0.25
I1113 06:24:17.500000 10024 solver.cpp:191] Iteration 0, loss = 38
I1113 06:24:17.500000 10024 solver.cpp:206]     Train net output #0: loss = 38 (* 1 = 38 loss)
I1113 06:24:17.500000 10024 solver.cpp:403] Iteration 0, lr = 1e-05
I1113 06:24:20.000000 10024 solver.cpp:334] Snapshotting to models/two_iter_1.caffemodel
)");
  ASSERT_THAT(run.tests, SizeIs(2));
  EXPECT_THAT(run.tests[0].at(0).outputs, ElementsAre(Pair("acc", 0.125), Pair("loss", 37.5)));
  EXPECT_THAT(run.tests[1].at(0).outputs, ElementsAre(Pair("acc", 0.25)));
  EXPECT_EQ(run.rate.at(0).value, 1e-05);
  EXPECT_EQ(run.model, "models/two_iter_1.caffemodel");
}

TEST_F(HistoryTest, ALogOfNvidiasCaffeHasEpochsAndMomentum) {
  const RunMetrics run = Log(R"(I0329 06:59:50.000000 1 solver.cpp:447] Solving net
I0329 06:59:54.000000 1 solver.cpp:334] Iteration 100 (512.5 iter/s, 0.195s/98 iter), 1.2/30ep, loss = 2.1875
I0329 06:59:54.000000 1 solver.cpp:356]     Train net output #0: loss = 2.1875 (* 1 = 2.1875 loss)
I0329 06:59:54.000000 1 sgd_solver.cpp:161] Iteration 100, lr = 0.0125, m = 0.9, wd = 0.0005, gs = 1
)");
  EXPECT_EQ(LogCsv(run.train),
            "NumIters,Seconds,LearningRate,loss\r\n"
            "100.0,4.0,nan,2.1875\r\n");
  EXPECT_EQ(run.rate.at(0).value, 0.0125);
  EXPECT_EQ(run.loss.at(0).value, 2.1875);
}

// mpirun --tag-output adds this prefix to logs of Intel Caffe.
TEST_F(HistoryTest, ARankBeforeThePrefixIsPassedOver) {
  const RunMetrics run =
      Log("[1,0]<stderr>:I0601 08:00:00.000000  1 solver.cpp:1] Solving a\n"
          "[1,0]<stderr>:I0601 08:00:04.000000  1 solver.cpp:1] Iteration 20, Testing net (#0)\n"
          "[1,0]<stderr>:I0601 08:00:05.000000  1 solver.cpp:1]     Test net output #0: a = 0.5\n");
  EXPECT_EQ(run.tests.at(0).at(0).seconds, 5);
}

TEST_F(HistoryTest, QuotedLogsAreIndentedAndMayLackTheTime) {
  const RunMetrics run =
      Log("    I1203 solver.cpp:204] Iteration 100, lr = 0.01\n"
          "    I1203 solver.cpp:66] Iteration 100, loss = 0.25\n"
          "    ...\n"
          "    I1203 solver.cpp:84] Testing net\n"
          "    I1203 solver.cpp:111] Test score #0: 0.9785\n");
  EXPECT_THAT(run.tests.at(0).at(0).outputs, ElementsAre(Pair("score[0]", 0.9785)));
  const RunMetrics timed =
      Log("    I1203 10:00:00.000000 1 solver.cpp:204] Solving a\n"
          "    I1203 10:00:02.000000 1 solver.cpp:204] Iteration 0, loss = 1\n");
  EXPECT_EQ(timed.seconds, 2);
}

TEST_F(HistoryTest, LossesThatAreNotNumbersAreLeftOutAlsoAsWindowsWritesThem) {
  const std::string line = "I0101 00:00:00.000000 1 solver.cpp:1] ";
  std::string text = line + "Solving a\n";
  for (const char* loss : {"1.#QNAN", "-1.#IND", "1.#INF", "-nan", "nan(ind)", "inf", "0.5"}) {
    text += line + "Iteration 10, loss = " + loss + "\r\n";
  }
  EXPECT_THAT(Log(text).loss, ElementsAre(Field(&MetricPoint::value, 0.5)));
}

// An output of several elements has a line for each element, all with one name.
TEST_F(HistoryTest, OfSeveralElementsTheLastCountsAsInParseLog) {
  const std::string line = "I0101 00:00:00.000000 1 solver.cpp:1] ";
  const RunMetrics run = Log(line + "Solving a\n" + line + "Iteration 0, Testing net (#0)\n" +
                             line + "    Test net output #0: per_class = 0.5\n" + line +
                             "    Test net output #1: per_class = 0.75\n" + line +
                             "    Test net output #2: loss = 0.25 (* 1 = 0.25 loss)\n");
  EXPECT_THAT(run.tests.at(0).at(0).outputs,
              ElementsAre(Pair("per_class", 0.75), Pair("loss", 0.25)));
}

TEST_F(HistoryTest, AFileThatTellsOfNoTrainingIsRefused) {
  const auto [code, what] = ErrorOf([&] { Log("hello\n"); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(what, HasSubstr("not a training log"));
}

constexpr char kMetrics[] =
    R"({"event": "start", "iter": 0, "time": 1000, "seconds": 0, "max_iter": 300, "net": "LeNet", "records": 64}
{"event": "train", "iter": 0, "time": 1001, "seconds": 1, "loss": 2.5, "rate": 0.01, "outputs": {"loss": 2.5}}
{"event": "train", "iter": 100, "time": 1010, "seconds": 10, "loss": 1, "rate": 0.01, "images_per_second": 640, "data_wait": 0.25, "outputs": {"loss": 1}}
{"event": "test", "iter": 100, "time": 1011, "seconds": 11, "net": 0, "outputs": {"accuracy": 0.5, "class": [0.25, 0.75]}}
{"event": "snapshot", "iter": 100, "time": 1012, "seconds": 12, "model": "a_iter_100.caffemodel"}
)";

TEST_F(HistoryTest, MetricsTellWhatTheRunTold) {
  const RunMetrics run = Metrics(kMetrics);
  EXPECT_EQ(run.max_iter, 300);
  EXPECT_EQ(run.last_iter, 100);
  EXPECT_EQ(run.last_time, 1012);
  EXPECT_FALSE(run.ended);
  EXPECT_EQ(run.images_per_second.at(0).value, 640);
  EXPECT_EQ(run.data_wait.at(0).value, 0.25);
  EXPECT_THAT(run.tests.at(0).at(0).outputs,
              ElementsAre(Pair("accuracy", 0.5), Pair("class[0]", 0.25), Pair("class[1]", 0.75)));
  EXPECT_EQ(run.model, "a_iter_100.caffemodel");
}

TEST_F(HistoryTest, AStartWithdrawsWhatItRepeatsAndTimeGoesOn) {
  const RunMetrics run =
      Metrics(std::string(kMetrics) +
              R"({"event": "start", "iter": 100, "time": 5000, "seconds": 0, "max_iter": 300}
{"event": "train", "iter": 100, "time": 5002, "seconds": 2, "loss": 1.25, "rate": 0.01}
{"event": "end", "iter": 100, "time": 5003, "seconds": 3, "stopped_early": true, "loss": 0.5}
{"event": "train", "iter": 2)");
  EXPECT_THAT(run.loss,
              ElementsAre(Field(&MetricPoint::value, 2.5), Field(&MetricPoint::value, 1.25)));
  EXPECT_THAT(run.tests.at(0), IsEmpty());
  EXPECT_EQ(run.seconds, 1 + 3);
  EXPECT_TRUE(run.stopped_early);
  EXPECT_EQ(run.end_loss, 0.5);
  EXPECT_EQ(run.starts, 2);
}

TEST_F(HistoryTest, TheLossAtTheEndIsThatOfTheLastStart) {
  const std::string start = R"({"event": "start", "iter": 0, "max_iter": 300}
)";
  const std::string end = R"({"event": "end", "iter": 30, "stopped_early": true, "loss": 0.5}
)";
  EXPECT_EQ(Metrics(start + end).end_loss, 0.5);
  EXPECT_FALSE(Metrics(start + end + start).end_loss);
}

TEST_F(HistoryTest, AFolderWithoutMetricsIsRefused) {
  const auto [code, what] = ErrorOf([&] { ReadRunMetrics(folder_.path()); });
  EXPECT_EQ(code, ErrorCode::kNoInput);
  EXPECT_THAT(what, HasSubstr("--run=DIR"));
}

TEST_F(HistoryTest, AFolderOfRunsNamesThem) {
  for (const std::string name : {"b", "a"}) {
    std::filesystem::create_directories(folder_ / ("sweep/" + name));
    folder_.Write("sweep/" + name + "/metrics.jsonl", kMetrics);
  }
  const std::string sweep = folder_ / "sweep";
  EXPECT_THAT(ErrorOf([&] { ReadRunMetrics(sweep); }),
              Pair(ErrorCode::kNoInput,
                   Join(sweep,
                        ": this folder has no metrics.jsonl, so it is not the folder of a "
                        "run. It contains 2 runs: give one or more of them: ",
                        sweep, "/a, ", sweep, "/b")));
}

TEST_F(HistoryTest, AMissingFolderIsRefusedWithTheOneThatWasMeant) {
  std::filesystem::create_directory(folder_ / "first_run");
  EXPECT_THAT(
      ErrorOf([&] { ReadRunMetrics(folder_ / "frist_run"); }),
      Pair(ErrorCode::kNoInput,
           Join(folder_ / "frist_run", ": there is no such file or folder. Did you mean '",
                folder_ / "first_run", "'? 'trainer train --run=DIR' makes the folder of a run")));
}

}  // namespace
}  // namespace trainer
