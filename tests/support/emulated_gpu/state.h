#pragma once
// What all parts of the emulated GPU share. Everything is guarded by one mutex.

#include <cstdint>
#include <mutex>
#include <string>

#include "support/emulated_gpu/emulated_gpu.h"

namespace emulated_gpu {

std::recursive_mutex& Mutex();

// Random numbers that depend on the seed alone.
class Random {
 public:
  uint64_t Next();
  // In [0, n)
  uint64_t Below(uint64_t n) { return Next() % n; }
  void Seed(uint64_t seed) { state_ = seed * 0x9e3779b97f4a7c15u + 1; }

 private:
  uint64_t state_ = 1;
};
Random& TheRandom();

const Options& TheOptions();
// Of a device that was there before a Reset took it away, those of none: no memory.
const DeviceOptions& OptionsOf(int device);
Counters& TheCounters();
bool CountsBytes();
void AddProblem(const std::string& sentence);

// The error numbers of the CUDA runtime that the emulator gives and nobody else names.
inline constexpr int kInvalidValue = 1, kInvalidConfiguration = 9, kInvalidMemcpyDirection = 21,
                     kInvalidResourceHandle = 400, kIllegalState = 401, kLaunchFailure = 719,
                     kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureMerge = 902,
                     kCaptureUnmatched = 903, kCaptureUnjoined = 904, kCaptureIsolation = 905,
                     kCapturedEvent = 907, kCaptureWrongThread = 908;

// Holds the mutex during a call of the runtime, and gives the error that it must end with: an
// injected one, that of a broken device, or 0.
class Call {
 public:
  explicit Call(CallKind kind);
  int error() const { return error_; }
  // For calls that give back: they do that on a broken device, too, and return its error.
  bool Refused() const;

 private:
  std::scoped_lock<std::recursive_mutex> lock_;
  int error_;
};

// Sets the thread's last error.
int Fail(int error);
// The same, and a problem.
int Fail(int error, const std::string& sentence);
int LastError(bool clear);
// From now on all calls return it; of an earlier one, that stays.
void Break(int error);
int Broken();
// What InjectBreakdown left for the next call that waits becomes sticky.
void NoticeBreakdown();

int CurrentDevice();
void SetCurrentDevice(int device);

}  // namespace emulated_gpu
