#pragma once
// The passes of a BatchNorm over its tensors, one functor each; x, y and their gradients are stored
// as T. Including the fused layers, they compute
//   z = (x - mean) / sqrt(variance + eps);  y = max(0, z * scale + shift + other)
// where scale, shift, `other` and the maximum with 0 are each optional.
//
// X and C are the types with which a functor holds its tensors and its per-channel arrays:
// pointers, or the values of V neighbouring channels. Read<V>(place) loads the values and returns a
// functor that holds them, which is called with 0 to V - 1 instead of offsets. All addresses that
// are OR-ed in Addresses() must be aligned to V elements.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "batch_norm_moments.h"
#include "trainer/backend/loops/pixel_chunks.h"
#include "trainer/backend/loops/vector_access.h"
#include "trainer/backend/primitives/channel_sums.h"

namespace trainer {

// Returns the bytes for mean, inverse and factor of each channel.
inline size_t BatchNormWorkspace(const PixelChunks& in) {
  return 3 * static_cast<size_t>(in.rows.length) * sizeof(float);
}
// Returns the bytes for two means per channel, then two sums per channel of each chunk.
inline size_t BatchNormScratch(const PixelChunks& in) {
  return 2 * static_cast<size_t>((in.chunks + 1) * in.rows.length) * sizeof(float);
}

// Cuts a tensor for per-channel sums on a GPU: into enough pieces of work for any GPU, each a chunk
// of kChannelsOfBlock neighbouring channels.
inline PixelChunks GpuChunks(const Shape& shape) {
  PixelChunks in = BalancedChunks(shape);
  if (in.rows.inner != 1) return in;
  constexpr int64_t kChannelsOfBlock = 128, kPieces = 1024, kMinRows = 64;
  const int64_t across =
      std::max<int64_t>(1, (in.rows.length + kChannelsOfBlock - 1) / kChannelsOfBlock);
  const int64_t wish = (kPieces + across - 1) / across;
  in.chunk_rows = std::max(kMinRows, (in.rows.count + wish - 1) / wish);
  in.chunks = std::max<int64_t>(1, (in.rows.count + in.chunk_rows - 1) / in.chunk_rows);
  return in;
}

// The scale and shift of each channel; null if there is none.
struct ChannelAffine {
  const float *scale = nullptr, *shift = nullptr;

  HD float Scale(int64_t c) const { return scale == nullptr ? 1.0f : scale[c]; }
  HD float Shift(int64_t c) const { return shift == nullptr ? 0.0f : shift[c]; }
};

// The terms of the sums of d and d^2, where d is the distance from the chunk's first pixel. The
// squared values are then as small as the deviations, so that the difference of the sums keeps its
// digits.
template <class T, class X = const T*>
struct Deviations {
  X x, origin;  // both point to the same array
  HD SumPair operator()(int64_t at, int64_t first, int64_t) const {
    const float d = Load(x[at]) - Load(origin[first]);
    return {d, d * d};
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return Deviations<T, Neighbours<T, V>>{LoadVector<V>(x, p.at), LoadVector<V>(origin, p.first)};
  }
  uintptr_t Addresses() const { return AddressOf(x); }
};

// Computes the means of both sums over all pixels, and adds the sums to add_a and add_b unless
// these are null.
struct MeansOfChunks {
  const float* sums;
  PixelChunks in;
  float *a, *b;
  float *add_a, *add_b;

  struct Part {
    double a = 0, b = 0;

    HD void Add(const Part& other) {
      a += other.a;
      b += other.b;
    }
  };
  // Returns the sums of channel c over chunk k.
  HD Part OfChunk(int64_t k, int64_t c) const {
    const int64_t channels = in.rows.length;
    return {sums[2 * k * channels + c], sums[(2 * k + 1) * channels + c]};
  }
  // Stores the means of channel c over all pixels.
  HD void Finish(int64_t c, const Part& all) const {
    const auto pixels = static_cast<double>(in.rows.count);
    a[c] = static_cast<float>(all.a / pixels);
    b[c] = static_cast<float>(all.b / pixels);
    const auto count = static_cast<float>(in.rows.count);
    if (add_a != nullptr) add_a[c] += a[c] * count;
    if (add_b != nullptr) add_b[c] += b[c] * count;
  }
};

// Sets inverse = 1 / sqrt(variance + eps) and factor = scale * inverse. `inverse` holds the
// variance before.
struct FactorOf {
  float* inverse;
  float eps;
  ChannelAffine affine;
  float* factor;
  HD void operator()(int64_t c) const {
    InverseRoot{inverse, eps}(c);
    factor[c] = inverse[c] * affine.Scale(c);
  }
};

// Computes y from x. kRelu: negative numbers become 0.
template <class T, bool kRelu, class X = const T*, class C = const float*>
struct Normalize {
  X x;
  C mean, factor, shift;  // shift is null if there is none

