#pragma once
// Packed weights: copies of the weights in the layout and type that a primitive multiplies by. The
// code that updates the weights writes the copies too.

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/backend/memory/device_array.h"
#include "trainer/tensor/dtype.h"

namespace trainer {

// The packed copy of an f32 array of shape (rows, a, b) has the shape (rows, b, a) and type
// `dtype`.
struct PackedLayout {
  DType dtype = DType::kF32;
  int64_t rows = 0, a = 1, b = 1;

  int64_t Count() const { return rows * a * b; }
  // Returns the index in the copy of element i of the array.
  HD int64_t PackedIndex(int64_t i) const {
    const auto at = static_cast<uint32_t>(i), first = static_cast<uint32_t>(a),
               second = static_cast<uint32_t>(b);
    const uint32_t rest = at / second;
    return (rest / first * second + at % second) * first + rest % first;
  }
  bool operator==(const PackedLayout&) const = default;
};

// Implemented by a layer or primitive that can multiply by a packed copy of its weights (a layer:
// of its parameter 0). Without a copy it packs the weights in each call.
class TakesPackedWeight {
 public:
  virtual ~TakesPackedWeight() = default;
  // Returns nullopt if it multiplies by the weights as they are. Valid once it is prepared.
  virtual std::optional<PackedLayout> packed_layout() const = 0;
  // From now on, every call made while *holds is true uses `copy`, on the device and aligned to 64
  // bytes, as its packed weights. Both must outlive the object or be removed with null pointers.
  virtual void UsePackedWeight(const void* copy, const bool* holds) = 0;
};

// A packed copy that an update of the weights writes too. If `to` is null, there is none.
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
