#pragma once
// The number type in which gradients are sent between nodes.

#include <string_view>

namespace trainer {

enum class CompressionType { kF32, kF16, kBF16 };

// Returns "f32", "f16" or "bf16".
inline std::string_view NameOf(CompressionType type) {
  return type == CompressionType::kF32 ? "f32" : type == CompressionType::kF16 ? "f16" : "bf16";
}

}  // namespace trainer
