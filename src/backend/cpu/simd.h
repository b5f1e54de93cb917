#pragma once
// Vectors of L floats for hand-blocked loops: L is 16 with AVX-512, 8 with AVX2, else 4 or 1. All
// functions are inlined into the loops of ParallelLanes or the functions of CompiledFor, which are
// compiled for the instruction set that L needs, because vectors must not cross a call.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/nontemporal.h"
#include "trainer/tensor/dtype.h"

#define TRAINER_INLINE __attribute__((always_inline)) inline

namespace trainer::cpu {

// Written out for each L, because GCC 12 does not accept a vector length that depends on a template
// argument.
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
struct VectorTypes<8> {
  using F = float __attribute__((vector_size(32)));
  using I = int32_t __attribute__((vector_size(32)));
  using U16 = uint16_t __attribute__((vector_size(16)));
  using U8 = uint8_t __attribute__((vector_size(8)));
};
template <>
struct VectorTypes<4> {
  using F = float __attribute__((vector_size(16)));
  using I = int32_t __attribute__((vector_size(16)));
  using U16 = uint16_t __attribute__((vector_size(8)));
  using U8 = uint8_t __attribute__((vector_size(4)));
};

// Vectors of L floats, loaded from and stored to floats or bf16. F and I are the vectors of floats
// and of integers; results are passed by reference.
template <int L>
struct Lanes {
  static constexpr int64_t kLanes = L;
  using F = typename VectorTypes<L>::F;
  using I = typename VectorTypes<L>::I;
  using U16 = typename VectorTypes<L>::U16;
  using U8 = typename VectorTypes<L>::U8;

  // Sets all lanes to the number at `from`. GCC 12 would insert the lanes one by one.
  static TRAINER_INLINE void Broadcast(F& to, const float* from) {
    static_assert(L >= 8);
    asm("vbroadcastss %1, %0" : "=v"(to) : "m"(*from));
  }
  // Loads L neighbouring numbers.
  static TRAINER_INLINE void LoadTo(F& to, const float* from) { std::memcpy(&to, from, sizeof(F)); }
  // Loads L neighbouring numbers and widens them.
  static TRAINER_INLINE void LoadTo(F& to, const BFloat16* from) {
    I wide;
    if constexpr (L == 16) {  // GCC 12 would convert and join two halves
      asm("vpmovzxwd %1, %0" : "=v"(wide) : "m"(*reinterpret_cast<const BFloat16(*)[L]>(from)));
    } else {
      U16 half;
      std::memcpy(&half, from, sizeof(half));
      wide = __builtin_convertvector(half, I);
    }
    wide <<= 16;
    std::memcpy(&to, &wide, sizeof(F));
  }
  static TRAINER_INLINE void StoreTo(float* to, const F& value) {
    std::memcpy(to, &value, sizeof(F));
  }
  // Rounds in the same way as Store.
  static TRAINER_INLINE void StoreTo(BFloat16* to, const F& value) {
    I bits;
    std::memcpy(&bits, &value, sizeof(F));
    const I rounded = bits + 0x7fff + ((bits >> 16) & 1);
    const I kept = value != value ? bits | 0x400000 : rounded;
    const U16 half = __builtin_convertvector(kept >> 16, U16);
    std::memcpy(static_cast<void*>(to), &half, sizeof(half));
  }

