#include "trainer/backend/peak.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "trainer/backend/parallel_for.h"

namespace trainer {
namespace {

// Memory that is given back.
class Numbers {
 public:
  Numbers(const Device& device, int64_t count)
      : device_(device),
        at_(static_cast<float*>(device.Allocate(static_cast<size_t>(count) * sizeof(float)))) {
    float* const at = at_;
    ParallelFor(count, [=](int64_t i) { at[i] = 1; });
  }
  ~Numbers() { device_.Free(at_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  float* get() const { return at_; }

 private:
  const Device& device_;
  float* at_;
};

// Of the fastest of `runs` runs, after one that does not count.
template <class F>
double BestSeconds(int runs, const F& run) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  for (int i = 0; i <= runs; ++i) {
    const auto start = Clock::now();
    run();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (i > 0) best = std::min(best, seconds);
  }
  return best;
}

double MeasureProducts(const Device& device) {
  constexpr int64_t kSize = 1024;
  const auto plan = device.MakeGemm({.m = kSize, .n = kSize, .k = kSize});
  const Numbers a(device, kSize * kSize), b(device, kSize * kSize), c(device, kSize * kSize);
  const auto floats = static_cast<int64_t>(plan->ScratchBytes() / sizeof(float));
  const Numbers scratch(device, floats + 1);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(scratch.get()),
                                   plan->ScratchBytes());
  const double seconds =
      BestSeconds(5, [&] { plan->Run(a.get(), b.get(), nullptr, c.get(), bytes); });
  return 2e-9 * kSize * kSize * kSize / seconds;
}

double MeasureMemory(const Device& device) {
  constexpr int64_t kCount = 16 << 20;
  const Numbers x_numbers(device, kCount), y_numbers(device, kCount);
  const float* const x = x_numbers.get();
  float* const y = y_numbers.get();
  const double seconds =
      BestSeconds(5, [&] { ParallelFor(kCount, [=](int64_t i) { y[i] += 0.5f * x[i]; }); });
  return 12e-9 * kCount / seconds;
}

}  // namespace

MachinePeak MeasurePeak(const Device& device) {
  return {MeasureProducts(device), MeasureMemory(device)};
}

}  // namespace trainer
