#include "pixel_copy.h"

#include <cstring>

#include "trainer/input/normalize.h"

namespace trainer {
namespace {

// kChannels 0: any number. Each combination is a loop that the compiler can vectorise.
template <class T, int kChannels, bool kMeanImage, bool kMirror>
[[gnu::always_inline]] inline void ConvertRow(const PixelCopy<T>& job, int64_t row) {
  const int64_t channels = kChannels ? kChannels : job.channels;
  const int64_t width = job.width, plane = job.in_plane;
  const T* __restrict in = job.in + row * job.in_row;
  const float* __restrict mean = kMeanImage ? job.mean_image + row * job.in_row : job.mean_values;
  float* __restrict out = job.out + row * width * channels;
  const float scale = job.scale;
  if constexpr (kChannels == 3) {
    const float m0 = kMeanImage ? 0 : mean[0], m1 = kMeanImage ? 0 : mean[job.mean_step];
    const float m2 = kMeanImage ? 0 : mean[2 * job.mean_step];
    for (int64_t w = 0; w < width; ++w) {
      const int64_t from = kMirror ? width - 1 - w : w;
      const float s0 = kMeanImage ? mean[from] : m0;
      const float s1 = kMeanImage ? mean[plane + from] : m1;
      const float s2 = kMeanImage ? mean[2 * plane + from] : m2;
      out[3 * w] = PixelNumber(in[from], s0, scale);
      out[3 * w + 1] = PixelNumber(in[plane + from], s1, scale);
      out[3 * w + 2] = PixelNumber(in[2 * plane + from], s2, scale);
    }
  } else {
    for (int64_t c = 0; c < channels; ++c) {
      const float value = kMeanImage ? 0 : mean[c * job.mean_step];
      for (int64_t w = 0; w < width; ++w) {
        const int64_t from = c * plane + (kMirror ? width - 1 - w : w);
        const float s = kMeanImage ? mean[from] : value;
        out[w * channels + c] = PixelNumber(in[from], s, scale);
      }
    }
  }
}

template <class T, int kChannels, bool kMeanImage, bool kMirror>
[[gnu::always_inline]] inline void ConvertRows(const PixelCopy<T>& job) {
  for (int64_t row = 0; row < job.height; ++row) {
    ConvertRow<T, kChannels, kMeanImage, kMirror>(job, row);
  }
}

template <class T, int kChannels>
[[gnu::always_inline]] inline void ConvertImage(const PixelCopy<T>& job) {
  if (job.mean_image != nullptr) {
    job.mirror ? ConvertRows<T, kChannels, true, true>(job)
               : ConvertRows<T, kChannels, true, false>(job);
  } else {
    job.mirror ? ConvertRows<T, kChannels, false, true>(job)
               : ConvertRows<T, kChannels, false, false>(job);
  }
}

template <class T>
[[gnu::always_inline]] inline void Convert(PixelCopy<T> job) {
  // Whole rows without a gap between them are one long row.
  if (!job.mirror && job.in_row == job.width) {
    job.width *= job.height;
    job.in_row = job.width;
    job.height = 1;
  }
  switch (job.channels) {
    case 1:
      return ConvertImage<T, 1>(job);
    case 3:
      return ConvertImage<T, 3>(job);
    default:
      return ConvertImage<T, 0>(job);
  }
}

template <int kChannels, bool kMirror>
[[gnu::always_inline]] inline void InterleaveRows(const PixelCopy<uint8_t>& job,
                                                  uint8_t* __restrict out) {
  const int64_t channels = kChannels ? kChannels : job.channels, width = job.width;
  for (int64_t row = 0; row < job.height; ++row, out += width * channels) {
    const uint8_t* __restrict in = job.in + row * job.in_row;
    if constexpr (kChannels == 1 && !kMirror) {
      std::memcpy(out, in, static_cast<size_t>(width));
      continue;
    }
    for (int64_t w = 0; w < width; ++w) {
      const int64_t from = kMirror ? width - 1 - w : w;
      for (int64_t c = 0; c < channels; ++c) out[w * channels + c] = in[c * job.in_plane + from];
    }
  }
}

template <int kChannels>
[[gnu::always_inline]] inline void InterleaveImage(const PixelCopy<uint8_t>& job, uint8_t* out) {
  job.mirror ? InterleaveRows<kChannels, true>(job, out)
             : InterleaveRows<kChannels, false>(job, out);
}

[[gnu::always_inline]] inline void Interleave(const PixelCopy<uint8_t>& job, uint8_t* out) {
  switch (job.channels) {
    case 1:
      return InterleaveImage<1>(job, out);
    case 3:
      return InterleaveImage<3>(job, out);
    default:
      return InterleaveImage<0>(job, out);
  }
}

template <class T>
using Function = void (*)(const PixelCopy<T>&);

template <class T>
void ConvertBaseline(const PixelCopy<T>& job) {
  Convert(job);
}

#if defined(__x86_64__) && defined(__GNUC__)
template <class T>
[[gnu::target("avx2")]] void ConvertAvx2(const PixelCopy<T>& job) {
  Convert(job);
}
template <class T>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void ConvertAvx512(
    const PixelCopy<T>& job) {
  Convert(job);
}
// Four times as fast as the baseline for an image of 3 channels.
[[gnu::target("avx2")]] void InterleaveAvx2(const PixelCopy<uint8_t>& job, uint8_t* out) {
  Interleave(job, out);
}
template <class T>
Function<T> Choose() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return ConvertAvx512<T>;
  }
  return __builtin_cpu_supports("avx2") ? ConvertAvx2<T> : ConvertBaseline<T>;
}
#else
template <class T>
Function<T> Choose() {
  return ConvertBaseline<T>;
}
#endif

}  // namespace

void ConvertPixels(const PixelCopy<uint8_t>& job) {
  static const Function<uint8_t> kConvert = Choose<uint8_t>();
  kConvert(job);
}

void ConvertPixels(const PixelCopy<float>& job) {
  static const Function<float> kConvert = Choose<float>();
  kConvert(job);
}

void InterleavePixels(const PixelCopy<uint8_t>& job, uint8_t* out) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool kHasAvx2 = __builtin_cpu_supports("avx2");
  if (kHasAvx2) return InterleaveAvx2(job, out);
#endif
  Interleave(job, out);
}

}  // namespace trainer
