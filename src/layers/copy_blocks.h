#pragma once

#include <cstring>

#include "trainer/backend/map.h"
#include "trainer/backend/stream.h"

namespace trainer {

namespace copy_blocks_internal {

struct CopyElement {
  const std::byte* from;
  std::byte* to;
  int64_t length, from_step, to_step, size;

  HD void operator()(int64_t i) const {
    const int64_t block = i / length, at = i % length;
    const std::byte* source = from + (block * from_step + at) * size;
    std::byte* target = to + (block * to_step + at) * size;
    for (int64_t k = 0; k < size; ++k) target[k] = source[k];
  }
};

}  // namespace copy_blocks_internal

// Copies `count` blocks of `length` elements of `size` bytes; the steps are the distances, in
// elements, from one block's start to the next one's. The two must not overlap. written: the bytes
// of all that is written beside this, past the caches where that is much.
inline void CopyBlocks(const Device& device, int64_t count, int64_t length, size_t size,
                       const void* from, int64_t from_step, void* to, int64_t to_step,
                       int64_t written = 0) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  const auto bytes = static_cast<int64_t>(size);
  if (device.kind() != DeviceKind::kCpu) {
    return ForEach(
        device, count * length,
        copy_blocks_internal::CopyElement{source, target, length, from_step, to_step, bytes});
  }
  const int64_t block = length * bytes, step = to_step * bytes;
  const int64_t line = 64;
  const bool lines =
      block % line == 0 && step % line == 0 && reinterpret_cast<uintptr_t>(target) % line == 0;
  const bool stream = lines && Streams(to, std::max(written, count * block), line);
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, block));
  ParallelRanges(count, grain, [=](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const std::byte* const source_block = source + b * from_step * bytes;
      if (stream) {
        StreamCopy(target + b * step, source_block, static_cast<size_t>(block));
      } else {
        std::memcpy(target + b * step, source_block, static_cast<size_t>(block));
      }
    }
    if (stream) StreamFence();
  });
}

}  // namespace trainer
