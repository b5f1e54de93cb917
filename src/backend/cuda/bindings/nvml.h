#pragma once
// The calls of NVML, NVIDIA's library for monitoring GPUs, as a table of functions. It is filled
// from libnvidia-ml.so.1, which is a part of the driver, or by the emulated GPU of the tests.
// Names, semantics and values follow the NVML API without its prefix; results are nvmlReturn_t as
// int. A call that the installed version lacks is null, except for Init, DeviceGetHandleByPciBusId
// and ErrorString, which LoadNvml requires.

#include <memory>
#include <string>

#include "trainer/backend/device/device.h"
#include "trainer/base/process/gpu_reading.h"

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
  int (*DeviceGetTotalEnergyConsumption)(nvml::Device device, unsigned long long* millijoules);
  int (*DeviceGetTemperature)(nvml::Device device, int sensor, unsigned* celsius);
  // Drivers before 535 call it nvmlDeviceGetCurrentClocksThrottleReasons.
  int (*DeviceGetCurrentClocksEventReasons)(nvml::Device device, unsigned long long* reasons);
  int (*DeviceGetClockInfo)(nvml::Device device, int clock, unsigned* mhz);
  int (*DeviceGetMaxClockInfo)(nvml::Device device, int clock, unsigned* mhz);
};

// Loads and initialises the library `file`. Returns null and sets `*why` to a sentence if it cannot
// be used.
std::unique_ptr<Nvml> LoadNvml(const std::string& file, std::string* why);

// Opens the library at the first call. Returns null and sets `*why` to a sentence if it is not
// available.
const Nvml* GetNvml(std::string* why);
// Sets the table in tests, instead of the library; null: not available.
void SetNvml(const Nvml* table);

// Returns the driver's version, "580.82.07", or the CUDA version that it supports: "13.0".
std::string DriverVersion();
// "of driver 580.82.07", or "" if NVML is not available.
std::string DescribeNvml();

// Implements MakeGpuMonitor of device/gpu.h.
std::unique_ptr<GpuMonitor> MakeMonitor(const trainer::Device& device, std::string* why);

}  // namespace trainer::cuda
