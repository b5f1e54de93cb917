#pragma once
// In what form gradients travel between machines.

#include <string_view>

namespace trainer {

enum class WireType { kF32, kF16, kBF16 };

// "f32", "f16", "bf16"
inline std::string_view NameOf(WireType type) {
  return type == WireType::kF32 ? "f32" : type == WireType::kF16 ? "f16" : "bf16";
}

}  // namespace trainer
