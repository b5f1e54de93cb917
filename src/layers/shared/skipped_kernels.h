#pragma once

#include <string>
#include <vector>

#include "trainer/backend/primitives/primitive.h"
#include "trainer/base/text/text.h"

namespace trainer {

// Appends the kernels that declined before the kernel of `product`, each with `name` before it.
// `product` is null if the layer does not compute it.
inline void AppendSkippedKernels(const char* name, const Primitive* product,
                                 std::vector<std::string>* lines) {
  if (product == nullptr) return;
  for (const std::string& line : product->skipped_kernels()) {
    lines->push_back(Join(name, ": ", line));
  }
}

}  // namespace trainer
