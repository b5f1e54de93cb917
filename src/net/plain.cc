#include "plain.h"

#include <vector>

namespace trainer {
namespace {

// The index in memory of element (n, c, h, w), counted row-major by `i`.
int64_t MemoryIndex(const Shape& shape, int64_t i) {
  if (!shape.IsImage()) return i;
  const int64_t c_count = shape[1], pixels = shape[2] * shape[3];
  const int64_t pixel = i % pixels, c = i / pixels % c_count, n = i / (pixels * c_count);
  return (n * pixels + pixel) * c_count + c;
}

}  // namespace

void ReadPlain(const Device& device, const ConstTensor& value, std::span<float> host) {
  std::vector<std::byte> memory(value.Bytes());
  device.CopyToHost(memory.data(), value.data, memory.size());
  WithType(value.dtype, [&](auto tag) {
    const auto* numbers = reinterpret_cast<const typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      host[i] = Load(numbers[MemoryIndex(value.shape, static_cast<int64_t>(i))]);
    }
  });
}

void WritePlain(const Device& device, std::span<const float> host, const Tensor& value) {
  std::vector<std::byte> memory(value.Bytes());
  WithType(value.dtype, [&](auto tag) {
    auto* numbers = reinterpret_cast<typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      Store(numbers[MemoryIndex(value.shape, static_cast<int64_t>(i))], host[i]);
    }
  });
  device.CopyToDevice(value.data, memory.data(), memory.size());
}

}  // namespace trainer
