#include "cuda/bindings/nvml.h"

#include <dlfcn.h>

#include "cuda/cuda_device.h"
#include "trainer/base/text/text.h"

namespace trainer::cuda {
namespace {

constexpr char kFile[] = "libnvidia-ml.so.1";

// Returns the table that SetNvml has set; null if there is none.
const Nvml*& GivenNvml() {
  static const Nvml* table = nullptr;
  return table;
}

// Reads the load of one GPU. A value that the driver does not report keeps its default.
class Monitor final : public GpuMonitor {
 public:
  Monitor(const Nvml& nvml, nvml::Device device) : nvml_(nvml), device_(device) {}

  GpuReading Read() override {
    GpuReading reading;
    nvml::Utilization busy = {};
    if (Ask(nvml_.DeviceGetUtilizationRates, &busy)) {
      reading.busy = busy.gpu / 100.0;
      reading.memory_busy = busy.memory / 100.0;
    }
    nvml::Memory memory = {};
    if (Ask(nvml_.DeviceGetMemoryInfo, &memory)) {
      reading.memory_bytes = memory.used;
      reading.memory_total = memory.total;
    }
    unsigned number = 0;
    if (Ask(nvml_.DeviceGetPowerUsage, &number)) reading.watts = number / 1000.0;
    if (Ask(nvml_.DeviceGetEnforcedPowerLimit, &number)) reading.watts_limit = number / 1000.0;
    unsigned long long millijoules = 0;
    if (Ask(nvml_.DeviceGetTotalEnergyConsumption, &millijoules)) {
      reading.joules = static_cast<double>(millijoules) / 1000;
    }
    if (Ask(nvml_.DeviceGetTemperature, nvml::kTemperatureGpu, &number)) reading.celsius = number;
    if (Ask(nvml_.DeviceGetClockInfo, nvml::kClockSm, &number)) reading.clock_mhz = number;
    if (Ask(nvml_.DeviceGetMaxClockInfo, nvml::kClockSm, &number)) reading.most_clock_mhz = number;
    unsigned long long reasons = 0;
    if (Ask(nvml_.DeviceGetCurrentClocksEventReasons, &reasons)) {
      reading.by_power = (reasons & (nvml::kSwPowerCap | nvml::kHwPowerBrake)) != 0;
      reading.by_heat = (reasons & (nvml::kSwThermal | nvml::kHwThermal)) != 0;
      reading.by_hardware =
          (reasons & nvml::kHwSlowdown) != 0 && !reading.by_power && !reading.by_heat;
    }
    return reading;
  }

 private:
  // Calls a function of NVML for the GPU. Returns whether the library has it and it succeeded.
  template <class... Parameters, class... Arguments>
  bool Ask(int (*call)(nvml::Device, Parameters...), Arguments... arguments) const {
    return call != nullptr && call(device_, arguments...) == nvml::kSuccess;
  }

  const Nvml& nvml_;
  nvml::Device device_;
};

}  // namespace

std::unique_ptr<Nvml> LoadNvml(const std::string& file, std::string* why) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *why = Join(file, " cannot be loaded: ", EscapeControl(dlerror()));
    return nullptr;
  }
  auto table = std::make_unique<Nvml>();
  const auto load = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, name));
  };
  load(table->Init, "nvmlInit_v2");
  load(table->DeviceGetHandleByPciBusId, "nvmlDeviceGetHandleByPciBusId_v2");
  load(table->ErrorString, "nvmlErrorString");
  load(table->SystemGetDriverVersion, "nvmlSystemGetDriverVersion");
  load(table->DeviceGetUtilizationRates, "nvmlDeviceGetUtilizationRates");
  load(table->DeviceGetMemoryInfo, "nvmlDeviceGetMemoryInfo");
  load(table->DeviceGetPowerUsage, "nvmlDeviceGetPowerUsage");
  load(table->DeviceGetEnforcedPowerLimit, "nvmlDeviceGetEnforcedPowerLimit");
  load(table->DeviceGetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption");
  load(table->DeviceGetTemperature, "nvmlDeviceGetTemperature");
  load(table->DeviceGetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksEventReasons");
  if (table->DeviceGetCurrentClocksEventReasons == nullptr) {
    load(table->DeviceGetCurrentClocksEventReasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  load(table->DeviceGetClockInfo, "nvmlDeviceGetClockInfo");
  load(table->DeviceGetMaxClockInfo, "nvmlDeviceGetMaxClockInfo");
  if (table->Init == nullptr || table->DeviceGetHandleByPciBusId == nullptr ||
      table->ErrorString == nullptr) {
    *why = Join(file, " is not a known version of NVML");
    return nullptr;
  }
  if (const int status = table->Init(); status != nvml::kSuccess) {
    *why = Join(file, ": ", table->ErrorString(status));
    return nullptr;
  }
  return table;
}

const Nvml* GetNvml(std::string* why) {
  if (GivenNvml() != nullptr) return GivenNvml();
  if (!GetRuntime()->linked) {
    *why = Join(kFile, " does not exist");
    return nullptr;
  }
  static std::string problem;
  static const std::unique_ptr<Nvml> library = LoadNvml(kFile, &problem);
  *why = problem;
  return library.get();
}

void SetNvml(const Nvml* table) { GivenNvml() = table; }

namespace {

// Returns the driver's version from NVML, or "".
std::string NvmlDriverVersion() {
  std::string why;
  const Nvml* const nvml = GetNvml(&why);
  char text[96] = "";
  const bool told = nvml != nullptr && nvml->SystemGetDriverVersion != nullptr &&
                    nvml->SystemGetDriverVersion(text, sizeof text) == nvml::kSuccess;
  return told ? EscapeControl(text) : "";
}

}  // namespace

std::string DescribeNvml() {
  const std::string version = NvmlDriverVersion();
  return version.empty() ? "" : "of driver " + version;
}

std::string DriverVersion() {
  if (const std::string version = NvmlDriverVersion(); !version.empty()) return version;
  int number = 0;
  GetRuntime()->DriverGetVersion(&number);
  return Join(number / 1000, ".", number % 1000 / 10);
}

std::unique_ptr<GpuMonitor> MakeMonitor(const trainer::Device& device, std::string* why) {
  const Nvml* const nvml = GetNvml(why);
  if (nvml == nullptr) return nullptr;
  char bus[64] = "";
  const int id = static_cast<const CudaDevice&>(device).options().id;
  if (GetRuntime()->DeviceGetPciBusId(bus, sizeof bus, id) != kSuccess) {
    *why = "the driver does not report the PCI bus address of the GPU";
    return nullptr;
  }
  nvml::Device found = nullptr;
  if (const int status = nvml->DeviceGetHandleByPciBusId(bus, &found); status != nvml::kSuccess) {
    *why = Join("NVML does not know the GPU at ", bus, ": ", nvml->ErrorString(status));
    return nullptr;
  }
  return std::make_unique<Monitor>(*nvml, found);
}

}  // namespace trainer::cuda
