// Tests the energy of a host and a GPU, with a fake powercap folder and a fake driver.

#include "trainer/monitor/energy_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "support/temp_folder.h"

namespace trainer {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// Reports an energy that the test sets.
class FakeCounter final : public GpuMonitor {
 public:
  explicit FakeCounter(const std::optional<double>& joules) : joules_(joules) {}
  GpuReading Read() override {
    GpuReading reading;
    reading.joules = joules_;
    return reading;
  }

 private:
  const std::optional<double>& joules_;
};

class EnergyMeterTest : public testing::Test {
 protected:
  EnergySources Gpu() const {
    EnergySources sources;
    sources.host = "node7";
    sources.gpu = "GPU 0000:1b:00.0";
    sources.gpu_monitor = std::make_unique<FakeCounter>(joules_);
    return sources;
  }

  const TempFolder folder_;
  std::optional<double> joules_;
};

TEST_F(EnergyMeterTest, AGpuCountsFromTheStart) {
  joules_ = 1000;
  EnergyMeter meter(Gpu());
  joules_ = 4600;
  const std::vector<EnergyTotal> totals = meter.Read();
  ASSERT_THAT(totals, SizeIs(1));
  EXPECT_EQ(totals[0].host, "node7");
  EXPECT_EQ(totals[0].name, "GPU 0000:1b:00.0");
  EXPECT_DOUBLE_EQ(totals[0].joules, 3600);
  EXPECT_EQ(totals[0].problem, "");
  joules_ = 4700;
  EXPECT_DOUBLE_EQ(meter.Read()[0].joules, 3700);
}

TEST_F(EnergyMeterTest, AGpuWithoutACounterSaysSo) {
  EnergyMeter meter(Gpu());
  EXPECT_THAT(meter.Read()[0].problem,
              StartsWith("the driver (NVML) reports no counter of energy for this GPU"));
  joules_ = 5;
  EXPECT_THAT(meter.Read()[0].problem, StartsWith("the driver (NVML) reports no counter"))
      << "the value at the beginning is unknown";
}

TEST_F(EnergyMeterTest, AResetCounterIsNotANumber) {
  joules_ = 1000;
  EnergyMeter meter(Gpu());
  joules_ = 3;
  EXPECT_EQ(meter.Read()[0].problem, "the counter of the driver (NVML) was reset during the run");
}

TEST_F(EnergyMeterTest, AGpuWithoutAMonitorHasTheReason) {
  EnergySources sources = Gpu();
  sources.gpu_monitor.reset();
  sources.gpu_problem = "libnvidia-ml.so.1 does not exist";
  EnergyMeter meter(std::move(sources));
  EXPECT_EQ(meter.Read()[0].problem, "libnvidia-ml.so.1 does not exist");
}

TEST_F(EnergyMeterTest, ProcessorsAndGpuAreMeasuredTogether) {
  std::filesystem::create_directory(folder_ / "intel-rapl:0");
  folder_.Write("intel-rapl:0/name", "package-0\n");
  folder_.Write("intel-rapl:0/max_energy_range_uj", "1000000000\n");
  folder_.Write("intel-rapl:0/energy_uj", "0\n");
  joules_ = 0;
  EnergySources sources = Gpu();
  sources.rapl_folder = folder_.path();
  EnergyMeter meter(std::move(sources));
  folder_.Write("intel-rapl:0/energy_uj", "7200000\n");
  joules_ = 1;
  const std::vector<EnergyTotal> totals = meter.Read();
  ASSERT_THAT(totals, SizeIs(2));
  EXPECT_EQ(totals[0].host, "node7");
  EXPECT_EQ(totals[0].name, "package-0");
  EXPECT_DOUBLE_EQ(totals[0].joules, 7.2);
  EXPECT_DOUBLE_EQ(totals[1].joules, 1);
}

TEST_F(EnergyMeterTest, ARankWithoutSourcesMeasuresNothing) {
  EnergyMeter meter({});
  EXPECT_THAT(meter.Read(), IsEmpty());
}

}  // namespace
}  // namespace trainer
