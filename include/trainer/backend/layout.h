#pragma once
// Between the NHWC memory of images and the NCHW order of files and of layers that flatten.

#include "trainer/backend/map.h"

namespace trainer {

namespace layout_internal {

// to[b][j][i] = from[b][i][j] for `batch` matrices of (rows, columns), element by element of `to`.
template <class T>
struct TransposeBatch {
  const T* from;
  T* to;
  int64_t rows, columns;

  HD void operator()(int64_t at) const {
    const int64_t size = rows * columns, b = at / size, j = at % size / rows, i = at % rows;
    to[at] = from[b * size + i * columns + j];
  }
};

template <class T>
void CpuTransposeBatch(const T* from, T* to, int64_t batch, int64_t rows, int64_t columns) {
  ParallelRanges(batch, std::max<int64_t>(1, parallel_for_internal::kGrain / (rows * columns)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; ++b) {
                     const T* in = from + b * rows * columns;
                     T* out = to + b * rows * columns;
                     for (int64_t i = 0; i < rows; ++i) {
                       for (int64_t j = 0; j < columns; ++j)
                         out[j * rows + i] = in[i * columns + j];
                     }
                   }
                 });
}

template <class T>
void Transpose(const Device& device, const T* from, T* to, int64_t batch, int64_t rows,
               int64_t columns) {
  if (batch * rows * columns == 0) return;
  if (device.kind() == DeviceKind::kCpu) return CpuTransposeBatch(from, to, batch, rows, columns);
  ForEach(device, batch * rows * columns, TransposeBatch<T>{from, to, rows, columns});
}

}  // namespace layout_internal

// Whether a tensor's memory order differs from its row-major order.
inline bool IsPermuted(const Shape& shape) {
  return shape.IsImage() && shape[1] > 1 && shape[2] * shape[3] > 1;
}

// Copies `x` into `to` in row-major (N, C, H, W) order; one storage type; a plain copy where the
// orders agree. `to` must not overlap.
inline void CopyToPlain(const Device& device, const ConstTensor& x, void* to) {
  WithType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const Shape& s = x.shape;
    const bool permuted = IsPermuted(s);
    layout_internal::Transpose(device, x.As<T>(), static_cast<T*>(to), permuted ? s[0] : 1,
                               permuted ? s[2] * s[3] : 1, permuted ? s[1] : s.Count());
  });
}

// The reverse: fills `x` from numbers in row-major order.
inline void CopyFromPlain(const Device& device, const void* from, const Tensor& x) {
  WithType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const Shape& s = x.shape;
    const bool permuted = IsPermuted(s);
    layout_internal::Transpose(device, static_cast<const T*>(from), x.As<T>(), permuted ? s[0] : 1,
                               permuted ? s[1] : 1, permuted ? s[2] * s[3] : s.Count());
  });
}

}  // namespace trainer
