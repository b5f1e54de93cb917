#pragma once
// Packed weights: copies of the weights in the layout and type that a primitive multiplies by. The
// code that updates the weights writes the copies too.

#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/backend/primitives/packed_layout.h"

namespace trainer {

// A copy that an update of the weights writes too; without `to` there is none. It must be aligned
// to 16 bytes.
struct PackedWeight {
  void* to = nullptr;
  PackedLayout form;
};

// A list of packed copies in device memory.
class PackedWeightList {
 public:
  // The device must outlive it.
  PackedWeightList(const Device& device, const std::vector<PackedWeight>& copies)
      : memory_(device, copies.size() * sizeof(PackedWeight) / sizeof(float)) {
    static_assert(sizeof(PackedWeight) % sizeof(float) == 0);
    device.CopyToDevice(memory_.data(), copies.data(), copies.size() * sizeof(PackedWeight));
  }
  const PackedWeight* data() const { return reinterpret_cast<const PackedWeight*>(memory_.data()); }

 private:
  DeviceFloats memory_;
};

}  // namespace trainer
