// Values between the device's memory order and the host's row-major floats.

#include <vector>

#include "trainer/net/net.h"

namespace trainer {
namespace {

// Where element (n, c, h, w), counted row-major by `i`, lies in memory.
int64_t MemoryIndex(const Shape& shape, int64_t i) {
  if (!shape.IsImage()) return i;
  const int64_t c_count = shape[1], pixels = shape[2] * shape[3];
  const int64_t pixel = i % pixels, c = i / pixels % c_count, n = i / (pixels * c_count);
  return (n * pixels + pixel) * c_count + c;
}

}  // namespace

void Net::ReadPlain(const ConstTensor& value, std::span<float> host) const {
  std::vector<std::byte> memory(value.Bytes());
  device_.CopyToHost(memory.data(), value.data, memory.size());
  WithType(value.dtype, [&](auto tag) {
    const auto* numbers = reinterpret_cast<const typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      host[i] = Load(numbers[MemoryIndex(value.shape, static_cast<int64_t>(i))]);
    }
  });
}

void Net::WritePlain(std::span<const float> host, const Tensor& value) const {
  std::vector<std::byte> memory(value.Bytes());
  WithType(value.dtype, [&](auto tag) {
    auto* numbers = reinterpret_cast<typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      Store(numbers[MemoryIndex(value.shape, static_cast<int64_t>(i))], host[i]);
    }
  });
  device_.CopyToDevice(value.data, memory.data(), memory.size());
}

}  // namespace trainer
