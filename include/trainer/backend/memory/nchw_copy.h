#pragma once
// Copies of whole tensors on a device between the NHWC layout of images in memory and the NCHW
// order of files and of layers that flatten.

#include "trainer/backend/device/device.h"
#include "trainer/tensor/nchw_order.h"

namespace trainer {

namespace layout_internal {

// Transposes `batch` matrices of (rows, columns).
inline CopyDesc Transpose(size_t size, int64_t batch, int64_t rows, int64_t columns) {
  return CopyDesc(size)
      .Axis(batch, rows * columns, rows * columns)
      .Axis(columns, 1, rows)
      .Axis(rows, columns, 1);
}

}  // namespace layout_internal

// Copies `x` into `to` in row-major (N, C, H, W) order, with the storage type of `x`. The copy is a
// plain one if the orders agree. `to` must not overlap `x`.
inline void CopyToNchw(const Device& device, const ConstTensor& x, void* to) {
  const Shape& s = x.shape;
  const size_t size = SizeOf(x.dtype);
  device.Copy(IsNhwc(s) ? layout_internal::Transpose(size, s[0], s[2] * s[3], s[1])
                        : BlockCopy(size, 1, s.Count(), 0, 0),
              x.data, to);
}

// Fills `x` from numbers in row-major (N, C, H, W) order.
inline void CopyFromNchw(const Device& device, const void* from, const Tensor& x) {
  const Shape& s = x.shape;
  const size_t size = SizeOf(x.dtype);
  device.Copy(IsNhwc(s) ? layout_internal::Transpose(size, s[0], s[1], s[2] * s[3])
                        : BlockCopy(size, 1, s.Count(), 0, 0),
              from, x.data);
}

}  // namespace trainer
