#pragma once
// Weights in the form that a primitive multiplies by, as copies beside them that whoever moves the
// weights writes along with them.

#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/backend/primitives/packed_layout.h"

namespace trainer {

// A copy that an update of the weights writes too; without `to` there is none.
struct PackedWeight {
  void* to = nullptr;
  PackedLayout form;
};

// Several of them as a list in the device's memory.
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
