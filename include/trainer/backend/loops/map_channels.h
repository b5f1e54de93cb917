#pragma once
// Element-wise math with numbers per channel, such as a factor, where the channels of a tensor are
// neighbours in memory.

#include "trainer/backend/loops/map.h"

namespace trainer {

#ifdef TRAINER_DEVICE_CODE
namespace map_internal {

// K arrays with a number per channel.
template <int K>
struct PerChannel {
  const float* arrays[K];
};

// Returns f(numbers of the channel, in.x[k]...) for four neighbouring channels.
template <int K, class F, class... Ts>
HD Four<float> MapFourNeighbours(const F& f, const PerChannel<K>& numbers, int64_t channels,
                                 const Four<Ts>&... in) {
  Four<float> own[K], values;
#pragma unroll
  for (int a = 0; a < K; ++a) own[a] = ReadFour(numbers.arrays[a], channels);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    values.x[k] = f([&](int a) { return own[a].x[k]; }, Load(in.x[k])...);
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
    const Four<float> values = MapFourNeighbours(f, numbers, at, ReadFour(in, g)...);
    const Four<float> more = MapFourNeighbours(f, numbers, at_other, ReadFour(in, other)...);
    WriteFour(values, out, g);
    if (has_other) WriteFour(more, out, other);
    at = next(at_other);
  }
}

}  // namespace map_internal
#endif

// Sets out[i] = f(number, in[i]...), where number(a) is element i % channels of array a of
// `arrays`, in the way of a GPU: with four channels per thread. Returns false and does nothing if
// the device is a CPU or four channels cannot be read together; the caller then uses another loop.
template <class F, int K, class... Ins>
bool MapFourChannels(const Device& device, F f, int64_t channels, const float* const (&arrays)[K],
                     const Tensor& out, const Ins&... ins) {
  bool done = false;
#ifdef TRAINER_DEVICE_CODE
  const bool fits = channels > 0 && channels % 4 == 0 && channels <= INT32_MAX;
  if (device.kind() != DeviceKind::kCuda || !fits) return false;
  map_internal::PerChannel<K> numbers;
  for (int a = 0; a < K; ++a) {
    numbers.arrays[a] = arrays[a];
    if (map_internal::FoursOf(4, arrays[a]) == 0) return false;
  }
  DispatchDtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const auto run = [&]<class... Ts>(T* to, const Ts*... in) {
      const int64_t fours = map_internal::FoursOf(out.Count(), to, in...);
      if (fours == 0) return;
      Launch(device, map_internal::FourChannelsKernel<K, F, T, Ts...>,
             map_internal::Blocks((fours + 1) / 2), map_internal::kBlock, f, fours, channels / 4,
             numbers, to, in...);
      done = true;
    };
    run(out.template As<T>(), ins.template As<T>()...);
  });
#else
  (void)device, (void)f, (void)channels, (void)arrays, (void)out, ((void)ins, ...);
#endif
  return done;
}

}  // namespace trainer