  // Selects lanes of LoadWhere and Clear: a bit or an integer of ones for each lane.
  using Mask = std::conditional_t<L == 16, uint16_t, I>;
  // Selects the first `count` lanes.
  static TRAINER_INLINE void MaskFirst(Mask& mask, int64_t count) {
    if constexpr (L == 16) {
      mask = static_cast<uint16_t>((1u << count) - 1);
    } else {
      static_assert(L == 8);
      const I lane = {0, 1, 2, 3, 4, 5, 6, 7};
      mask = lane < static_cast<int32_t>(count);
    }
  }
  // Selects all lanes or none.
  static TRAINER_INLINE void MaskAll(Mask& mask, bool all) { mask = Mask{} - all; }
  // Sets the lanes that are not selected to 0.
  static TRAINER_INLINE void Clear(F& value, const Mask& mask) {
    if constexpr (L == 16) {
      asm("vmovaps %0, %0%{%1%}%{z%}" : "+v"(value) : "Yk"(mask));
    } else {
      value = mask != 0 ? value : F{};
    }
  }
  // Loads the selected lanes and sets the others to 0. Memory of other lanes is not read.
  static TRAINER_INLINE void LoadWhere(F& to, const float* from, const Mask& mask) {
    if constexpr (L == 16) {
      asm("vmovups %1, %0%{%2%}%{z%}"
          : "=v"(to)
          : "m"(*reinterpret_cast<const float(*)[L]>(from)), "Yk"(mask));
    } else {
      static_assert(L == 8);
      asm("vmaskmovps %1, %2, %0"
          : "=x"(to)
          : "m"(*reinterpret_cast<const float(*)[L]>(from)), "x"(mask));
    }
  }
  // Stores the first `count` lanes. On AMD's processors, AVX2's masked store takes ten times as
  // long as a whole one, so without AVX-512 the lanes are stored in pieces of 4, 2 and 1.
  static TRAINER_INLINE void StoreFirst(float* to, const F& value, int64_t count) {
    if constexpr (L == 16) {
      Mask mask;
      MaskFirst(mask, count);
      asm("vmovups %1, %0%{%2%}"
          : "+m"(*reinterpret_cast<float(*)[L]>(to))
          : "v"(value), "Yk"(mask));
    } else {
      static_assert(L == 8);
      if (count == L) return StoreTo(to, value);
      typename VectorTypes<4>::F part = __builtin_shufflevector(value, value, 0, 1, 2, 3);
      if (count >= 4) {
        std::memcpy(to, &part, 4 * sizeof(float));
        part = __builtin_shufflevector(value, value, 4, 5, 6, 7);
        to += 4;
      }
      if (count % 4 >= 2) {
        std::memcpy(to, &part, 2 * sizeof(float));
        part = __builtin_shufflevector(part, part, 2, 3, 2, 3);
        to += 2;
      }
      if (count % 2 == 1) std::memcpy(to, &part, sizeof(float));
    }
  }
  // Keeps the compiler from contracting a product with a sum that reads it.
  static TRAINER_INLINE void KeepProduct(F& product) { asm("" : "+v"(product)); }
  // Loads `count` numbers with stride `step`, from[0], from[step], from[2 * step] and so on, and
  // sets the other lanes to 0.
  static TRAINER_INLINE void Gather(F& to, const float* from, int64_t step, int64_t count) {
    if constexpr (L == 16) {
      const I lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
      const I index = lane * static_cast<int32_t>(step);
      Mask mask;
      MaskFirst(mask, count);
      to = F{};
      asm("vgatherdps (%2,%3,4), %0%{%1%}"
          : "+&v"(to), "+Yk"(mask)
          : "r"(from), "v"(index)
          : "memory");
    } else {
      float lanes[L] = {};
      if (count >= L) {
        for (int l = 0; l < L; ++l) lanes[l] = from[l * step];
      } else {
        for (int64_t l = 0; l < count; ++l) lanes[l] = from[l * step];
      }
      LoadTo(to, lanes);
    }
  }
  // Returns the sum of the lanes: halves are added until two numbers are left.
  static TRAINER_INLINE float Sum(const F& x) {
    if constexpr (L == 16) {
      return Lanes<8>::Sum(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
                           __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15));
    } else if constexpr (L == 8) {
      return Lanes<4>::Sum(__builtin_shufflevector(x, x, 0, 1, 2, 3) +
                           __builtin_shufflevector(x, x, 4, 5, 6, 7));
    } else {
      return (x[0] + x[2]) + (x[1] + x[3]);
    }
  }

  // Whether a vector is a whole cache line: streaming parts of a line costs more than it saves.
  template <class T>
  static constexpr bool kStreams = L * sizeof(T) == 64;
  // Stores a whole line past the caches; `to` must be a multiple of 64.
  static TRAINER_INLINE void StreamTo(float* to, const F& value) {
    static_assert(kStreams<float>);
    asm("vmovntps %1, %0" : "=m"(*reinterpret_cast<float(*)[L]>(to)) : "v"(value));
  }

  // Load and store integers: a byte is zero-extended when loaded and truncated when stored. The
  // conversion goes through 16 bits, because GCC 12 converts element by element if the width
  // changes by a factor of four.
  static TRAINER_INLINE void LoadInts(I& to, const int32_t* from) {
    std::memcpy(&to, from, sizeof(I));
  }
  static TRAINER_INLINE void LoadInts(I& to, const uint8_t* from) {
    U8 narrow;
    std::memcpy(&narrow, from, sizeof(narrow));
    to = __builtin_convertvector(__builtin_convertvector(narrow, U16), I);
  }
  // Stores L integers.
  static TRAINER_INLINE void StoreInts(int32_t* to, const I& value) {
    std::memcpy(to, &value, sizeof(I));
  }
  // Stores the low bytes of L integers.
  static TRAINER_INLINE void StoreInts(uint8_t* to, const I& value) {
    if constexpr (L == 16) {
      asm("vpmovdb %1, %0" : "=m"(*reinterpret_cast<uint8_t(*)[L]>(to)) : "v"(value));
      return;
    }
    const U8 narrow = __builtin_convertvector(__builtin_convertvector(value, U16), U8);
    std::memcpy(to, &narrow, sizeof(narrow));
  }

