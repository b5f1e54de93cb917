#pragma once
// Vector access: a thread of a GPU reads several neighbouring elements of an array in one access
// and keeps them in registers, so that few threads suffice to saturate the memory bandwidth.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "trainer/base/host_device.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// A position in a tensor of pixels: offset `at` in memory, channel c; `first` is the offset of that
// channel in the first pixel of its chunk, and `stat` is chunk * channels + c.
struct Place {
  int64_t at = 0, first = 0, c = 0, stat = 0;
};

// V neighbouring elements of an array, in registers.
template <class T, int V>
struct alignas(V * sizeof(T)) Neighbours {
  T values[V];
  HD const T& operator[](int64_t v) const { return values[v]; }
};

// Loads V elements; the address of from[at] must be aligned to V elements.
template <int V, class T>
HD Neighbours<T, V> LoadVector(const T* from, int64_t at) {
  return *reinterpret_cast<const Neighbours<T, V>*>(from + at);
}
// Stores V elements; the address of to[at] must be aligned to V elements.
template <int V, class T>
HD void WriteTogether(const Neighbours<T, V>& values, T* to, int64_t at) {
  *reinterpret_cast<Neighbours<T, V>*>(to + at) = values;
}
// Rounds two floats to T. A GPU has an instruction that rounds both to bf16; the compiler itself
// uses it only if nothing but a store reads the results.
template <class T>
HD void StoreTwo(T* to, const float* values) {
  Store(to[0], values[0]);
  Store(to[1], values[1]);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
HD void StoreTwo(BFloat16* to, const float* values) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(values[1]), "f"(values[0]));
  to[0].bits = static_cast<uint16_t>(both);
  to[1].bits = static_cast<uint16_t>(both >> 16);
}
#endif
// Rounds V floats to T.
template <class T, int V>
HD Neighbours<T, V> Rounded(const float (&values)[V]) {
  Neighbours<T, V> rounded;
  for (int v = 0; v + 1 < V; v += 2) StoreTwo(rounded.values + v, values + v);
  if (V % 2 != 0) Store(rounded.values[V - 1], values[V - 1]);
  return rounded;
}
// Rounds V floats to T and stores them as WriteTogether does. Nothing else reads the results, so
// the compiler itself rounds two at once, and needs fewer instructions than with Rounded.
template <int V, class T>
HD void StoreVector(const float (&values)[V], T* to, int64_t at) {
  Neighbours<T, V> rounded;
  for (int v = 0; v < V; ++v) Store(rounded.values[v], values[v]);
  WriteTogether(rounded, to, at);
}
// Loads V elements as LoadVector does if `has_array`; otherwise returns V times `otherwise`.
template <int V, class T>
HD Neighbours<T, V> LoadVectorIf(bool has_array, const T* from, int64_t at, T otherwise) {
  if (has_array) return LoadVector<V>(from, at);
  Neighbours<T, V> values;
  for (int v = 0; v < V; ++v) values.values[v] = otherwise;
  return values;
}
// Loads V elements without an alignment requirement; returns zeros if `from` is null.
template <int V, class T>
HD Neighbours<T, V> ReadEach(const T* from, int64_t at) {
  Neighbours<T, V> read = {};
  if (from == nullptr) return read;
  for (int v = 0; v < V; ++v) read.values[v] = from[at + v];
  return read;
}

// Names the type that F::Read<V> returns: F with Neighbours instead of arrays.
template <class F, int V>
using ReadBy = decltype(std::declval<const F&>().template Read<V>(Place()));

// Evaluates g(v, v) for each neighbour, rounds it to T and writes it to `to`. Write must be called
// before operator().
template <class T, int V, class G>
struct WrittenTogether {
  G g;
  T* to;
  Neighbours<T, V> written = {};

  // Evaluates g for all V neighbours and stores the rounded values.
  HD void Write() {
    float values[V];
    for (int v = 0; v < V; ++v) values[v] = g(v, v);
    written = Rounded<T>(values);
    WriteTogether(written, to, 0);
  }
  HD float operator()(int64_t v, int64_t) const { return Load(written[v]); }
};
// Calls f.Write() if F also writes what it computes, as WrittenTogether does; else does nothing.
template <class F>
HD void WriteWhereThatIsDue(F& f) {
  if constexpr (requires { f.Write(); }) f.Write();
}

// Returns whether an optional operand of a functor is missing. Neighbours are never missing: for a
// null array, LoadVectorIf fills them with the neutral element, 0 for a sum or 1 for a product.
HD bool IsNull(const float* array) { return array == nullptr; }
template <int V>
HD bool IsNull(const Neighbours<float, V>&) {
  return false;
}
// Returns x + term[i], or x if `term` is null.
template <class C>
HD float PlusIfThere(float x, const C& term, int64_t i) {
  return IsNull(term) ? x : x + term[i];
}

// Returns the address, to be OR-ed with others for a test of alignment.
inline uintptr_t AddressOf(const void* array) { return reinterpret_cast<uintptr_t>(array); }

inline constexpr int kTogether = 4;

// Calls run with the number of channels that a thread takes: kTogether if f can read several
// channels, each pixel's channels are neighbours in memory, their number is a multiple of
// kTogether, and the arrays of f and `to` are aligned to kTogether floats; otherwise 1.
template <class F, class Run>
void WithTogether(const F& f, const Rows& pixels, const void* to, const Run& run) {
  if constexpr (requires { f.Addresses(); }) {
    const bool aligned = (f.Addresses() | AddressOf(to)) % (kTogether * sizeof(float)) == 0;
    if (pixels.inner == 1 && pixels.length % kTogether == 0 && aligned) {
      return run(std::integral_constant<int, kTogether>());
    }
  }
  run(std::integral_constant<int, 1>());
}

}  // namespace trainer
