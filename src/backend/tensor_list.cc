#include "trainer/backend/loops/tensor_list.h"

#include <algorithm>
#include <utility>

namespace trainer {
namespace {

// Returns whether all arrays are aligned to 16 bytes, so that a thread can read 4 floats at once.
bool IsAligned(const TensorTuple& segment) {
  return std::ranges::all_of(segment.array, [](const float* array) {
    return reinterpret_cast<uintptr_t>(array) % 16 == 0;
  });
}

}  // namespace

TensorList::TensorList(const Device& device, std::vector<TensorTuple> segments)
    : segments_(std::move(segments)) {
  if (device.kind() == DeviceKind::kCpu) return;
  std::vector<TensorChunk> chunks;
  for (int s = 0; s < size(); ++s) {
    const TensorTuple& segment = (*this)[s];
    first_chunk_.push_back(static_cast<int32_t>(chunks.size()));
    for (int64_t begin = 0; begin < segment.count; begin += kChunk) {
      chunks.push_back(
          {s, IsAligned(segment) ? 1 : 0, begin, std::min(begin + kChunk, segment.count)});
    }
  }
  first_chunk_.push_back(static_cast<int32_t>(chunks.size()));
  list_ = Copy(device, segments_.data(), segments_.size() * sizeof(TensorTuple));
  chunks_ = Copy(device, chunks.data(), chunks.size() * sizeof(TensorChunk));
  firsts_ = Copy(device, first_chunk_.data(), first_chunk_.size() * sizeof(int32_t));
  partials_ = {device.Allocate(chunks.size() * kMaxSums * sizeof(float)), Free{&device}};
}

TensorList::Memory TensorList::Copy(const Device& device, const void* from, size_t bytes) const {
  Memory memory(device.Allocate(bytes), Free{&device});
  device.CopyToDevice(memory.get(), from, bytes);
  return memory;
}

}  // namespace trainer
