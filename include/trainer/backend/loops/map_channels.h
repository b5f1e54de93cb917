#pragma once
// Element-wise math with numbers that repeat over a tensor, such as a factor per channel.

#include <span>

#include "trainer/backend/loops/map.h"

namespace trainer {

#ifdef TRAINER_DEVICE_CODE
namespace map_internal {

// K arrays with a number per channel.
template <int K>
struct PerChannel {
  const float* arrays[K];
};

// Returns f(numbers of the channel, in[k]...) for four neighbouring channels.
template <int K, class F, class... Ts>
HD Four<float> MapFourNeighbours(const F& f, const PerChannel<K>& numbers, int64_t channels,
                                 const Four<Ts>&... in) {
  Four<float> own[K], values;
#pragma unroll
  for (int a = 0; a < K; ++a) own[a] = LoadVector<4>(numbers.arrays[a], 4 * channels);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    values.values[k] = f([&](int a) { return own[a][k]; }, Load(in[k])...);
  }
  return values;
}

// Sets out[i] = f(numbers of channel i % (4 * row), in[i]...) for `fours` groups of four
// neighbours, two groups at a time. A thread divides once to find its first channel.
template <int K, class F, class T, class... Ts>
__global__ void __launch_bounds__(kBlock)
    FourChannelsKernel(F f, int64_t fours, uint32_t row, PerChannel<K> numbers, T* out,
                       const Ts*... in) {
  const uint32_t step = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t advance = step % row;
  const auto next = [=](uint32_t at) { return at + advance - (at + advance < row ? 0 : row); };
  uint32_t at = thread % row;  // counts groups of channels
  for (int64_t g = thread; g < fours; g += 2 * int64_t{step}) {
    const bool has_other = g + step < fours;
    const int64_t other = has_other ? g + step : g;
    const uint32_t at_other = next(at);
    const Four<float> values = MapFourNeighbours(f, numbers, at, LoadVector<4>(in, 4 * g)...);
    const Four<float> more =
        MapFourNeighbours(f, numbers, at_other, LoadVector<4>(in, 4 * other)...);
    StoreVector(values.values, out, 4 * g);
    if (has_other) StoreVector(more.values, out, 4 * other);
    at = next(at_other);
  }
}

// An index in memory as D digits: index = digit 0 + length 0 * (digit 1 + ...). The index of the
// element's number is the sum of digit * stride.
template <int D>
struct Digits {
  uint32_t length[D], stride[D];
};

// The digits of an index. A sum that exceeds the last digit wraps.
template <int D>
struct DigitsOf {
  uint32_t digit[D];

  __device__ DigitsOf(const Digits<D>& in, uint32_t index) {
#pragma unroll
    for (int d = 0; d < D; ++d) {
      digit[d] = index % in.length[d];
      index /= in.length[d];
    }
  }
  __device__ void Add(const Digits<D>& in, const DigitsOf& other) {
    uint32_t carry = 0;
#pragma unroll
    for (int d = 0; d < D; ++d) {
      digit[d] += other.digit[d] + carry;
      carry = digit[d] >= in.length[d] ? 1 : 0;
      digit[d] -= carry != 0 ? in.length[d] : 0;
    }
  }
  __device__ uint32_t Number(const Digits<D>& in) const {
    uint32_t number = 0;
#pragma unroll
    for (int d = 0; d < D; ++d) number += digit[d] * in.stride[d];
    return number;
  }
};

// Sets out[i] = f(numbers of element i, in[i]...) for i of [0, n). A thread reads kAhead elements
// before it writes any, and divides only to find the digits of the first one.
template <int K, int D, class F, class T, class... Ts>
__global__ void __launch_bounds__(kBlock)
    RepeatedKernel(F f, int64_t n, Digits<D> digits, PerChannel<K> numbers, T* out,
                   const Ts*... in) {
  const uint32_t step = gridDim.x * blockDim.x, thread = blockIdx.x * blockDim.x + threadIdx.x;
  const DigitsOf<D> advance(digits, step);
  DigitsOf<D> at(digits, thread);
  for (int64_t first = thread; first < n; first += kAhead * int64_t{step}) {
    float values[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      // The value of an element past the end is dropped. If the reads depended on a condition, a
      // thread would wait for each before the next.
      const int64_t i = first + k * int64_t{step}, read = i < n ? i : first;
      const uint32_t number = at.Number(digits);
      values[k] = f([&](int a) { return numbers.arrays[a][number]; }, Load(in[read])...);
      at.Add(digits, advance);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const int64_t i = first + k * int64_t{step};
      if (i < n) Store(out[i], values[k]);
    }
  }
}

inline constexpr size_t kMostDigits = 8;

// Returns whether Digits<kMostDigits> can hold these digits, and its numbers do not overflow.
inline bool FitsDigits(std::span<const int64_t> length, std::span<const int64_t> stride) {
  int64_t last = 0;
  for (size_t d = 0; d < length.size(); ++d) {
    if (length[d] > INT32_MAX || stride[d] > INT32_MAX) return false;
    last += length[d] * stride[d];
    if (last > INT32_MAX) return false;
  }
  return length.size() <= kMostDigits;
}

// Launches RepeatedKernel with D digits. Digits beyond `length` have length 1, so they stay 0.
template <int D, int K, class F, class... Ins>
void MapDigits(const Device& device, F f, std::span<const int64_t> length,
               std::span<const int64_t> stride, const PerChannel<K>& numbers, const Tensor& out,
               const Ins&... ins) {
  Digits<D> digits;
  for (int d = 0; d < D; ++d) {
    const bool is_used = static_cast<size_t>(d) < length.size();
    digits.length[d] = is_used ? static_cast<uint32_t>(length[static_cast<size_t>(d)]) : 1;
    digits.stride[d] = is_used ? static_cast<uint32_t>(stride[static_cast<size_t>(d)]) : 0;
  }
  const int64_t n = out.Count();
  DispatchDtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const auto run = [&]<class... Ts>(T* to, const Ts*... in) {
      Launch(device, RepeatedKernel<K, D, F, T, Ts...>, Blocks((n + kAhead - 1) / kAhead), kBlock,
             f, n, digits, numbers, to, in...);
    };
    run(out.template As<T>(), ins.template As<T>()...);
  });
}

