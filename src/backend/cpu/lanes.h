#pragma once
// Vectors of L floats for hand-blocked loops. GCC lowers them to what the surrounding function's
// instruction set offers, so the same code serves ParallelFor's variants. Everything is inlined:
// vectors must not cross a call between functions of different sets.

#include <cstdint>
#include <cstring>

#include "trainer/tensor/dtype.h"

#define TRAINER_INLINE __attribute__((always_inline)) inline

namespace trainer::cpu {

// Spelled out: GCC 12 takes no vector whose length depends on a template's argument.
template <int L>
struct VectorTypes;
template <>
struct VectorTypes<16> {
  using F = float __attribute__((vector_size(64)));
  using I = int32_t __attribute__((vector_size(64)));
  using U16 = uint16_t __attribute__((vector_size(32)));
  using U8 = uint8_t __attribute__((vector_size(16)));
};
template <>
struct VectorTypes<4> {
  using F = float __attribute__((vector_size(16)));
  using I = int32_t __attribute__((vector_size(16)));
  using U16 = uint16_t __attribute__((vector_size(8)));
  using U8 = uint8_t __attribute__((vector_size(4)));
};

template <int L>
struct Lanes {
  using F = typename VectorTypes<L>::F;
  using I = typename VectorTypes<L>::I;
  using U16 = typename VectorTypes<L>::U16;
  using U8 = typename VectorTypes<L>::U8;

  static TRAINER_INLINE void LoadTo(F& to, const float* from) { std::memcpy(&to, from, sizeof(F)); }
  static TRAINER_INLINE void LoadTo(F& to, const BFloat16* from) {
    U16 half;
    std::memcpy(&half, from, sizeof(half));
    const I wide = __builtin_convertvector(half, I) << 16;
    std::memcpy(&to, &wide, sizeof(F));
  }
  static TRAINER_INLINE void StoreTo(float* to, const F& value) {
    std::memcpy(to, &value, sizeof(F));
  }
  static TRAINER_INLINE void StoreTo(BFloat16* to, const F& value) {
    for (int i = 0; i < L; ++i) Store(to[i], value[i]);
  }

  // Whole numbers; a byte is widened with zeros and keeps the low bits. Over 16
  // bits: GCC 12 converts element by element when the width changes by four.
  static TRAINER_INLINE void LoadInts(I& to, const int32_t* from) {
    std::memcpy(&to, from, sizeof(I));
  }
  static TRAINER_INLINE void LoadInts(I& to, const uint8_t* from) {
    U8 narrow;
    std::memcpy(&narrow, from, sizeof(narrow));
    to = __builtin_convertvector(__builtin_convertvector(narrow, U16), I);
  }
  static TRAINER_INLINE void StoreInts(int32_t* to, const I& value) {
    std::memcpy(to, &value, sizeof(I));
  }
  static TRAINER_INLINE void StoreInts(uint8_t* to, const I& value) {
    const U8 narrow = __builtin_convertvector(__builtin_convertvector(value, U16), U8);
    std::memcpy(to, &narrow, sizeof(narrow));
  }
};

// GCC has no vectors of one.
template <>
struct Lanes<1> {
  using F = float;
  using I = int32_t;

  template <class T>
  static TRAINER_INLINE void LoadTo(F& to, const T* from) {
    to = Load(*from);
  }
  template <class T>
  static TRAINER_INLINE void StoreTo(T* to, const F& value) {
    Store(*to, value);
  }
  template <class W>
  static TRAINER_INLINE void LoadInts(I& to, const W* from) {
    to = *from;
  }
  template <class W>
  static TRAINER_INLINE void StoreInts(W* to, const I& value) {
    *to = static_cast<W>(value);
  }
};

// Calls f(TypeTag<Lanes<L>>{}) with the widest L that `count` fills.
template <class F>
void WithLanes(int64_t count, F f) {
  if (count >= 16) return f(TypeTag<Lanes<16>>{});
  if (count >= 4) return f(TypeTag<Lanes<4>>{});
  f(TypeTag<Lanes<1>>{});
}

// Calls f(begin) for blocks of L that cover [0, count), count >= L. The last two may overlap, so f
// must only overwrite.
template <int L, class F>
TRAINER_INLINE void ForBlocks(int64_t count, F f) {
  int64_t begin = 0;
  for (; begin + L <= count; begin += L) f(begin);
  if (begin < count) f(count - L);
}

}  // namespace trainer::cpu
