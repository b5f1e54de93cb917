// NVML's readings of a GPU, from the emulated machine and from a library that is opened.

#include "cuda/bindings/nvml.h"

#include "cuda/gpu_testing.h"
#include "trainer/backend/device/cpu_device.h"

namespace trainer {
namespace {

using testing::DoubleEq;
using testing::Eq;
using testing::HasSubstr;
using testing::Optional;

class NvmlTest : public EmulatedGpu {
 protected:
  NvmlTest() : emulated_(cuda::GetNvml(&why_)) {}
  ~NvmlTest() override { cuda::SetNvml(emulated_); }

 private:
  std::string why_;
  const cuda::Nvml* emulated_;
};

TEST_F(NvmlTest, AReadingHasWhatTheDriverTells) {
  emulated_gpu::Options machine;
  machine.nvml = {.there = true,
                  .busy = 37,
                  .memory_busy = 12,
                  .milliwatts = 123400,
                  .milliwatts_limit = 700000,
                  .millijoules = 1234500,
                  .celsius = 81,
                  .clock_mhz = 1200,
                  .most_clock_mhz = 1980,
                  .reasons = cuda::nvml::kSwThermal};
  machine.devices.assign(2, {});
  emulated_gpu::Reset(machine);
  const auto second = MakeGpuDevice({.id = 1});
  void* const memory = second->Allocate(size_t{1} << 20);
  std::string why;
  const auto monitor = MakeGpuMonitor(*second, &why);
  ASSERT_NE(monitor, nullptr) << why;
  const GpuReading reading = monitor->Read();
  EXPECT_THAT(reading.busy, Optional(DoubleEq(0.37)));
  EXPECT_THAT(reading.memory_busy, Optional(DoubleEq(0.12)));
  EXPECT_THAT(reading.memory_bytes, Optional(Eq(emulated_gpu::AllocatedBytes(1))));
  EXPECT_THAT(reading.memory_total, Optional(Eq(size_t{1} << 30)));
  EXPECT_THAT(reading.watts, Optional(DoubleEq(123.4)));
  EXPECT_THAT(reading.watts_limit, Optional(DoubleEq(700)));
  EXPECT_THAT(reading.joules, Optional(DoubleEq(1234.5)));
  EXPECT_THAT(reading.celsius, Optional(DoubleEq(81)));
  EXPECT_THAT(reading.clock_mhz, Optional(DoubleEq(1200)));
  EXPECT_THAT(reading.most_clock_mhz, Optional(DoubleEq(1980)));
  EXPECT_TRUE(reading.by_heat);
  EXPECT_FALSE(reading.by_power);
  EXPECT_FALSE(reading.by_hardware);
  second->Free(memory);
  EXPECT_EQ(cuda::DriverVersion(), "580.00.01");
}

TEST_F(NvmlTest, WithoutItThereIsNoMonitorAndAReason) {
  std::string why;
  EXPECT_EQ(MakeGpuMonitor(device(), &why), nullptr);
  EXPECT_THAT(why, HasSubstr("NVML does not know the GPU at 0000:01:00.0: Uninitialized"));
  EXPECT_EQ(cuda::DriverVersion(), "13.0");
}

TEST_F(NvmlTest, TheCpuHasNone) {
  std::string why;
  EXPECT_EQ(MakeGpuMonitor(*MakeCpuDevice(1), &why), nullptr);
  EXPECT_EQ(why, "the device is not a GPU");
}

TEST_F(NvmlTest, ALibraryIsOpenedAndWhatItLacksIsLeftOut) {
  std::string why;
  const auto library = cuda::LoadNvml(TRAINER_FAKE_NVML, &why);
  ASSERT_NE(library, nullptr) << why;
  EXPECT_EQ(library->DeviceGetTemperature, nullptr);
  cuda::SetNvml(library.get());
  const GpuReading reading = MakeGpuMonitor(device(), &why)->Read();
  EXPECT_THAT(reading.busy, Optional(DoubleEq(0.55)));
  EXPECT_THAT(reading.watts, Optional(DoubleEq(250)));
  EXPECT_FALSE(reading.celsius);
  EXPECT_FALSE(reading.joules);
  EXPECT_FALSE(reading.memory_bytes);
  EXPECT_TRUE(reading.by_power);
  EXPECT_FALSE(reading.by_heat);
  EXPECT_EQ(cuda::DriverVersion(), "999.1");
}

TEST_F(NvmlTest, AnOldLibraryTellsTheReasonsUnderTheirOldName) {
  std::string why;
  const auto library = cuda::LoadNvml(TRAINER_FAKE_OLD_NVML, &why);
  ASSERT_NE(library, nullptr) << why;
  cuda::SetNvml(library.get());
  EXPECT_TRUE(MakeGpuMonitor(device(), &why)->Read().by_heat);
}

TEST_F(NvmlTest, ALibraryThatIsNotThereOrAnotherOneIsAReason) {
  std::string why;
  EXPECT_EQ(cuda::LoadNvml("libnvidia-ml-none.so.1", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("libnvidia-ml-none.so.1 cannot be loaded: "));
  EXPECT_EQ(cuda::LoadNvml("libz.so.1", &why), nullptr);
  EXPECT_EQ(why, "libz.so.1 is not a known version of NVML");
}

}  // namespace
}  // namespace trainer
