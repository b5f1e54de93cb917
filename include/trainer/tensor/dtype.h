#pragma once
// Storage types. Arithmetic is always float: a load widens, a store rounds to nearest even.

#include <bit>
#include <cstdint>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/host_device.h"

namespace trainer {

enum class DType : uint8_t { kF32, kBF16 };

// bfloat16: the upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;
};

inline size_t SizeOf(DType type) { return type == DType::kF32 ? 4 : 2; }
inline std::string_view NameOf(DType type) { return type == DType::kF32 ? "f32" : "bf16"; }

HD float Load(const float& stored) { return stored; }
HD float Load(const BFloat16& stored) {
  union {
    uint32_t bits;
    float value;
  } word = {static_cast<uint32_t>(stored.bits) << 16};
  return word.value;
}

HD void Store(float& to, float value) { to = value; }
HD void Store(BFloat16& to, float value) {
  union {
    float value;
    uint32_t bits;
  } word = {value};
  const uint32_t rounded = word.bits + 0x7fffu + ((word.bits >> 16) & 1u);
  const uint32_t quiet_nan = (word.bits >> 16) | 0x40u;
  to.bits = static_cast<uint16_t>(value != value ? quiet_nan : rounded >> 16);
}

template <class T>
struct TypeTag {
  using Type = T;
};

// Calls f(TypeTag<T>{}) with the storage type T of `type`.
template <class F>
decltype(auto) WithType(DType type, F&& f) {
  if (type == DType::kBF16) return f(TypeTag<BFloat16>{});
  return f(TypeTag<float>{});
}

}  // namespace trainer
