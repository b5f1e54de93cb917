#pragma once
// Element-wise math with a random word per element, written once for both devices.

#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/map.h"
#include "trainer/base/random/philox.h"

namespace trainer {

namespace map_random_internal {

// Generates kBlocks blocks of four random words, one for each lane of a vector of a CPU, and
// processes the 4 * kBlocks elements that use them.
template <int kBlocks, class T, class F>
struct Blocks {
  PhiloxKey key;
  const uint32_t* pass;
  F f;
  const T* x;
  T* y;

  // Processes elements [run, run + 1) * 4 * kBlocks.
  HD void operator()(int64_t run) const {
    uint32_t words[4 * kBlocks];
    const uint32_t now = *pass;
    for (int b = 0; b < kBlocks; ++b) {
      const Philox4 four = PhiloxBlock(key, now, static_cast<uint64_t>(run * kBlocks + b));
      for (int k = 0; k < 4; ++k) words[4 * b + k] = four.x[k];
    }
    const int64_t first = run * 4 * kBlocks;
    for (int i = 0; i < 4 * kBlocks; ++i) Store(y[first + i], f(words[i], Load(x[first + i])));
  }
};

// Processes the elements after the last whole run of a CPU.
template <class T, class F>
struct Tail {
  PhiloxKey key;
  const uint32_t* pass;
  F f;
  const T* x;
  T* y;
  int64_t start;

  // Processes element start + k.
  HD void operator()(int64_t k) const {
    const int64_t i = start + k;
    Store(y[i], f(PhiloxWord(key, *pass, static_cast<uint64_t>(i)), Load(x[i])));
  }
};

inline constexpr int kCpuBlocks = 16;

// Returns f(word i, x) on a GPU, whose compiler sees that four neighbours share a block of words.
template <class F>
struct Drawn {
  PhiloxKey key;
  F f;
  const uint32_t* pass_memory;
  uint32_t pass = 0;

  HD Drawn Prepared() const { return {key, f, pass_memory, *pass_memory}; }
  HD float operator()(int64_t i, float x) const {
    return f(PhiloxWord(key, pass, static_cast<uint64_t>(i)), x);
  }
};

}  // namespace map_random_internal

// Sets y[i] = f(word i, x[i]), where i counts elements in memory order and word i is
// PhiloxWord(key, *pass, i), the same on every device. y may be x. The kernel reads `pass` from
// device memory, so that one captured iteration serves all iterations.
template <class F>
void MapRandom(const Device& device, const PhiloxKey& key, const uint32_t* pass, F f,
               const Tensor& y, const ConstTensor& x) {
  DispatchDtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const int64_t n = x.Count();
    const T* const from = x.As<T>();
    T* const to = y.As<T>();
#ifdef TRAINER_DEVICE_CODE
    if (device.kind() == DeviceKind::kCuda) {
      using Drawn = map_random_internal::Drawn<F>;
      return map_internal::LaunchMap(device, Drawn{key, f, pass}, n, to, from);
    }
#endif
    if constexpr (kHasCpuLoop<T>) {
      constexpr int kBlocks = map_random_internal::kCpuBlocks;
      const int64_t runs = n / (4 * kBlocks), done = runs * 4 * kBlocks;
      ParallelFor(runs, map_random_internal::Blocks<kBlocks, T, F>{key, pass, f, from, to},
                  MinChunk(16 * kBlocks));
      ParallelFor(n - done, map_random_internal::Tail<T, F>{key, pass, f, from, to, done});
    } else {
      RefuseF16();
    }
  });
}

}  // namespace trainer
