// Tests energy readings from the counters of a fake powercap folder.

#include "trainer/base/process/rapl_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "support/temp_folder.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

class RaplMeterTest : public testing::Test {
 protected:
  void Zone(const std::string& zone, const std::string& name, uint64_t energy) const {
    std::filesystem::create_directory(folder_ / zone);
    folder_.Write(zone + "/name", name + "\n");
    folder_.Write(zone + "/max_energy_range_uj", "262143328850\n");
    SetEnergy(zone, energy);
  }
  void SetEnergy(const std::string& zone, uint64_t energy) const {
    folder_.Write(zone + "/energy_uj", Join(energy, "\n"));
  }
  static std::map<std::string, double> Joules(const RaplMeter& meter) {
    std::map<std::string, double> joules;
    for (const EnergyTotal& total : meter.totals()) {
      EXPECT_EQ(total.problem, "") << total.name;
      joules[total.name] = total.joules;
    }
    return joules;
  }

  const TempFolder folder_;
};

TEST_F(RaplMeterTest, SumsPackagesAndTheirMemory) {
  Zone("intel-rapl:0", "package-0", 1'000'000);
  Zone("intel-rapl:0:0", "core", 5);
  Zone("intel-rapl:0:1", "dram", 2'000'000);
  Zone("intel-rapl:1", "package-1", 0);
  Zone("intel-rapl:2", "psys", 7);
  Zone("intel-rapl-mmio:0", "package-0", 1'000'000);
  RaplMeter meter(folder_.path());
  EXPECT_TRUE(meter.IsReadable());
  for (const char* zone : {"intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"}) {
    SetEnergy(zone, 9'000'000);
  }
  SetEnergy("intel-rapl:0", 4'500'000);
  SetEnergy("intel-rapl:0:1", 2'250'000);
  meter.Update();
  SetEnergy("intel-rapl:0", 5'000'000);
  SetEnergy("intel-rapl:1", 1'500'000);
  meter.Update();
  EXPECT_THAT(Joules(meter), ElementsAre(Pair("dram of package-0", DoubleNear(0.25, 1e-12)),
                                         Pair("package-0", DoubleNear(4, 1e-12)),
                                         Pair("package-1", DoubleNear(1.5, 1e-12))));
}

// The counter adds 328,850 microjoules up to the end of its range and 171,150 after it.
TEST_F(RaplMeterTest, ACounterThatStartsOverLosesNothing) {
  Zone("intel-rapl:0", "package-0", 262'143'000'000);
  RaplMeter meter(folder_.path());
  SetEnergy("intel-rapl:0", 171'150);
  meter.Update();
  EXPECT_THAT(Joules(meter), ElementsAre(Pair("package-0", DoubleNear(0.5, 1e-12))));
  SetEnergy("intel-rapl:0", 1'171'150);
  meter.Update();
  EXPECT_THAT(Joules(meter), ElementsAre(Pair("package-0", DoubleNear(1.5, 1e-12))));
}

TEST_F(RaplMeterTest, ACounterThatStartsOverNeedsItsRange) {
  Zone("intel-rapl:0", "package-0", 1000);
  std::filesystem::remove(folder_ / "intel-rapl:0/max_energy_range_uj");
  RaplMeter meter(folder_.path());
  SetEnergy("intel-rapl:0", 2000);
  meter.Update();
  EXPECT_THAT(Joules(meter), ElementsAre(Pair("package-0", DoubleNear(0.001, 1e-12))));
  SetEnergy("intel-rapl:0", 5);
  meter.Update();
  EXPECT_EQ(meter.totals()[0].problem, folder_ / "intel-rapl:0/energy_uj" +
                                           ": the counter started over, and its range is unknown");
  EXPECT_FALSE(meter.IsReadable());
}

TEST_F(RaplMeterTest, ACounterThatCannotBeReadSaysWhy) {
  Zone("intel-rapl:0", "package-0", 1000);
  Zone("intel-rapl:1", "package-1", 1000);
  folder_.Write("intel-rapl:1/energy_uj", "unknown\n");
  RaplMeter meter(folder_.path());
  EXPECT_TRUE(meter.IsReadable());
  ASSERT_THAT(meter.totals(), SizeIs(2));
  EXPECT_THAT(meter.totals()[1].problem, EndsWith("intel-rapl:1/energy_uj: it has no number"));
  std::filesystem::remove(folder_ / "intel-rapl:0/energy_uj");
  meter.Update();
  EXPECT_THAT(meter.totals()[0].problem,
              EndsWith("intel-rapl:0/energy_uj: No such file or directory"));
  EXPECT_FALSE(meter.IsReadable());
}

TEST_F(RaplMeterTest, WithoutPermissionItSaysWhoCanGiveIt) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  Zone("intel-rapl:0", "package-0", 1000);
  std::filesystem::permissions(folder_ / "intel-rapl:0/energy_uj", std::filesystem::perms(0));
  const RaplMeter meter(folder_.path());
  EXPECT_THAT(meter.totals()[0].problem,
              EndsWith("energy_uj: Permission denied; since Linux 5.10 only root reads it, unless "
                       "an administrator allows it with chmod a+r"));
}

TEST_F(RaplMeterTest, WithoutCountersThereIsOneProblem) {
  const std::string absent = folder_ / "absent";
  for (const std::string& folder : {absent, folder_.path()}) {
    RaplMeter meter(folder);
    meter.Update();
    EXPECT_FALSE(meter.IsReadable());
    ASSERT_THAT(meter.totals(), SizeIs(1));
    EXPECT_EQ(meter.totals()[0].name, "processors");
    EXPECT_THAT(meter.totals()[0].problem,
                HasSubstr(folder == absent
                              ? "absent does not exist: the system has no RAPL, or a container "
                                "hides it"
                              : " has no counter of a processor (RAPL)"));
  }
}

}  // namespace
}  // namespace trainer