  // Adds `value` to `sum` in the lanes where the integer at `from` equals `wanted`.
  template <class W>
  static TRAINER_INLINE void AddWhere(F& sum, const F& value, const W* from, int32_t wanted) {
    if constexpr (L == 16 && sizeof(W) == 1) {  // compares bytes without widening them
      const U8 all = U8{} + static_cast<uint8_t>(wanted);
      uint16_t mask;
      asm("vpcmpeqb %1, %2, %0"
          : "=Yk"(mask)
          : "m"(*reinterpret_cast<const uint8_t(*)[L]>(from)), "v"(all));
      asm("vaddps %1, %0, %0%{%2%}" : "+v"(sum) : "v"(value), "Yk"(mask));
    } else {
      I number;
      LoadInts(number, from);
      sum += number == wanted ? value : F{};
    }
  }
};

// The same operations on one float, because GCC has no vectors of one element.
template <>
struct Lanes<1> {
  static constexpr int64_t kLanes = 1;
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
  template <class T>
  static constexpr bool kStreams = false;
  template <class W>
  static TRAINER_INLINE void LoadInts(I& to, const W* from) {
    to = *from;
  }
  template <class W>
  static TRAINER_INLINE void StoreInts(W* to, const I& value) {
    *to = static_cast<W>(value);
  }
  template <class W>
  static TRAINER_INLINE void AddWhere(F& sum, const F& value, const W* from, int32_t wanted) {
    if (*from == wanted) sum += value;
  }
};

// Returns the L of the processor's vectors, or a smaller one if `count` does not fill them.
inline int64_t LanesFor(int64_t count) {
  static const CpuIsa isa = DetectCpuIsa();
  if (count >= 16 && isa == CpuIsa::kAvx512) return 16;
  if (count >= 8 && isa != CpuIsa::kBase) return 8;
  return count >= 4 ? 4 : 1;
}

// Calls f(TypeTag<Lanes<L>>{}) with L = LanesFor(count).
template <class F>
void WithLanes(int64_t count, F f) {
  const int64_t lanes = LanesFor(count);
  if (lanes == 16) return f(TypeTag<Lanes<16>>{});
  if (lanes == 8) return f(TypeTag<Lanes<8>>{});
  if (lanes == 4) return f(TypeTag<Lanes<4>>{});
  f(TypeTag<Lanes<1>>{});
}

// Prefetches data that a loop will read soon. Processors do this for plain streams, but these loops
// jump between lines and pixels.
template <class T>
TRAINER_INLINE void PrefetchAhead(const T* at) {
  constexpr int64_t kBytes = 8192;
  __builtin_prefetch(reinterpret_cast<const std::byte*>(at) + kBytes);
}

// Runs StreamedFor for bodies that use the vectors V.
template <class V, class Body>
void ParallelLanes(int64_t n, int64_t grain, bool stream, Body body) {
  StreamedRanges(n, grain, stream, [&](int64_t begin, int64_t end) {
    if constexpr (V::kLanes == 16) {
      parallel_for_internal::LoopAvx512(begin, end, body);
    } else if constexpr (V::kLanes == 8) {
      parallel_for_internal::LoopAvx2(begin, end, body);
    } else {
      parallel_for_internal::LoopBase(begin, end, body);
    }
  });
}

// Kernel::Run(args...) as a function for each instruction set. Kernel::Run must be TRAINER_INLINE.
template <class Kernel, class... Args>
__attribute__((target("arch=x86-64-v4,prefer-vector-width=512"))) void RunAvx512(Args... args) {
  Kernel::Run(args...);
}
template <class Kernel, class... Args>
__attribute__((target("arch=x86-64-v3"))) void RunAvx2(Args... args) {
  Kernel::Run(args...);
}

// Returns the function that runs Kernel::Run(args...) compiled for the instruction set of V. V has
// 16 or 8 lanes.
template <class V, class Kernel, class... Args>
constexpr auto CompiledFor() -> void (*)(Args...) {
  if constexpr (V::kLanes == 16) return &RunAvx512<Kernel, Args...>;
  if constexpr (V::kLanes == 8) return &RunAvx2<Kernel, Args...>;
}

// Returns whether the processor has the vectors of WithWideLanes.
inline bool HasWideLanes() { return LanesFor(16) >= 8; }
// Calls f(TypeTag<Lanes<L>>{}) with L = 16 or 8, for kernels that exist only in these widths.
template <class F>
void WithWideLanes(F f) {
  if (LanesFor(16) == 16) return f(TypeTag<Lanes<16>>{});
  f(TypeTag<Lanes<8>>{});
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
