// Tests what displays report about a GPU, and the reason that they give for an idle GPU.

#include "trainer/monitor/gpu_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "support/temp_folder.h"
#include "trainer/base/file/file.h"
#include "trainer/monitor/events_observer.h"
#include "trainer/monitor/metrics_observer.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GpuReading BusyGpuWatch(double share) {
  GpuReading reading;
  reading.busy = share;
  return reading;
}

GpuUtilization Work(double busy) {
  GpuUtilization work;
  work.gpu = BusyGpuWatch(busy);
  work.cores = 2;
  work.iteration_seconds = 0.0012;
  return work;
}

TEST(WhyIdleTest, ABusyGpuOrOneThatTellsNothingHasNoReason) {
  EXPECT_EQ(DiagnoseGpu(Work(0.95)), "");
  EXPECT_EQ(DiagnoseGpu(GpuUtilization{}), "");
}

TEST(WhyIdleTest, WaitingForDataIsToldFirst) {
  GpuUtilization work = Work(0.4);
  work.data_wait = 0.5;
  EXPECT_EQ(DiagnoseGpu(work),
            "the GPU was busy for only 40 % of the last second: the run waited for data 50 % of "
            "the time: 'trainer dataset bench' measures how fast the data can be read");
  work.cores_busy = 0.98;
  EXPECT_THAT(DiagnoseGpu(work),
              HasSubstr("50 % of the time; the 2 cores of this process do not keep "
                        "up: request more cores (--cpus-per-task)"));
}

TEST(WhyIdleTest, OtherRanksCoresAndSmallKernelsAreTold) {
  GpuUtilization work = Work(0.4);
  EXPECT_THAT(DiagnoseGpu(work),
              HasSubstr("its kernels are too short (1.2 ms per iteration): a "
                        "larger batch uses the GPU better ('trainer find-batch')"));
  work.cores_busy = 0.95;
  EXPECT_THAT(DiagnoseGpu(work), HasSubstr("the 2 cores of this process do not keep"));
  work.exchange_wait = 0.3;
  EXPECT_THAT(DiagnoseGpu(work), HasSubstr("waited for other ranks' gradients 30 % of the time"));
}

TEST(WhyIdleTest, ALowClockIsToldWithItsLimit) {
  GpuUtilization work = Work(1);
  work.gpu.clock_mhz = 1200;
  work.gpu.most_clock_mhz = 1980;
  EXPECT_EQ(DiagnoseGpu(work), "");
  work.gpu.by_hardware = true;
  EXPECT_THAT(DiagnoseGpu(work), HasSubstr("its power supply or board requests that"));
  work.gpu.by_power = true;
  work.gpu.watts_limit = 350;
  EXPECT_THAT(DiagnoseGpu(work), HasSubstr("the GPU runs at 1200 of 1980 MHz, because it is at its "
                                           "power limit of 350 W"));
  work.gpu.by_heat = true;
  work.gpu.celsius = 91;
  EXPECT_THAT(DiagnoseGpu(work), HasSubstr("because it is too hot (91 C): check its cooling"));
  work.gpu.clock_mhz = 1900;
  EXPECT_EQ(DiagnoseGpu(work), "");
}

// A GPU monitor that calls a function for each reading.
class Monitor final : public GpuMonitor {
 public:
  explicit Monitor(std::function<GpuReading()> read) : read_(std::move(read)) {}
  GpuReading Read() override { return read_(); }

 private:
  std::function<GpuReading()> read_;
};

std::unique_ptr<TrainingObserver> Watch(std::function<GpuReading()> read, TrainingObserver& told) {
  return MakeGpuObserver(std::make_unique<Monitor>(std::move(read)), told, milliseconds(0));
}

class Told final : public TrainingObserver {
 public:
  void OnGpu(const GpuReport& report) override {
    iterations.push_back(report.iter);
    texts.push_back(report.text);
  }
  void OnNote(const std::string& note) override { notes.push_back(note); }

  std::vector<int> iterations;
  std::vector<std::string> texts, notes;
};

IterationReport At(int iter) {
  IterationReport report;
  report.iter = iter;
  report.seconds = 1;
  report.iterations = 10;
  return report;
}

TEST(GpuWatchTest, ADisplayTellsOfTheOneBeforeAndTheEndOfTheLast) {
  Told told;
  std::atomic<int> reads{0};
  GpuReading reading = BusyGpuWatch(0.93);
  reading.memory_bytes = size_t{3} << 29;
  reading.memory_total = size_t{80} << 30;
  reading.watts = 411.6;
  reading.watts_limit = 700;
  reading.celsius = 61;
  const auto watch = Watch(
      [&] {
        ++reads;
        return reading;
      },
      told);
  watch->OnIteration(At(10));
  while (reads == 0) std::this_thread::yield();
  watch->OnEnd({});
  EXPECT_THAT(told.iterations, ElementsAre(10));
  EXPECT_THAT(told.texts, ElementsAre("93 % busy, 1.5 of 80 GiB, 412 of 700 W, 61 C"));
  EXPECT_THAT(told.notes, IsEmpty());
}

// The driver answers slowly, but displays do not wait for it.
TEST(GpuWatchTest, ASlowReadingKeepsNoDisplayWaiting) {
  Told told;
  std::promise<void> answer;
  std::shared_future<void> answered = answer.get_future().share();
  const auto watch = Watch(
      [answered] {
        answered.wait();
        return BusyGpuWatch(0.5);
      },
      told);
  for (const int iter : {10, 20, 30}) watch->OnIteration(At(iter));
  EXPECT_THAT(told.iterations, IsEmpty());
  answer.set_value();
  watch->OnEnd({});
  EXPECT_EQ(told.iterations.size(), 1u);
}

TEST(GpuWatchTest, TroubleIsNotedWhenItIsSeenTwiceAndThenNotSoonAgain) {
  Told told;
  const auto watch = Watch([] { return BusyGpuWatch(0.2); }, told);
  for (int iter = 0; told.iterations.size() < 5; iter += 10) {
    watch->OnIteration(At(iter));
    EXPECT_LE(told.notes.size(), told.iterations.size() / 2);
  }
  EXPECT_THAT(told.notes, ElementsAre(HasSubstr("the GPU was busy for only 20 %")));
}

TEST(GpuWatchTest, FilesOfARunHaveItsNumbers) {
  const TempFolder folder;
  GpuReport report;
  report.iter = 20;
  report.numbers = {{"busy", 0.5f, 0}, {"watts", 300, 0}};
  {
    const auto metrics = MakeMetricsObserver(folder.path());
    const auto events = MakeEventsObserver(folder.path(), {});
    for (TrainingObserver* observer : {metrics.get(), events.get()}) {
      observer->OnStart({"net", "fixed", 0, 40, 0});
      observer->OnStep(40);
      observer->OnGpu(report);
      observer->OnEnd({});
    }
  }
  const std::string lines = ReadFile(folder / kMetricsName, 1 << 20);
  EXPECT_THAT(lines, HasSubstr("\"event\": \"gpu\", \"iter\": 20,"));
  EXPECT_THAT(lines, HasSubstr("\"busy\": 0.5, \"watts\": 300}"));
  EXPECT_THAT(lines, HasSubstr("\"event\": \"end\", \"iter\": 40,"));
  const std::string table = ReadFile(folder / kMetricsTableName, 1 << 20);
  EXPECT_TRUE(testing::internal::RE::PartialMatch(table.c_str(), "\n20,[0-9.]+,gpu/busy,0.5\n"));
}

}  // namespace
}  // namespace trainer
