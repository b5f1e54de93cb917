#pragma once
// The state that all parts of the emulated GPU share. One mutex guards all of it.

#include <cstdint>
#include <mutex>
#include <string>

#include "support/emulated_gpu/emulated_gpu.h"

namespace emulated_gpu {

std::recursive_mutex& Mutex();

// Random numbers that depend only on the seed.
class Random {
 public:
  uint64_t Next();
  // Returns a number in [0, n).
  uint64_t Below(uint64_t n) { return Next() % n; }
  void Seed(uint64_t seed) { state_ = seed * 0x9e3779b97f4a7c15u + 1; }

 private:
  uint64_t state_ = 1;
};
Random& TheRandom();

const Options& TheOptions();
// Returns options without memory for a device that a Reset removed.
const DeviceOptions& OptionsOf(int device);
Counters& TheCounters();
bool CountsBytes();
void AddProblem(const std::string& sentence);

// The error numbers of the CUDA runtime that only the emulator uses.
inline constexpr int kInvalidValue = 1, kInvalidConfiguration = 9, kInvalidMemcpyDirection = 21,
                     kInvalidResourceHandle = 400, kIllegalState = 401, kLaunchFailure = 719,
                     kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureMerge = 902,
                     kCaptureUnmatched = 903, kCaptureUnjoined = 904, kCaptureIsolation = 905,
                     kCapturedEvent = 907, kCaptureWrongThread = 908;

// Holds the mutex during a call of the runtime, and the error that the call must return: an
// injected one, the error of a broken device, or 0.
class Call {
 public:
  explicit Call(CallKind kind);
  int error() const { return error_; }
  // Returns whether a call that frees something must not do so: on a broken device it still frees,
  // and returns the device's error.
  bool Refused() const;

 private:
  std::scoped_lock<std::recursive_mutex> lock_;
  int error_;
};

// Sets the thread's last error and returns it.
int Fail(int error);
// Also adds a problem.
int Fail(int error, const std::string& sentence);
int LastError(bool clear);
// Makes all calls return `error` from now on, unless the device is broken already.
void Break(int error);
int Broken();
// Makes the error sticky that InjectBreakdown left for the next call that waits.
void NoticeBreakdown();

int CurrentDevice();
void SetCurrentDevice(int device);

}  // namespace emulated_gpu
