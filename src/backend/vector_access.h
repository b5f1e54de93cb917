#pragma once
// Neighbouring numbers of arrays, which a thread of a GPU reads in one access and keeps in
// registers: as many bytes on the way as a memory needs take few threads then.

#include <cstdint>
#include <utility>

#include "trainer/base/host_device.h"
#include "trainer/tensor/dtype.h"

namespace trainer {

// Where something is of a tensor of pixels: at `at` in memory, in channel c; `first` is where the
// first pixel of its chunk has that channel.
struct Place {
  int64_t at = 0, first = 0, c = 0;
};

template <class T, int V>
struct alignas(V * sizeof(T)) Neighbours {
  T values[V];
  HD const T& operator[](int64_t v) const { return values[v]; }
};

// Of an array in which the place is aligned to V numbers.
template <int V, class T>
HD Neighbours<T, V> LoadVector(const T* from, int64_t at) {
  return *reinterpret_cast<const Neighbours<T, V>*>(from + at);
}
template <int V, class T>
HD void WriteTogether(const Neighbours<T, V>& values, T* to, int64_t at) {
  *reinterpret_cast<Neighbours<T, V>*>(to + at) = values;
}
template <int V, class T>
HD void StoreVector(const float (&values)[V], T* to, int64_t at) {
  Neighbours<T, V> rounded;
  for (int v = 0; v < V; ++v) Store(rounded.values[v], values[v]);
  WriteTogether(rounded, to, at);
}
// Of any array; zeros where there is none.
template <int V, class T>
HD Neighbours<T, V> ReadEach(const T* from, int64_t at) {
  Neighbours<T, V> read = {};
  if (from == nullptr) return read;
  for (int v = 0; v < V; ++v) read.values[v] = from[at + v];
  return read;
}

// What F::Read<V> gives: F with neighbours in place of arrays.
template <class F, int V>
using ReadBy = decltype(std::declval<const F&>().template Read<V>(Place()));

// g(v, v) for each neighbour, rounded to T, and written to `to` by Write, which comes first.
template <class T, int V, class G>
struct WrittenTogether {
  G g;
  T* to;
  Neighbours<T, V> written = {};

  HD void Write() {
    for (int v = 0; v < V; ++v) Store(written.values[v], g(v, v));
    WriteTogether(written, to, 0);
  }
  HD float operator()(int64_t v, int64_t) const { return Load(written[v]); }
};
template <class F>
HD void WriteWhereThatIsDue(F& f) {
  if constexpr (requires { f.Write(); }) f.Write();
}

// x + term[i]; x where there is no term.
HD float PlusIfThere(float x, const float* term, int64_t i) {
  return term == nullptr ? x : x + term[i];
}
template <int V>
HD float PlusIfThere(float x, const Neighbours<float, V>& term, int64_t i) {
  return x + term[i];
}

inline uintptr_t AddressOf(const void* array) { return reinterpret_cast<uintptr_t>(array); }

}  // namespace trainer
