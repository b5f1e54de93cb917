#pragma once
// Which elements a Dropout drops: a function of (seed, layer, pass, element), so that nothing is
// stored and a ReLU in front can apply it in its own pass.

#include <cmath>

#include "trainer/backend/map.h"
#include "trainer/layers/layer.h"

namespace trainer {

struct DropMask {
  PhiloxKey key;
  uint32_t pass, threshold;  // an element stays where its random word reaches `threshold`
  float scale;               // of what stays

  // `run` is the Dropout's own context.
  DropMask(const caffe::DropoutParameter& param, const RunContext& run)
      : key(run.key()),
        pass(run.pass()),
        threshold(static_cast<uint32_t>(std::lround(param.dropout_ratio() * 0x1p31) * 2)),
        scale(1 / (1 - param.dropout_ratio())) {
    if (param.random_seed() >= 0) key.seed = static_cast<uint64_t>(param.random_seed());
  }
};

namespace drop_mask_internal {

// kBlocks blocks of four random words, and the elements that they decide about.
template <int kBlocks, class T, class F>
struct DropRun {
  DropMask mask;
  F f;
  const T* x;
  T* y;

  HD void operator()(int64_t run) const {
    uint32_t words[4 * kBlocks];
    for (int b = 0; b < kBlocks; ++b) {
      const Philox4 four =
          PhiloxBlock(mask.key, mask.pass, static_cast<uint64_t>(run * kBlocks + b));
      for (int k = 0; k < 4; ++k) words[4 * b + k] = four.x[k];
    }
    const int64_t first = run * 4 * kBlocks;
    for (int i = 0; i < 4 * kBlocks; ++i) {
      const float kept = f(Load(x[first + i])) * mask.scale;
      Store(y[first + i], words[i] >= mask.threshold ? kept : 0.0f);
    }
  }
};

// The elements after the last whole run.
template <class T, class F>
struct DropTail {
  DropMask mask;
  F f;
  const T* x;
  T* y;
  int64_t start;

  HD void operator()(int64_t k) const {
    const int64_t i = start + k;
    const uint32_t word = PhiloxWord(mask.key, mask.pass, static_cast<uint64_t>(i));
    Store(y[i], word >= mask.threshold ? f(Load(x[i])) * mask.scale : 0.0f);
  }
};

template <int kBlocks, class T, class F>
void DropWith(const Device& device, const DropMask& mask, F f, const T* x, T* y, int64_t n) {
  const int64_t runs = n / (4 * kBlocks);
  const int64_t start = runs * 4 * kBlocks;
  const DropRun<kBlocks, T, F> run{mask, f, x, y};
  if (device.kind() == DeviceKind::kCpu) {
    ParallelFor(runs, run, parallel_for_internal::kGrain / (16 * kBlocks));
  } else {
    ForEach(device, runs, run);
  }
  ForEach(device, n - start, DropTail<T, F>{mask, f, x, y, start});
}

}  // namespace drop_mask_internal

// y = f(x) * scale where the element stays, else 0. On the CPU sixteen blocks of random words are
// made at a time, one per place of a vector.
template <class F>
void Drop(const Device& device, const DropMask& mask, F f, const ConstTensor& x, const Tensor& y) {
  WithType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    if (device.kind() == DeviceKind::kCpu) {
      drop_mask_internal::DropWith<16>(device, mask, f, x.As<T>(), y.As<T>(), x.Count());
    } else {
      drop_mask_internal::DropWith<1>(device, mask, f, x.As<T>(), y.As<T>(), x.Count());
    }
  });
}

}  // namespace trainer
