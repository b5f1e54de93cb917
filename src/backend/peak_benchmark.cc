#include "trainer/backend/device/peak_benchmark.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "trainer/backend/device/available_memory.h"
#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

// Owns an array of floats on the device.
class Numbers {
 public:
  Numbers(const Device& device, int64_t count)
      : device_(device),
        at_(static_cast<float*>(device.Allocate(static_cast<size_t>(count) * sizeof(float)))) {
    constexpr unsigned char kPart = 0x3c;  // each float becomes 0.0115
    device.Memset(at_, kPart, static_cast<size_t>(count) * sizeof(float));
  }
  ~Numbers() { device_.Free(at_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  float* get() const { return at_; }

 private:
  const Device& device_;
  float* at_;
};

// Moves 12 bytes: it reads both elements and writes one.
struct AddHalf {
  HD void operator()(float& y, const float& x) const { y += 0.5f * x; }
};

// Returns the seconds of the fastest of five runs, after one warm-up run.
template <class F>
double BestSeconds(const Device& device, const F& run) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  for (int i = 0; i <= 5; ++i) {
    device.Synchronize();
    const auto start = Clock::now();
    run();
    device.Synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (i > 0) best = std::min(best, seconds);
  }
  return best;
}

// Returns the time of a product of two square f32 matrices.
double ProductSeconds(const Device& device, int64_t size) {
  const auto plan = device.NewGemm({.m = size, .n = size, .k = size});
  const Numbers a(device, size * size), b(device, size * size), c(device, size * size);
  const auto floats = static_cast<int64_t>(plan->ScratchBytes() / sizeof(float));
  const Numbers scratch(device, floats + 1);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(scratch.get()),
                                   plan->ScratchBytes());
  return BestSeconds(device, [&] { plan->Run(a.get(), b.get(), nullptr, c.get(), bytes); });
}

// Returns the time of one pass of y += 0.5 x over `count` elements.
double PassSeconds(const Device& device, int64_t count) {
  const Numbers x(device, count), y(device, count);
  const float* const from = x.get();
  return BestSeconds(device, [&] { Update(device, AddHalf{}, count, y.get(), from); });
}

// The size is doubled until a run takes this long, so that the launch overhead matters little.
constexpr double kLongEnough = 2e-3;
// The first size to measure, and the largest.
struct Sizes {
  int64_t first, most;
};

// Measures seconds_of(size) for doubling sizes. Returns the first size that takes kLongEnough, or
// the largest one, and its seconds.
template <class F>
std::pair<int64_t, double> MeasureLongEnough(Sizes sizes, const F& seconds_of) {
  for (int64_t size = sizes.first;; size *= 2) {
    const double seconds = seconds_of(size);
    if (seconds >= kLongEnough || size >= sizes.most) return {size, seconds};
  }
}

// The CPU multiplies matrices of one size on all machines.
constexpr Sizes kCpuProduct = {1024, 1024}, kGpuProduct = {256, 8192};
constexpr Sizes kGpuPass = {int64_t{1} << 20, int64_t{512} << 20};

// Returns the size of the pass on a CPU. Both arrays together are twice as large as the last-level
// cache, which may have hundreds of MiB, so that the pass reads from memory. They take at most 1
// GiB and an eighth of the memory that the process may use, but at least 128 MiB.
Sizes CpuPass(const Device& device) {
  const auto room = static_cast<int64_t>(FindAvailableMemory(device).bytes / 8);
  const int64_t bytes =
      std::min({2 * int64_t{sysconf(_SC_LEVEL3_CACHE_SIZE)}, int64_t{1} << 30, room});
  const int64_t count = std::max(bytes, int64_t{128} << 20) / (2 * sizeof(float));
  return {count, count};
}

}  // namespace

MachinePeak MeasurePeak(const Device& device) {
  const bool cpu = device.kind() == DeviceKind::kCpu;
  const auto [size, product] = MeasureLongEnough(
      cpu ? kCpuProduct : kGpuProduct, [&](int64_t n) { return ProductSeconds(device, n); });
  const auto [count, pass] = MeasureLongEnough(cpu ? CpuPass(device) : kGpuPass,
                                               [&](int64_t n) { return PassSeconds(device, n); });
  const auto edge = static_cast<double>(size);
  return {2e-9 * edge * edge * edge / product, 12e-9 * static_cast<double>(count) / pass};
}

}  // namespace trainer
