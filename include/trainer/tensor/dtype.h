#pragma once
// Storage types. Arithmetic is always in float: loading widens, storing rounds to nearest even.

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "trainer/base/error/error.h"
#include "trainer/base/host_device.h"
#include "trainer/base/random/half.h"

namespace trainer {

enum class DType : uint8_t { kF32, kBF16, kF16 };

// bfloat16: the upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;
};

// IEEE 754 binary16: three more bits of fraction than bfloat16, but no values beyond 65504. See
// Device::SupportsDtype.
struct Float16 {
  uint16_t bits = 0;
};

// Returns the bytes of one stored number.
inline size_t SizeOf(DType type) { return type == DType::kF32 ? 4 : 2; }
inline std::string_view NameOf(DType type) {
  return type == DType::kF32 ? "f32" : type == DType::kF16 ? "f16" : "bf16";
}

// Returns the stored number as a float, exactly.
HD float Load(const float& stored) { return stored; }
// Returns the stored number as a float, exactly.
HD float Load(const BFloat16& stored) {
  union {
    uint32_t bits;
    float value;
  } word = {static_cast<uint32_t>(stored.bits) << 16};
  return word.value;
}
// Returns the stored number as a float, exactly.
HD float Load(const Float16& stored) { return FromHalf(stored.bits); }

// Stores a float as it is.
HD void Store(float& to, float value) { to = value; }
// Rounds to the nearest bfloat16, to the even one if two are equally near. NaN is not rounded,
// because that could make it infinite: it stays NaN. A GPU has an instruction for it, which gives
// one NaN for all.
HD void Store(BFloat16& to, float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(value));
#else
  union {
    float value;
    uint32_t bits;
  } word = {value};
  const uint32_t rounded = word.bits + 0x7fffu + ((word.bits >> 16) & 1u);
  const uint32_t quiet_nan = (word.bits >> 16) | 0x40u;
  to.bits = static_cast<uint16_t>(value != value ? quiet_nan : rounded >> 16);
#endif
}
// Rounds to the nearest half, to the even one if two are equally near. Magnitudes from 65520 on
// become infinite.
HD void Store(Float16& to, float value) { to.bits = ToHalf(value); }

// Passes a type to a generic lambda: see DispatchDtype.
template <class T>
struct TypeTag {
  using Type = T;
};

// Whether this program has code for devices that store f16. The CPU does not store f16: it uses
// bf16, which has the same size and whose range needs no loss scaling.
#if defined(TRAINER_CUDA) || defined(TRAINER_CUDA_EMULATED)
inline constexpr bool kStoresF16 = true;
#else
inline constexpr bool kStoresF16 = false;
#endif

// False for Float16 and for templates that have Float16 among their arguments, at any depth. Code
// for the CPU tests it so that no loop over f16 is compiled.
template <class F>
inline constexpr bool kHasCpuLoop = !std::is_same_v<F, Float16>;
template <template <class...> class F, class... Ts>
inline constexpr bool kHasCpuLoop<F<Ts...>> = (kHasCpuLoop<Ts> && ...);

// Throws kInternal. Called where a loop on the CPU gets f16, which the net never chooses there.
[[noreturn]] inline void RefuseF16() {
  throw Error(ErrorCode::kInternal, "numbers in f16 on a device that does not store them");
}

// Calls f(TypeTag<T>{}) with the storage type T of `type`. Throws kInternal for f16, which the CPU
// does not store.
template <class F>
decltype(auto) DispatchCpuDtype(DType type, F&& f) {
  if (type == DType::kF16) RefuseF16();
  if (type == DType::kBF16) return f(TypeTag<BFloat16>{});
  return f(TypeTag<float>{});
}

// Like DispatchCpuDtype, for any device: f16 is allowed where the program has devices that store
// it.
template <class F>
decltype(auto) DispatchDtype(DType type, F&& f) {
  if constexpr (kStoresF16) {
    if (type == DType::kF16) return f(TypeTag<Float16>{});
  }
  return DispatchCpuDtype(type, f);
}

}  // namespace trainer