// Sets out[i] = f(number, in[i]...), where number(a) is element i % channels of array a, with four
// channels per thread. Returns false and does nothing if
// four channels cannot be read together.
template <int K, class F, class... Ins>
bool MapFourChannels(const Device& device, F f, int64_t channels, const PerChannel<K>& numbers,
                     const Tensor& out, const Ins&... ins) {
  if (channels == 0 || channels % 4 != 0 || channels > INT32_MAX) return false;
  for (const float* const array : numbers.arrays) {
    if (FoursOf(4, array) == 0) return false;
  }
  bool done = false;
  DispatchDtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const auto run = [&]<class... Ts>(T* to, const Ts*... in) {
      const int64_t fours = FoursOf(out.Count(), to, in...);
      if (fours == 0) return;
      Launch(device, FourChannelsKernel<K, F, T, Ts...>, Blocks((fours + 1) / 2), kBlock, f, fours,
             channels / 4, numbers, to, in...);
      done = true;
    };
    run(out.template As<T>(), ins.template As<T>()...);
  });
  return done;
}

}  // namespace map_internal
#endif

// Sets out[i] = f(number, in[i]...) in the way of a GPU, where number(a) is an element of array a
// of `arrays`. Its index is the sum of digit * stride, with i = digit 0 + length 0 * (digit 1 +
// ...). `out` may be one of the inputs. Returns false and does nothing if the device is a CPU, or
// for more than 8 digits or indices of more than 31 bits; the caller then uses another loop.
template <class F, int K, class... Ins>
bool MapRepeated(const Device& device, F f, std::span<const int64_t> length,
                 std::span<const int64_t> stride, const float* const (&arrays)[K],
                 const Tensor& out, const Ins&... ins) {
#ifdef TRAINER_DEVICE_CODE
  // A first digit of length 1 is always 0. A last digit that selects no number may be left out,
  // because a sum of digits wraps.
  while (length.size() > 1 && length[0] == 1) {
    length = length.subspan(1);
    stride = stride.subspan(1);
  }
  while (length.size() > 1 && stride[length.size() - 1] == 0) {
    length = length.first(length.size() - 1);
  }
  if (device.kind() != DeviceKind::kCuda || !map_internal::FitsDigits(length, stride)) return false;
  if (out.Count() == 0) return true;
  map_internal::PerChannel<K> numbers;
  std::ranges::copy(arrays, numbers.arrays);
  const auto run = [&](auto digits) {
    map_internal::MapDigits<decltype(digits)::value>(device, f, length, stride, numbers, out,
                                                     ins...);
  };
  if (length.size() == 1 && stride[0] == 1 &&
      map_internal::MapFourChannels(device, f, length[0], numbers, out, ins...)) {
    return true;
  }
  // There are not more variants because each is a kernel.
  length.size() <= 2 ? run(std::integral_constant<int, 2>())
                     : run(std::integral_constant<int, map_internal::kMostDigits>());
  return true;
#else
  (void)device, (void)f, (void)length, (void)stride, (void)arrays, (void)out, ((void)ins, ...);
  return false;
#endif
}

}  // namespace trainer
