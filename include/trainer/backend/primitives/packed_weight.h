#pragma once
// Weights in the form that a primitive multiplies by, as copies beside them that whoever moves the
// weights writes along with them.

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/tensor/dtype.h"

namespace trainer {

// An array of f32 with the lengths (rows, a, b) becomes one with (rows, b, a) in `dtype`.
struct PackedLayout {
  DType dtype = DType::kF32;
  int64_t rows = 0, a = 1, b = 1;

  int64_t Count() const { return rows * a * b; }
  // Where element i of the array is in the copy.
  HD int64_t PackedIndex(int64_t i) const {
    const auto at = static_cast<uint32_t>(i), first = static_cast<uint32_t>(a),
               second = static_cast<uint32_t>(b);
    const uint32_t rest = at / second;
    return (rest / first * second + at % second) * first + rest % first;
  }
  bool operator==(const PackedLayout&) const = default;
};

// What a layer or a plan also is that multiplies by such a copy of its weights, a layer of its
// parameter 0. Without one it makes its own in each call.
class TakesPackedWeight {
 public:
  virtual ~TakesPackedWeight() = default;
  // Nothing where it multiplies by the weights as they are. Known once it is prepared.
  virtual std::optional<PackedLayout> packed_layout() const = 0;
  // From now on `copy`, on the device and aligned to 64, is that of the weights of every call made
  // while *holds. Both outlive the object.
  virtual void UsePackedWeight(const void* copy, const bool* holds) = 0;
};

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
