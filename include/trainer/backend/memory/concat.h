#pragma once

#include <span>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

// Arrays joined along an axis: the joined array has `blocks` blocks, and each consists of one block
// of every part in turn. `lengths` are the lengths of the parts' blocks, in elements.
struct ConcatDesc {
  size_t element_bytes = sizeof(float);
  int64_t blocks = 0;
  std::vector<int64_t> lengths;

  int64_t Length() const;  // of a block of the joined array
};

// Writes the joined array `whole` from its parts and skips parts that are null. All arrays are on
// the device.
void ConcatTensors(const Device& device, const ConcatDesc& desc,
                   std::span<const std::byte* const> parts, std::byte* whole);
// Writes the parts from the joined array and skips parts that are null.
void SplitTensors(const Device& device, const ConcatDesc& desc, const std::byte* whole,
                  std::span<std::byte* const> parts);

}  // namespace trainer
