#pragma once
// Many sums over the elements of a tensor that is viewed as (outer, channels, inner), one for each
// channel, written once for both devices. A GPU cuts long sums into chunks, each for a block.
//
//   struct Slope {
//     const float *x, *dy;
//     template <class Place> HD float operator()(const Place& p) const {
//       return dy[p.At()] * x[p.At()];
//     }
//   };
//   AddSums(device, ChannelSumsDesc::Of(shape, 1), Slope{x, dy}, sums);

#include <algorithm>
#include <type_traits>

#include "trainer/backend/loops/reduce.h"
#include "trainer/backend/primitives/channel_sums.h"

namespace trainer {

// Returns the functor that computes the terms of one channel: f.OfChannel(channel) if F has that
// function, which may compute in advance the values that these terms share, or else f.
template <class F>
HD auto TermsOfChannel(const F& f, int64_t channel) {
  if constexpr (requires { f.OfChannel(channel); }) {
    return f.OfChannel(channel);
  } else {
    return f;
  }
}

// Element number `term` of the sum of a channel on the CPU.
struct FlatPlace {
  int64_t channel, term, channels, inner;
  // Returns the term's number, from 0 to outer * inner, and its two coordinates.
  HD int64_t Term() const { return term; }
  HD int64_t Outer() const { return term / inner; }
  HD int64_t Inner() const { return term % inner; }
  // Returns the offset in memory of the tensor (outer, channels, inner).
  HD int64_t At() const { return (term / inner * channels + channel) * inner + term % inner; }
};

#ifdef TRAINER_DEVICE_CODE
namespace grouped_sums_internal {

HD int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Returns the functor that computes the terms of one channel from term `begin`, the first one of a
// chunk, on: f.OfChunk(channel, begin) if F has that function, or else what TermsOfChannel returns.
template <class F>
HD auto TermsOfChunk(const F& f, int64_t channel, int64_t begin) {
  if constexpr (requires { f.OfChunk(channel, begin); }) {
    return f.OfChunk(channel, begin);
  } else {
    return TermsOfChannel(f, channel);
  }
}

// The same as FlatPlace, with both coordinates of the term, so that a thread need not divide for
// each of its terms.
struct SplitPlace {
  int64_t channel, outer, at_inner, channels, inner;
  HD int64_t Term() const { return outer * inner + at_inner; }
  HD int64_t Outer() const { return outer; }
  HD int64_t Inner() const { return at_inner; }
  HD int64_t At() const { return (outer * channels + channel) * inner + at_inner; }
};

HD void AddTo(float& to, float value) { to += value; }
HD void AddTo(SumPair& to, const SumPair& value) {
  to.a += value.a;
  to.b += value.b;
}
HD float SumIn(float value, int) { return value; }
HD float SumIn(const SumPair& value, int which) { return which == 0 ? value.a : value.b; }
template <class Sum>
inline constexpr int kSumsIn = sizeof(Sum) / sizeof(float);

// How the terms of each sum are cut. Sum s of chunk k is stored in partials[(k * kSumsIn + s) *
// channels + channel].
struct Cut {
  int64_t channels, terms, inner, chunks, chunk;
};

// Where the sums go: to `partials`, or to one array per sum, which may be null.
struct SumsTo {
  float* partials;
  float* to[2];
  bool add = true;  // false: JoinSumsKernel overwrites the arrays
};

// A block sums one channel of a chunk at a time; its threads take neighbouring terms. A thread
// reads kAhead terms before it adds the first one.
template <class F>
__global__ void __launch_bounds__(map_internal::kBlock)
    LongSumsKernel(F f, Cut in, int64_t step_outer, int64_t step_inner, SumsTo out) {
  using Sum = decltype(TermsOfChunk(f, 0, 0)(SplitPlace()));
  constexpr int kBlock = map_internal::kBlock, kAhead = map_internal::kAhead;
  for (int64_t task = blockIdx.x; task < in.chunks * in.channels; task += gridDim.x) {
    const int64_t chunk = task / in.channels, begin = chunk * in.chunk;
    const int64_t end = Smaller(begin + in.chunk, in.terms);
    int64_t i = begin + threadIdx.x;
    SplitPlace place = {task % in.channels, i / in.inner, i % in.inner, in.channels, in.inner};
    const auto terms = TermsOfChunk(f, place.channel, begin);
    Sum sum = {};
    for (; i < end; i += kAhead * kBlock) {
      Sum ahead[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        // Past the end, the last term is read again and dropped: if reads depended on a condition,
        // a thread would wait for each before the next.
        ahead[k] = terms(place);
        if (i + (k + 1) * kBlock >= end) continue;
        place.outer += step_outer;
        place.at_inner += step_inner;
        if (place.at_inner >= in.inner) {
          place.at_inner -= in.inner;
          ++place.outer;
        }
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) AddTo(sum, i + k * kBlock < end ? ahead[k] : Sum());
    }
#pragma unroll
    for (int s = 0; s < kSumsIn<Sum>; ++s) {
      const float all = reduce_internal::SumOfBlock(SumIn(sum, s));
      if (threadIdx.x == 0 && out.partials != nullptr) {
        out.partials[(chunk * kSumsIn<Sum> + s) * in.channels + place.channel] = all;
      } else if (threadIdx.x == 0 && out.to[s] != nullptr) {
        out.to[s][place.channel] += all;
      }
      __syncthreads();
    }
  }
}

inline constexpr int kTileChannels = 32, kTileTerms = 8;

// For inner == 1: a block sums kTileChannels neighbouring channels of a chunk at a time, as these
// are neighbours in memory.
template <class F>
__global__ void __launch_bounds__(map_internal::kBlock)
    NeighbourSumsKernel(F f, Cut in, SumsTo out) {
  using Sum = decltype(TermsOfChannel(f, 0)(SplitPlace()));
  constexpr int kSums = kSumsIn<Sum>, kAhead = map_internal::kAhead;
  __shared__ float parts[kSums][kTileTerms][kTileChannels + 1];
  const int64_t groups = (in.channels + kTileChannels - 1) / kTileChannels;
  for (int64_t tile = blockIdx.x; tile < in.chunks * groups; tile += gridDim.x) {
    const int64_t chunk = tile / groups, c = tile % groups * kTileChannels + threadIdx.x;
    const int64_t begin = chunk * in.chunk, end = Smaller(begin + in.chunk, in.terms);
    Sum sum = {};
    if (c < in.channels) {
      const auto terms = TermsOfChannel(f, c);
      for (int64_t i = begin + threadIdx.y; i < end; i += kAhead * kTileTerms) {
        Sum ahead[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          const int64_t term = i + k * kTileTerms;  // past the end: see LongSumsKernel
          ahead[k] = terms(SplitPlace{c, term < end ? term : i, 0, in.channels, 1});
        }
#pragma unroll
        for (int k = 0; k < kAhead; ++k) AddTo(sum, i + k * kTileTerms < end ? ahead[k] : Sum());
      }
    }
#pragma unroll
    for (int s = 0; s < kSums; ++s) parts[s][threadIdx.y][threadIdx.x] = SumIn(sum, s);
    __syncthreads();
    if (threadIdx.y < kSums && c < in.channels) {
      const unsigned s = threadIdx.y;
      float all = 0;
      for (int y = 0; y < kTileTerms; ++y) all += parts[s][y][threadIdx.x];
      if (out.partials != nullptr) {
        out.partials[(chunk * kSums + s) * in.channels + c] = all;
      } else if (float* const to = s == 0 ? out.to[0] : out.to[1]; to != nullptr) {
        to[c] += all;
      }
    }
    __syncthreads();
  }
}

// A warp adds the chunks of one sum of one channel.
template <int kSums>
__global__ void __launch_bounds__(map_internal::kBlock)
    JoinSumsKernel(const float* partials, int64_t channels, int64_t chunks, SumsTo out) {
  const int64_t warps = int64_t{gridDim.x} * blockDim.x / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32; i < kSums * channels;
       i += warps) {
    double sum = 0;
    for (int64_t k = lane; k < chunks; k += 32) sum += partials[k * kSums * channels + i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    float* const to = i < channels ? out.to[0] : out.to[1];
    if (lane != 0 || to == nullptr) continue;
    to[i % channels] = (out.add ? to[i % channels] : 0.0f) + static_cast<float>(sum);
  }
}

// Cuts the sums for a GPU: into so many chunks that there are about kWantedBlocks blocks, of at
// least 1024 terms for a block, and so that their sums fit the device's ReductionScratch.
inline Cut CutSums(const ChannelSumsDesc& desc, int64_t sums) {
  constexpr int64_t kWantedBlocks = 2048;
  const bool neighbours = desc.inner == 1;
  const int64_t tile = neighbours ? kTileChannels : 1, terms = desc.outer * desc.inner;
  const int64_t tasks = (desc.channels + tile - 1) / tile;
  const int64_t wanted = std::min({(kWantedBlocks + tasks - 1) / tasks, terms * tile / 1024,
                                   Device::kReductionScratch / (sums * desc.channels)});
  const int64_t size = (terms + std::max<int64_t>(1, wanted) - 1) / std::max<int64_t>(1, wanted);
  return {desc.channels, terms, desc.inner, (terms + size - 1) / size, size};
}

// Returns the number of blocks for that many tasks of a block.
inline unsigned BlocksFor(int64_t tasks) {
  return static_cast<unsigned>(std::min<int64_t>(tasks, 1 << 16));
}

template <class F>
void LaunchLongSums(const Device& device, const F& f, const Cut& in, const SumsTo& out) {
  Launch(device, LongSumsKernel<F>, BlocksFor(in.chunks * in.channels), map_internal::kBlock, f, in,
         map_internal::kBlock / in.inner, map_internal::kBlock % in.inner, out);
}

// Implements AddSums and AddSumPairs on a GPU.
template <class F>
void AddOnGpu(const Device& device, const ChannelSumsDesc& desc, F f, float* a, float* b) {
  constexpr int kSums = kSumsIn<decltype(TermsOfChannel(f, 0)(SplitPlace()))>;
  const Cut in = CutSums(desc, kSums);
  SumsTo out = {in.chunks > 1 ? device.ReductionScratch() : nullptr, {a, b}};
  if (desc.inner == 1) {
    const int64_t groups = (in.channels + kTileChannels - 1) / kTileChannels;
    Launch(device, NeighbourSumsKernel<F>, BlocksFor(in.chunks * groups),
           dim3(kTileChannels, kTileTerms), f, in, out);
  } else {
    LaunchLongSums(device, f, in, out);
  }
  if (in.chunks == 1) return;
  Launch(device, JoinSumsKernel<kSums>, map_internal::Blocks(kSums * in.channels * 32),
         map_internal::kBlock, out.partials, in.channels, in.chunks, out);
}

}  // namespace grouped_sums_internal
#endif

namespace grouped_sums_internal {

// Adds the sum of one channel per row.
template <class F>
struct SumOfChannel {
  F f;
  int64_t channels, inner;
  float* to;
  template <class Row>
  HD void operator()(const Row& row) const {
    const auto terms = TermsOfChannel(f, row.index);
    const float sum = row.Sum([&](int64_t i) {
      return terms(FlatPlace{row.index, i, channels, inner});
    });
    row.Once([&] { to[row.index] += sum; });
  }
};

// Adds the two sums of kChannels neighbouring channels. Contiguous is std::true_type if inner is 1,
// so that channels are neighbours in memory and their loop can be vectorised.
template <class F, class Contiguous>
struct PairsOfChannels {
  static constexpr int kChannels = 16;
  F f;
  ChannelSumsDesc desc;
  float *a, *b;

