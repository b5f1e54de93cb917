#pragma once

#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer {

// A tensor whose leading axes are merged into one, or that gets an additional last axis of length
// 1: the same row-major order under a shape of another rank. If only one of the two shapes is an
// image's, which has another memory order, the numbers are copied to and from scratch memory.
class MergedAxes {
 public:
  MergedAxes() = default;
  MergedAxes(const Shape& real, const Shape& merged, DType dtype)
      : real_(real), merged_(merged), dtype_(dtype) {}

  const Shape& merged() const { return merged_; }
  // Returns the bytes of scratch memory; 0 if nothing is copied.
  size_t Bytes() const {
    return Copies() ? AlignedBytes(static_cast<size_t>(merged_.Count()) * SizeOf(dtype_)) : 0;
  }

  // Returns the merged tensor that holds x.
  ConstTensor Read(const Device& device, const ConstTensor& x, std::byte* scratch) const {
    if (!Copies()) return {x.data, merged_, dtype_};
    if (IsNhwc(real_)) {
      CopyToNchw(device, x, scratch);
    } else {
      CopyFromNchw(device, x.data, {scratch, merged_, dtype_});
    }
    return {scratch, merged_, dtype_};
  }

  // Returns the merged tensor in which y is computed; Write then copies it to y.
  Tensor Place(const Tensor& y, std::byte* scratch) const {
    return {Copies() ? scratch : y.data, merged_, dtype_};
  }
  // Copies the result from scratch memory to y if Place put it there.
  void Write(const Device& device, const Tensor& y, std::byte* scratch) const {
    if (!Copies()) return;
    if (IsNhwc(real_)) {
      CopyFromNchw(device, scratch, y);
    } else {
      CopyToNchw(device, {scratch, merged_, dtype_}, y.data);
    }
  }

 private:
  // Returns true if the two shapes have different memory orders, so that the numbers must move.
  bool Copies() const {
    return real_.Rank() != merged_.Rank() && (IsNhwc(real_) || IsNhwc(merged_));
  }

  Shape real_, merged_;
  DType dtype_ = DType::kF32;
};

}  // namespace trainer
