#include "io/nchw_values.h"

#include <vector>

#include "trainer/tensor/nchw_order.h"

namespace trainer {

void ReadNchw(const Device& device, const ConstTensor& value, std::span<float> host) {
  std::vector<std::byte> memory(value.Bytes());
  const NchwOrder order(value.shape);
  device.CopyToHost(memory.data(), value.data, memory.size());
  DispatchDtype(value.dtype, [&](auto tag) {
    const auto* numbers = reinterpret_cast<const typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      host[i] = Load(numbers[order.Memory(static_cast<int64_t>(i))]);
    }
  });
}

void WriteNchw(const Device& device, std::span<const float> host, const Tensor& value) {
  std::vector<std::byte> memory(value.Bytes());
  const NchwOrder order(value.shape);
  DispatchDtype(value.dtype, [&](auto tag) {
    auto* numbers = reinterpret_cast<typename decltype(tag)::Type*>(memory.data());
    for (size_t i = 0; i < host.size(); ++i) {
      Store(numbers[order.Memory(static_cast<int64_t>(i))], host[i]);
    }
  });
  device.CopyToDevice(value.data, memory.data(), memory.size());
}

}  // namespace trainer
