#include "trainer/backend/segments.h"

#include <algorithm>
#include <utility>

namespace trainer {
namespace {

bool IsAligned(const Segment& segment) {
  return std::ranges::all_of(segment.array, [](const float* array) {
    return reinterpret_cast<uintptr_t>(array) % 16 == 0;
  });
}

}  // namespace

Segments::Segments(const Device& device, std::vector<Segment> segments)
    : segments_(std::move(segments)) {
  if (device.kind() == DeviceKind::kCpu) return;
  std::vector<SegmentChunk> chunks;
  for (int s = 0; s < size(); ++s) {
    const Segment& segment = (*this)[s];
    first_chunk_.push_back(static_cast<int32_t>(chunks.size()));
    for (int64_t begin = 0; begin < segment.count; begin += kChunk) {
      chunks.push_back(
          {s, IsAligned(segment) ? 1 : 0, begin, std::min(begin + kChunk, segment.count)});
    }
  }
  first_chunk_.push_back(static_cast<int32_t>(chunks.size()));
  list_ = Copy(device, segments_.data(), segments_.size() * sizeof(Segment));
  chunks_ = Copy(device, chunks.data(), chunks.size() * sizeof(SegmentChunk));
  firsts_ = Copy(device, first_chunk_.data(), first_chunk_.size() * sizeof(int32_t));
  partials_ = {device.Allocate(chunks.size() * kMostSums * sizeof(float)), Free{&device}};
}

Segments::Memory Segments::Copy(const Device& device, const void* from, size_t bytes) const {
  Memory memory(device.Allocate(bytes), Free{&device});
  device.CopyToDevice(memory.get(), from, bytes);
  return memory;
}

}  // namespace trainer