  // Returns y before the ReLU.
  HD float Value(int64_t at, int64_t c) const {
    return PlusIfThere((Load(x[at]) - mean[c]) * factor[c], shift, c);
  }
  HD float operator()(int64_t at, int64_t c) const {
    const float v = Value(at, c);
    return kRelu && v <= 0 ? 0.0f : v;
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return Normalize<T, kRelu, Neighbours<T, V>, Neighbours<float, V>>{
        LoadVector<V>(x, p.at), LoadVector<V>(mean, p.c), LoadVector<V>(factor, p.c),
        ReadEach<V>(shift, p.c)};
  }
  uintptr_t Addresses() const { return AddressOf(x) | AddressOf(mean) | AddressOf(factor); }
};
// Computes y from x and `other`.
template <class T, bool kRelu, class N = Normalize<T, false>, class X = const T*>
struct NormalizeAndAdd {
  N normalize;
  X other;
  HD float operator()(int64_t at, int64_t c) const {
    const float v = normalize.Value(at, c) + Load(other[at]);
    return kRelu && v <= 0 ? 0.0f : v;
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return NormalizeAndAdd<T, kRelu, ReadBy<N, V>, Neighbours<T, V>>{normalize.template Read<V>(p),
                                                                     LoadVector<V>(other, p.at)};
  }
  uintptr_t Addresses() const { return normalize.Addresses() | AddressOf(other); }
};

// Returns `x` if `keep`, else 0. g++ would load an x in memory only where `keep` holds. With AVX2
// that is a masked load, which makes a loop that reads large arrays three times as slow, so the CPU
// keeps or clears the bits instead.
HD float KeepIf(bool keep, float x) {
#ifdef __CUDA_ARCH__
  return keep ? x : 0.0f;
#else
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & (keep ? 0xffffffffu : 0u));
#endif
}

// g, the gradient of z * scale + shift [+ other]: without a ReLU it is dy.
template <class T, class X = const T*>
struct PlainGradient {
  X dy;
  HD float operator()(int64_t at, int64_t) const { return Load(dy[at]); }
  template <int V>
  HD auto Read(const Place& p) const {
    return PlainGradient<T, Neighbours<T, V>>{LoadVector<V>(dy, p.at)};
  }
  uintptr_t Addresses() const { return AddressOf(dy); }
};
// g with a ReLU: dy where y > 0, else 0.
template <class T, class X = const T*>
struct MaskedByOutput {  // reads the mask from y
  X dy, y;
  HD float operator()(int64_t at, int64_t) const { return KeepIf(Load(y[at]) > 0, Load(dy[at])); }
  template <int V>
  HD auto Read(const Place& p) const {
    return MaskedByOutput<T, Neighbours<T, V>>{LoadVector<V>(dy, p.at), LoadVector<V>(y, p.at)};
  }
  uintptr_t Addresses() const { return AddressOf(dy) | AddressOf(y); }
};
// g with a ReLU where y must not be read: y is computed from x with the arithmetic of forward, so
// that the mask is exactly the same.
template <class T, class N = Normalize<T, false>, class X = const T*>
struct MaskedByInput {  // computes y from x again for the mask
  X dy;
  N normalize;
  HD float operator()(int64_t at, int64_t c) const {
    return KeepIf(normalize.Value(at, c) > 0, Load(dy[at]));
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return MaskedByInput<T, ReadBy<N, V>, Neighbours<T, V>>{LoadVector<V>(dy, p.at),
                                                            normalize.template Read<V>(p)};
  }
  uintptr_t Addresses() const { return AddressOf(dy) | normalize.Addresses(); }
};
// Computes g and stores the result in `to`. `to` may be the array of dy that g reads, because
// applying g to its own result gives the same result.
template <class T, class G>
struct WrittenThrough {
  G g;
  T* to;
  HD float operator()(int64_t at, int64_t c) const {
    Store(to[at], g(at, c));
    return Load(to[at]);
  }
  template <int V>
  HD auto Read(const Place& p) const {
    return WrittenTogether<T, V, ReadBy<G, V>>{g.template Read<V>(p), to + p.at};
  }
  uintptr_t Addresses() const { return g.Addresses() | AddressOf(to); }
};

