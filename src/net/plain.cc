// Values between the device's memory order and the host's row-major floats.

#include <vector>

#include "trainer/net/net.h"
#include "trainer/tensor/plain_order.h"

namespace trainer {
void Net::ReadPlain(const ConstTensor& value, std::span<float> host) const {
  std::vector<std::byte> memory(value.Bytes());
  const PlainOrder order(value.shape);
  device_.CopyToHost(memory.data(), value.data, memory.size());
  WithType(value.dtype, [&](auto tag) {
    const auto* numbers = reinterpret_cast<const typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      host[i] = Load(numbers[order.Memory(static_cast<int64_t>(i))]);
    }
  });
}

void Net::WritePlain(std::span<const float> host, const Tensor& value) const {
  std::vector<std::byte> memory(value.Bytes());
  const PlainOrder order(value.shape);
  WithType(value.dtype, [&](auto tag) {
    auto* numbers = reinterpret_cast<typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      Store(numbers[order.Memory(static_cast<int64_t>(i))], host[i]);
    }
  });
  device_.CopyToDevice(value.data, memory.data(), memory.size());
}

}  // namespace trainer
