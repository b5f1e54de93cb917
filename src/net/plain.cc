#include "plain.h"

#include <vector>

#include "trainer/tensor/plain_order.h"

namespace trainer {

void ReadPlain(const Device& device, const ConstTensor& value, std::span<float> host) {
  std::vector<std::byte> memory(value.Bytes());
  const PlainOrder order(value.shape);
  device.CopyToHost(memory.data(), value.data, memory.size());
  WithType(value.dtype, [&](auto tag) {
    const auto* numbers = reinterpret_cast<const typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      host[i] = Load(numbers[order.Memory(static_cast<int64_t>(i))]);
    }
  });
}

void WritePlain(const Device& device, std::span<const float> host, const Tensor& value) {
  std::vector<std::byte> memory(value.Bytes());
  const PlainOrder order(value.shape);
  WithType(value.dtype, [&](auto tag) {
    auto* numbers = reinterpret_cast<typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      Store(numbers[order.Memory(static_cast<int64_t>(i))], host[i]);
    }
  });
  device.CopyToDevice(value.data, memory.data(), memory.size());
}

}  // namespace trainer