  HD void operator()(int64_t task) const {
    const int64_t first = task * kChannels, left = desc.channels - first;
    if (left >= kChannels) return Sum(first, std::integral_constant<int, kChannels>());
    Sum(first, static_cast<int>(left));
  }

 private:
  // Adds the sums of `count` channels. Compilers keep the sums in registers if Count is a constant.
  template <class Count>
  HD void Sum(int64_t first, Count count) const {
    const int64_t inner = Contiguous::value ? 1 : desc.inner, terms = desc.outer * inner;
    float sum_a[kChannels] = {}, sum_b[kChannels] = {};
    for (int64_t i = 0; i < terms; ++i) {
      for (int c = 0; c < count; ++c) {
        const SumPair term = f(FlatPlace{first + c, i, desc.channels, inner});
        sum_a[c] += term.a;
        sum_b[c] += term.b;
      }
    }
    for (int c = 0; c < count; ++c) {
      if (a != nullptr) a[first + c] += sum_a[c];
      if (b != nullptr) b[first + c] += sum_b[c];
    }
  }
};

}  // namespace grouped_sums_internal

// Adds to to[channel] the sum of f(place) over the channel's elements; `place` has the functions of
// FlatPlace. `to` is on the device. The order of the additions depends only on `desc` and the kind
// of device.
template <class F>
void AddSums(const Device& device, const ChannelSumsDesc& desc, F f, float* to) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (desc.outer * desc.channels * desc.inner == 0) return;
    return grouped_sums_internal::AddOnGpu(device, desc, f, to, nullptr);
  }
#endif
  (void)device;
  if constexpr (kHasCpuLoop<F>) {
    CpuRows(desc.channels, desc.outer * desc.inner,
            grouped_sums_internal::SumOfChannel<F>{f, desc.channels, desc.inner, to});
  } else {
    RefuseF16();
  }
}

// Adds to a[channel] and b[channel] the sums of the two numbers that f(place) returns, a SumPair.
// Either array may be null.
template <class F>
void AddSumPairs(const Device& device, const ChannelSumsDesc& desc, F f, float* a, float* b) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (desc.outer * desc.channels * desc.inner == 0) return;
    return grouped_sums_internal::AddOnGpu(device, desc, f, a, b);
  }
#endif
  (void)device;
  if constexpr (kHasCpuLoop<F>) {
    const auto add = [&](auto contiguous) {
      using Task = grouped_sums_internal::PairsOfChannels<F, decltype(contiguous)>;
      ParallelFor((desc.channels + Task::kChannels - 1) / Task::kChannels, Task{f, desc, a, b},
                  MinChunk(desc.outer * desc.inner * Task::kChannels));
    };
    desc.inner == 1 ? add(std::true_type{}) : add(std::false_type{});
  } else {
    RefuseF16();
  }
}

}  // namespace trainer
