// The CPU copies each part on its own. A GPU moves up to kMaxParts parts with one kernel, because
// the copy of a small part takes no longer than its launch.

#include "trainer/backend/memory/concat.h"

#include <numeric>
#include <type_traits>

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

constexpr size_t kMaxParts = 8;  // of one kernel, which gets their addresses as parameters

struct alignas(16) PartBytes16 {
  uint64_t halves[2];
};

// Types of the arrays: the side that is read is const.
template <bool kJoin, class T>
using Part = std::conditional_t<kJoin, const T, T>;
template <bool kJoin, class T>
using Whole = std::conditional_t<kJoin, T, const T>;
template <bool kJoin>
using Parts = std::span<Part<kJoin, std::byte>* const>;

// Copies one element between the joined array and its part. All element counts must fit Index: on a
// GPU a 64-bit division costs several times a 32-bit one.
template <class T, class Index, bool kJoin>
struct MoveParts {
  Part<kJoin, T>* parts[kMaxParts] = {};
  Index ends[kMaxParts] = {};  // ends of the parts within a block, ascending
  Whole<kJoin, T>* whole = nullptr;
  Index width = 0, step = 0;  // elements per block: in these parts, and in all parts

  HD void operator()(int64_t i) const {
    const Index at = static_cast<Index>(i), block = at / width, rest = at - block * width;
    Part<kJoin, T>* part = parts[0];
    Index start = 0, end = ends[0];
#pragma unroll
    for (size_t k = 1; k < kMaxParts; ++k) {
      if (rest < ends[k - 1]) continue;
      part = parts[k];
      start = ends[k - 1];
      end = ends[k];
    }
    if (part == nullptr) return;
    const int64_t in_part = int64_t{block} * (end - start) + rest - start;
    const int64_t in_whole = int64_t{block} * step + rest;
    if constexpr (kJoin) {
      whole[in_whole] = part[in_part];
    } else {
      part[in_part] = whole[in_whole];
    }
  }
};

// Returns the largest element size that divides all lengths and addresses, at most 16 bytes.
template <bool kJoin>
size_t LargestElement(const ConcatDesc& desc, Parts<kJoin> parts, const std::byte* whole) {
  uintptr_t all = reinterpret_cast<uintptr_t>(whole) | sizeof(PartBytes16);
  for (const std::byte* part : parts) all |= reinterpret_cast<uintptr_t>(part);
  for (const int64_t length : desc.lengths) {
    all |= static_cast<uintptr_t>(length) * desc.element_bytes;
  }
  return static_cast<size_t>(all & (~all + 1));
}

// Converts a number of elements of the description to one of elements of T.
template <class T>
int64_t InElements(const ConcatDesc& desc, int64_t count) {
  return count * static_cast<int64_t>(desc.element_bytes) / static_cast<int64_t>(sizeof(T));
}

// Moves up to kMaxParts parts, starting at part `first`, which begins `before` elements into a
// block.
template <class T, class Index, bool kJoin>
void MoveOnGpu(const Device& device, const ConcatDesc& desc, Parts<kJoin> parts, size_t first,
               int64_t before, Whole<kJoin, std::byte>* whole) {
  MoveParts<T, Index, kJoin> move;
  move.whole = reinterpret_cast<Whole<kJoin, T>*>(whole) + InElements<T>(desc, before);
  move.step = static_cast<Index>(InElements<T>(desc, desc.Length()));
  for (size_t k = 0; k < kMaxParts; ++k) {
    if (first + k < parts.size()) {
      move.parts[k] = reinterpret_cast<Part<kJoin, T>*>(parts[first + k]);
      move.width += static_cast<Index>(InElements<T>(desc, desc.lengths[first + k]));
    }
    move.ends[k] = move.width;
  }
  if (move.width > 0) ForEach(device, desc.blocks * int64_t{move.width}, move);
}

// Moves all parts, with a kernel for each kMaxParts of them, and with 32-bit indices if these
// suffice.
template <class T, bool kJoin>
void MoveAllOnGpu(const Device& device, const ConcatDesc& desc, Parts<kJoin> parts,
                  Whole<kJoin, std::byte>* whole) {
  const bool is_small = InElements<T>(desc, desc.blocks * desc.Length()) <= INT32_MAX;
  int64_t before = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (k % kMaxParts == 0) {
      const auto move = is_small ? MoveOnGpu<T, int32_t, kJoin> : MoveOnGpu<T, int64_t, kJoin>;
      move(device, desc, parts, k, before, whole);
    }
    before += desc.lengths[k];
  }
}

// Copies each part by Device::Copy.
template <bool kJoin>
void CopyEach(const Device& device, const ConcatDesc& desc, Parts<kJoin> parts,
              Whole<kJoin, std::byte>* whole) {
  const int64_t step = desc.Length();
  for (size_t k = 0; k < parts.size(); ++k) {
    const int64_t length = desc.lengths[k];
    CopyDesc copy = kJoin ? BlockCopy(desc.element_bytes, desc.blocks, length, length, step)
                          : BlockCopy(desc.element_bytes, desc.blocks, length, step, length);
    if constexpr (kJoin) {
      copy.written_bytes = desc.blocks * step * static_cast<int64_t>(desc.element_bytes);
      if (parts[k] != nullptr) device.Copy(copy, parts[k], whole);
    } else {
      if (parts[k] != nullptr) device.Copy(copy, whole, parts[k]);
    }
    whole += length * static_cast<int64_t>(desc.element_bytes);
  }
}

// Joins the parts (kJoin) or splits the joined array.
template <bool kJoin>
void JoinOrSplit(const Device& device, const ConcatDesc& desc, Parts<kJoin> parts,
                 Whole<kJoin, std::byte>* whole) {
  if (device.kind() == DeviceKind::kCpu) return CopyEach<kJoin>(device, desc, parts, whole);
  switch (LargestElement<kJoin>(desc, parts, whole)) {
    case 16:
      return MoveAllOnGpu<PartBytes16, kJoin>(device, desc, parts, whole);
    case 8:
      return MoveAllOnGpu<uint64_t, kJoin>(device, desc, parts, whole);
    case 4:
      return MoveAllOnGpu<uint32_t, kJoin>(device, desc, parts, whole);
    case 2:
      return MoveAllOnGpu<uint16_t, kJoin>(device, desc, parts, whole);
    default:
      return MoveAllOnGpu<uint8_t, kJoin>(device, desc, parts, whole);
  }
}

}  // namespace

int64_t ConcatDesc::Length() const {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

void ConcatTensors(const Device& device, const ConcatDesc& desc,
                   std::span<const std::byte* const> parts, std::byte* whole) {
  JoinOrSplit<true>(device, desc, parts, whole);
}

void SplitTensors(const Device& device, const ConcatDesc& desc, const std::byte* whole,
                  std::span<std::byte* const> parts) {
  JoinOrSplit<false>(device, desc, parts, whole);
}

}  // namespace trainer
