#pragma once
// The calls of NVML, NVIDIA's library for watching GPUs, as a table: filled from libnvidia-ml.so.1,
// which comes with the driver, or by the emulated GPU of the tests. Names, meanings and numbers are
// those of the NVML API without its prefix; results are nvmlReturn_t as int. Calls that a version
// of the library lacks are null, but for the first three.

#include <memory>
#include <string>

#include "trainer/backend/device/gpu_monitor.h"

namespace trainer::cuda {
namespace nvml {

inline constexpr int kSuccess = 0;
// nvmlTemperatureSensors_t, nvmlClockType_t
inline constexpr int kTemperatureGpu = 0, kClockSm = 1;
// nvmlClocksEventReasons
inline constexpr unsigned long long kSwPowerCap = 0x4, kHwSlowdown = 0x8, kSwThermal = 0x20,
                                    kHwThermal = 0x40, kHwPowerBrake = 0x80;

struct DeviceObject;
using Device = DeviceObject*;
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;
};

}  // namespace nvml

struct Nvml {
  int (*Init)();                                                            // nvmlInit_v2
  int (*DeviceGetHandleByPciBusId)(const char* bus, nvml::Device* device);  // ..._v2
  const char* (*ErrorString)(int result);
  int (*SystemGetDriverVersion)(char* version, unsigned length);
  int (*DeviceGetUtilizationRates)(nvml::Device device, nvml::Utilization* utilization);
  int (*DeviceGetMemoryInfo)(nvml::Device device, nvml::Memory* memory);
  int (*DeviceGetPowerUsage)(nvml::Device device, unsigned* milliwatts);
  int (*DeviceGetEnforcedPowerLimit)(nvml::Device device, unsigned* milliwatts);
  int (*DeviceGetTemperature)(nvml::Device device, int sensor, unsigned* celsius);
  int (*DeviceGetCurrentClocksThrottleReasons)(nvml::Device device, unsigned long long* reasons);
  int (*DeviceGetClockInfo)(nvml::Device device, int clock, unsigned* mhz);
  int (*DeviceGetMaxClockInfo)(nvml::Device device, int clock, unsigned* mhz);
};

// The calls of the library `file`, initialised; null with a sentence where it is of no use.
std::unique_ptr<Nvml> LoadNvml(const std::string& file, std::string* why);

// Opened at the first call; null with a sentence where it is not there.
const Nvml* GetNvml(std::string* why);
// In tests, in place of the library; null: not there.
void SetNvml(const Nvml* table);

// "580.82.07", or what CUDA says of it: "13.0".
std::string DriverVersion();
// "of driver 580.82.07", or "" where it is of no use.
std::string DescribeNvml();

// What device/gpu_monitor.h declares.
std::unique_ptr<GpuMonitor> MakeMonitor(const trainer::Device& device, std::string* why);

}  // namespace trainer::cuda
