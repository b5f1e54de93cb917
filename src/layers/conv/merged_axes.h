#pragma once

#include "trainer/backend/memory/nchw_copy.h"
#include "trainer/backend/memory/scratch_layout.h"

namespace trainer {

// A tensor seen with its leading axes merged into one, or with a last axis of length 1 more: the
// same row-major order under a shape of another rank. Where one of the two ranks is that of images,
// whose memory has another order, the numbers are copied to and from scratch memory.
class MergedAxes {
 public:
  MergedAxes() = default;
  MergedAxes(const Shape& real, const Shape& merged, DType dtype)
      : real_(real), merged_(merged), dtype_(dtype) {}

  const Shape& merged() const { return merged_; }
  // Of scratch memory; 0 where nothing is copied.
  size_t Bytes() const {
    return Copies() ? AlignedBytes(static_cast<size_t>(merged_.Count()) * SizeOf(dtype_)) : 0;
  }

  // The merged tensor that holds x.
  ConstTensor Read(const Device& device, const ConstTensor& x, std::byte* scratch) const {
    if (!Copies()) return {x.data, merged_, dtype_};
    if (IsNhwc(real_)) {
      CopyToNchw(device, x, scratch);
    } else {
      CopyFromNchw(device, x.data, {scratch, merged_, dtype_});
    }
    return {scratch, merged_, dtype_};
  }

  // The merged tensor to compute y in, which Write then copies to y.
  Tensor Place(const Tensor& y, std::byte* scratch) const {
    return {Copies() ? scratch : y.data, merged_, dtype_};
  }
  void Write(const Device& device, const Tensor& y, std::byte* scratch) const {
    if (!Copies()) return;
    if (IsNhwc(real_)) {
      CopyFromNchw(device, scratch, y);
    } else {
      CopyToNchw(device, {scratch, merged_, dtype_}, y.data);
    }
  }

 private:
  bool Copies() const {
    return real_.Rank() != merged_.Rank() && (IsNhwc(real_) || IsNhwc(merged_));
  }

  Shape real_, merged_;
  DType dtype_ = DType::kF32;
};

}  // namespace trainer
