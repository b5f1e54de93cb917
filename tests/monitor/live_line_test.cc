// Tests the live line, and what the view writes to a terminal.

#include <fcntl.h>
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "support/scoped.h"
#include "support/temp_folder.h"
#include "trainer/monitor/live_view.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

LiveState BusyLiveLine() {
  LiveState state;
  state.iter = 12300;
  state.max_iter = 100000;
  state.epoch = 12;
  state.has_loss = true;
  state.loss = 0.0123456f;
  state.rate = 0.00992565f;
  state.images_per_second = 24310;
  state.seconds = 123;
  return state;
}

TEST(LiveLineTest, AWideTerminalHasWholeWords) {
  EXPECT_EQ(LiveLine(BusyLiveLine(), 199),
            "iteration 12300 of 100000  [==>                 ]  12 %  epoch 13  loss 0.01235  "
            "rate 0.009926  24310 images/s  0:14:37 left");
}

TEST(LiveLineTest, AGpuThatIsWatchedShowsHowBusyItIs) {
  LiveState state = BusyLiveLine();
  state.gpu_busy = 0.934;
  EXPECT_THAT(LiveLine(state, 199), HasSubstr("  24310 images/s  GPU 93 %  0:14:37 left"));
  EXPECT_THAT(LiveLine(state, 79), AllOf(HasSubstr("  24310 img/s  "), Not(HasSubstr("GPU"))));
}

TEST(LiveLineTest, EightyColumnsHaveEveryField) {
  EXPECT_EQ(LiveLine(BusyLiveLine(), 79),
            "12300/100000  12%  ep 13  loss 0.01235  rate 0.00993  24310 img/s  0:14:37 left");
}

TEST(LiveLineTest, TheLeastImportantGivesWayFirstAndNothingIsLonger) {
  for (int width = 1; width < 150; ++width) {
    EXPECT_LE(LiveLine(BusyLiveLine(), width).size(), static_cast<size_t>(width));
  }
  EXPECT_EQ(LiveLine(BusyLiveLine(), 45), "12300/100000  loss 0.01235  0:14:37 left");
  EXPECT_EQ(LiveLine(BusyLiveLine(), 12), "12300/100000");
}

TEST(LiveLineTest, NothingIsCountedBeforeTheRunSaysHowFarItGoes) {
  LiveState state;
  state.doing = "preparing";
  EXPECT_EQ(LiveLine(state, 80), "preparing");
}

TEST(LiveLineTest, ATimeIsNotClaimedBeforeTheFirstIteration) {
  LiveState state;
  state.iter = state.first_iter = 500;
  state.max_iter = 1000;
  state.seconds = 3;
  EXPECT_THAT(LiveLine(state, 100), Not(HasSubstr("left")));
  EXPECT_EQ(ClockText(26 * 3600 + 5), "1d 2:00:05");
}

// A view that writes to a file.
class LiveViewTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.fd = open((folder_ / "screen").c_str(), O_WRONLY | O_CREAT, 0600);
    settings_.width = [] { return 80; };
  }
  void TearDown() override { close(settings_.fd); }

  // Returns the output of a short run, which logs a warning.
  std::string Screen() {
    {
      LiveView view(settings_);
      const std::unique_ptr<TrainingObserver> teller = view.MakeObserver();
      teller->OnStart({"LeNet", "inv", 0, 100, 64});
      IterationReport report;
      report.loss = 2.5f;
      teller->OnIteration(report);
      LOG(WARNING) << "the \033[31mdisk is slow";
      LOG(INFO) << "a line of the log";
      teller->OnNote("Gradient clipping: scaling down");
      const std::vector<ReportedValue> outputs = {{"accuracy", 0.5f, 0}};
      TestReport test;
      test.iter = 50;
      test.outputs = outputs;
      teller->OnTest(test);
      teller->OnStep(100);
      teller->OnEnd({false, 0.25f});
    }
    return ReadText(folder_ / "screen");
  }

  TempFolder folder_;
  TerminalSettings settings_;
};

TEST_F(LiveViewTest, EventsAreLinesAndWarningsAreMarked) {
  const std::string screen = Screen();
  EXPECT_THAT(screen, HasSubstr("training LeNet: 100 iterations\n"));
  EXPECT_THAT(screen, HasSubstr("iteration 50: test accuracy 0.5\n"));
  EXPECT_THAT(screen, HasSubstr("\033[33mwarning: the \\x1b[31mdisk is slow\033[0m\n"));
  EXPECT_THAT(screen, ContainsRegex("done: 100 iterations in [0-9:]+, loss 0\\.25\n$"))
      << "not the 2.5 of the display";
  EXPECT_THAT(screen, Not(HasSubstr("a line of the log")));
  EXPECT_THAT(screen, Not(HasSubstr("Gradient clipping")));
}

TEST_F(LiveViewTest, ARunThatStopsShowsTheLossOfItsLastIteration) {
  {
    LiveView view(settings_);
    const std::unique_ptr<TrainingObserver> teller = view.MakeObserver();
    teller->OnStart({"LeNet", "inv", 0, 100, 64});
    teller->OnStep(30);
    teller->OnEnd({true, 0.75f});
  }
  EXPECT_THAT(ReadText(folder_ / "screen"),
              ContainsRegex("stopped at iteration 30 after [0-9:]+, loss 0\\.75\n$"));
}

TEST_F(LiveViewTest, NoLossIsShownWithoutAnIteration) {
  {
    LiveView view(settings_);
    const std::unique_ptr<TrainingObserver> teller = view.MakeObserver();
    teller->OnStart({"LeNet", "inv", 100, 100, 64});
    teller->OnEnd({});
  }
  EXPECT_THAT(ReadText(folder_ / "screen"), ContainsRegex("done: 0 iterations in [0-9:]+\n$"));
}

TEST_F(LiveViewTest, WithoutColoursNoEscapeIsWritten) {
  settings_.escapes = settings_.colors = false;
  EXPECT_THAT(Screen(), AllOf(HasSubstr("warning: the "), Not(HasSubstr("\033"))));
}

TEST_F(LiveViewTest, ADumbTerminalHasLinesAlone) {
  settings_.escapes = settings_.redraws = settings_.colors = false;
  EXPECT_THAT(Screen(),
              AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\r")), HasSubstr("iteration 0 of 100")));
}

TEST_F(LiveViewTest, AskedForDetailsTheLogStandsAboveTheLine) {
  settings_.log_lines = true;
  EXPECT_THAT(Screen(), HasSubstr("a line of the log\n"));
}

}  // namespace
}  // namespace trainer
