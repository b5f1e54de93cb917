// A small library with some of NVML's functions, for the test that opens one.

#include <cstdio>

extern "C" {

int nvmlInit_v2() { return 0; }
const char* nvmlErrorString(int) { return "Unknown Error"; }

int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = device;
  return 0;
}

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::snprintf(version, length, "999.1");
  return 0;
}

struct Utilization {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void*, Utilization* utilization) {
  *utilization = {55, 20};
  return 0;
}

int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 250000;
  return 0;
}

// Returns "not supported".
int nvmlDeviceGetMemoryInfo(void*, void*) { return 3; }

#ifndef TRAINER_FAKE_NVML_IS_OLD
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  *reasons = 0x4;
  return 0;
}
#endif

// This is the older name of the function; in a library with both, the two values differ.
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x20;
  return 0;
}

}  // extern "C"
