// The emulated machine's NVML, which reports the values of its options.

#include <cstdio>
#include <cstring>

#include "support/emulated_gpu/calls.h"
#include "support/emulated_gpu/state.h"
#include "support/emulated_gpu/tables.h"

namespace emulated_gpu {
namespace {

using trainer::cuda::Nvml;
namespace nvml = trainer::cuda::nvml;

constexpr int kUninitialized = 1, kNotFound = 6;

// A handle is the GPU's number, counted from 1 because null is invalid.
nvml::Device HandleOf(int device) {
  return reinterpret_cast<nvml::Device>(static_cast<uintptr_t>(device) + 1);
}
int DeviceOf(nvml::Device handle) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(handle)) - 1;
}

// Calls may come from any thread.
template <class F>
int Answer(F answer) {
  const std::scoped_lock lock(Mutex());
  if (!TheOptions().nvml.there) return kUninitialized;
  answer(TheOptions().nvml);
  return nvml::kSuccess;
}

int Find(const char* bus, nvml::Device* device) {
  const std::scoped_lock lock(Mutex());
  if (!TheOptions().nvml.there) return kUninitialized;
  for (int id = 0; id < static_cast<int>(TheOptions().devices.size()); ++id) {
    char own[64] = "";
    calls::DeviceGetPciBusId(own, sizeof own, id);
    if (std::strcmp(own, bus) != 0) continue;
    *device = HandleOf(id);
    return nvml::kSuccess;
  }
  return kNotFound;
}

constexpr Nvml kNvml = {
    .Init = [] { return Answer([](const NvmlOptions&) {}); },
    .DeviceGetHandleByPciBusId = Find,
    .ErrorString = [](int result) { return result == kNotFound ? "Not Found" : "Uninitialized"; },
    .SystemGetDriverVersion =
        [](char* version, unsigned length) {
          return Answer([&](const NvmlOptions&) { std::snprintf(version, length, "580.00.01"); });
        },
    .DeviceGetUtilizationRates =
        [](nvml::Device, nvml::Utilization* to) {
          return Answer([&](const NvmlOptions& o) { *to = {o.busy, o.memory_busy}; });
        },
    .DeviceGetMemoryInfo =
        [](nvml::Device device, nvml::Memory* to) {
          return Answer([&](const NvmlOptions&) {
            const int id = DeviceOf(device);
            to->total = OptionsOf(id).memory_bytes;
            to->used = AllocatedBytes(id);
            to->free = to->total - to->used;
          });
        },
    .DeviceGetPowerUsage =
        [](nvml::Device, unsigned* to) {
          return Answer([&](const NvmlOptions& o) { *to = o.milliwatts; });
        },
    .DeviceGetEnforcedPowerLimit =
        [](nvml::Device, unsigned* to) {
          return Answer([&](const NvmlOptions& o) { *to = o.milliwatts_limit; });
        },
    .DeviceGetTotalEnergyConsumption =
        [](nvml::Device, unsigned long long* to) {
          return Answer([&](const NvmlOptions& o) { *to = o.millijoules; });
        },
    .DeviceGetTemperature =
        [](nvml::Device, int, unsigned* to) {
          return Answer([&](const NvmlOptions& o) { *to = o.celsius; });
        },
    .DeviceGetCurrentClocksEventReasons =
        [](nvml::Device, unsigned long long* to) {
          return Answer([&](const NvmlOptions& o) { *to = o.reasons; });
        },
    .DeviceGetClockInfo =
        [](nvml::Device, int, unsigned* to) {
          return Answer([&](const NvmlOptions& o) { *to = o.clock_mhz; });
        },
    .DeviceGetMaxClockInfo =
        [](nvml::Device, int, unsigned* to) {
          return Answer([&](const NvmlOptions& o) { *to = o.most_clock_mhz; });
        },
};

}  // namespace

const Nvml& TheNvml() { return kNvml; }

}  // namespace emulated_gpu