// z, read from the output, where y = z.
template <class T, class X = const T*>
struct NormalFromOutput {
  X y;
  HD float operator()(int64_t at, int64_t) const { return Load(y[at]); }
  template <int V>
  HD auto Read(const Place& p) const {
    return NormalFromOutput<T, Neighbours<T, V>>{LoadVector<V>(y, p.at)};
  }
  uintptr_t Addresses() const { return AddressOf(y); }
};
// z, computed from x.
template <class T, class X = const T*, class C = const float*>
struct NormalFromInput {
  X x;
  C mean, inverse;
  HD float operator()(int64_t at, int64_t c) const { return (Load(x[at]) - mean[c]) * inverse[c]; }
  template <int V>
  HD auto Read(const Place& p) const {
    return NormalFromInput<T, Neighbours<T, V>, Neighbours<float, V>>{
        LoadVector<V>(x, p.at), LoadVector<V>(mean, p.c), LoadVector<V>(inverse, p.c)};
  }
  uintptr_t Addresses() const { return AddressOf(x) | AddressOf(mean) | AddressOf(inverse); }
};

// Returns the functor within g that has read x and the mean of its neighbours, or NoInput.
struct NoInput {};
template <class G>
HD NoInput InputWithin(const G&) {
  return {};
}
template <class T, bool kRelu, class X, class C>
HD const Normalize<T, kRelu, X, C>& InputWithin(const Normalize<T, kRelu, X, C>& normalize) {
  return normalize;
}
template <class T, bool kRelu, class N, class X>
HD decltype(auto) InputWithin(const NormalizeAndAdd<T, kRelu, N, X>& sum) {
  return InputWithin(sum.normalize);
}
template <class T, class N, class X>
HD decltype(auto) InputWithin(const MaskedByInput<T, N, X>& masked) {
  return InputWithin(masked.normalize);
}
template <class T, int V, class G>
HD decltype(auto) InputWithin(const WrittenTogether<T, V, G>& written) {
  return InputWithin(written.g);
}

// Returns z.Read<V>(p), but takes x and the mean from g if g has read them: both functors have the
// same arrays, which a compiler cannot know. It would read them twice and keep both in registers.
template <int V, class Z, class G>
HD ReadBy<Z, V> ReadAfter(const Z& z, const Place& p, const G& g) {
  constexpr bool kHasInput =
      !std::is_same_v<std::remove_cvref_t<decltype(InputWithin(g))>, NoInput>;
  if constexpr (kHasInput && requires { z.inverse; }) {
    const auto& input = InputWithin(g);
    return {input.x, input.mean, LoadVector<V>(z.inverse, p.c)};
  } else {
    return z.template Read<V>(p);
  }
}

// The terms of the sums of g and g * z.
template <class G, class Z>
struct GradientSums {
  G g;
  Z z;
  HD SumPair operator()(int64_t at, int64_t, int64_t c) const {
    const float v = g(at, c);
    return {v, v * z(at, c)};
  }
  template <int V>
  HD auto Read(const Place& p) const {
    const auto read = g.template Read<V>(p);
    return GradientSums<ReadBy<G, V>, ReadBy<Z, V>>{read, ReadAfter<V>(z, p, read)};
  }
  HD void Write() { WriteWhereThatIsDue(g); }
  uintptr_t Addresses() const { return g.Addresses() | z.Addresses(); }
};

// Computes dx = (g - mean g - z * mean (g * z)) * scale / sqrt(variance + eps).
template <class G, class Z, class C = const float*>
struct InputGradient {
  G g;
  Z z;
  C factor, mean_g, mean_gz;
  HD float operator()(int64_t at, int64_t c) const {
    return (g(at, c) - mean_g[c] - z(at, c) * mean_gz[c]) * factor[c];
  }
  template <int V>
  HD auto Read(const Place& p) const {
    const auto read = g.template Read<V>(p);
    return InputGradient<ReadBy<G, V>, ReadBy<Z, V>, Neighbours<float, V>>{
        read, ReadAfter<V>(z, p, read), LoadVector<V>(factor, p.c), LoadVector<V>(mean_g, p.c),
        LoadVector<V>(mean_gz, p.c)};
  }
  uintptr_t Addresses() const {
    return g.Addresses() | z.Addresses() | AddressOf(factor) | AddressOf(mean_g) |
           AddressOf(mean_gz);
  }
};
// Computes dx = g * scale / sqrt(variance + eps) for stored moments, which are constants.
template <class G, class C = const float*>
struct ScaledGradient {
  G g;
  C factor;
  HD float operator()(int64_t at, int64_t c) const { return g(at, c) * factor[c]; }
  template <int V>
  HD auto Read(const Place& p) const {
    return ScaledGradient<ReadBy<G, V>, Neighbours<float, V>>{g.template Read<V>(p),
                                                              LoadVector<V>(factor, p.c)};
  }
  uintptr_t Addresses() const { return g.Addresses() | AddressOf(factor); }
};

}  // namespace trainer
