#pragma once

#include <span>
#include <vector>

#include "trainer/backend/device/device.h"

namespace trainer {

// A whole of `blocks` blocks, each of which is made of a block of every part in turn: arrays that
// are joined along an axis. Lengths are those of a part's block, in elements.
struct ConcatDesc {
  size_t element_bytes = sizeof(float);
  int64_t blocks = 0;
  std::vector<int64_t> lengths;

  int64_t Length() const;  // of the whole's block
};

// Writes the whole from its parts; a part that is null is left out. All are on the device.
void ConcatTensors(const Device& device, const ConcatDesc& desc,
                   std::span<const std::byte* const> parts, std::byte* whole);
// The reverse.
void SplitTensors(const Device& device, const ConcatDesc& desc, const std::byte* whole,
                  std::span<std::byte* const> parts);

}  // namespace trainer
