#include "cuda/loops.h"
#include "cuda/ops.h"

namespace trainer::cuda {
namespace {

struct alignas(16) Bytes16 {
  uint64_t halves[2];
};

// A description in the smallest index type that holds its values: on a GPU a 64-bit division costs
// several times a 32-bit one.
template <class Index>
struct Steps {
  int axes = 0;
  Index length[CopyDesc::kMaxAxes] = {}, from[CopyDesc::kMaxAxes] = {};
  Index to[CopyDesc::kMaxAxes] = {};

  explicit Steps(const CopyDesc& desc, int count) : axes(count) {
    for (int a = 0; a < count; ++a) {
      length[a] = static_cast<Index>(desc.length[a]);
      from[a] = static_cast<Index>(desc.from_step[a]);
      to[a] = static_cast<Index>(desc.to_step[a]);
    }
  }
  // Returns the offsets of item i in both arrays.
  HD void Start(Index i, int64_t* from_at, int64_t* to_at) const {
    int64_t read = 0, written = 0;
    for (int a = axes - 1; a >= 0; --a) {
      const Index next = i / length[a], rest = i - next * length[a];
      read += int64_t{rest} * int64_t{from[a]};
      written += int64_t{rest} * int64_t{to[a]};
      i = next;
    }
    *from_at = read;
    *to_at = written;
  }
};

// Copies element by element, in the order of the description.
template <class T, class Index>
__global__ void __launch_bounds__(map_internal::kBlock)
    CopyKernel(Steps<Index> steps, int64_t count, const T* from, T* to) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    int64_t read, written;
    steps.Start(static_cast<Index>(i), &read, &written);
    to[written] = from[read];
  }
}

constexpr int kTransposeTile = 32, kTileRows = 8;

// Lengths and strides of a matrix, in elements: `rows` neighbours in the source, `columns`
// neighbours in the target.
struct TransposedMatrix {
  int64_t rows, columns, from_column, to_row;
};

// Transposes matrices whose row index is contiguous in the source and whose column index is
// contiguous in the target: each tile is read and written in whole lines.
template <class T, class Index>
__global__ void __launch_bounds__(kTransposeTile* kTileRows)
    TransposeKernel(Steps<Index> outer, int64_t matrices, TransposedMatrix m, const T* from,
                    T* to) {
  __shared__ T tile[kTransposeTile][kTransposeTile + 1];
  const int64_t wide = (m.rows + kTransposeTile - 1) / kTransposeTile,
                high = (m.columns + kTransposeTile - 1) / kTransposeTile;
  for (int64_t t = blockIdx.x; t < matrices * wide * high; t += gridDim.x) {
    int64_t read, written;
    outer.Start(static_cast<Index>(t / (wide * high)), &read, &written);
    const int64_t row = t % wide * kTransposeTile, column = t / wide % high * kTransposeTile;
    for (int64_t c = threadIdx.y; c < kTransposeTile; c += kTileRows) {
      if (row + threadIdx.x < m.rows && column + c < m.columns) {
        tile[c][threadIdx.x] = from[read + row + threadIdx.x + (column + c) * m.from_column];
      }
    }
    __syncthreads();
    for (int64_t r = threadIdx.y; r < kTransposeTile; r += kTileRows) {
      if (row + r < m.rows && column + threadIdx.x < m.columns) {
        to[written + column + threadIdx.x + (row + r) * m.to_row] = tile[threadIdx.x][r];
      }
    }
    __syncthreads();
  }
}

// Returns whether the count and all strides of a copy fit 31 bits.
bool IsSmall(const CopyDesc& desc) {
  constexpr int64_t kMax = int64_t{1} << 31;
  bool small = desc.Count() < kMax;
  for (int a = 0; a < desc.axes; ++a) {
    small = small && std::abs(desc.from_step[a]) < kMax && std::abs(desc.to_step[a]) < kMax;
  }
  return small;
}

// Calls f(TypeTag<Index>) with the smallest index type for the copy.
template <class F>
void WithIndex(const CopyDesc& desc, F f) {
  IsSmall(desc) ? f(TypeTag<int32_t>{}) : f(TypeTag<int64_t>{});
}

// Copies with elements of type T, one per thread at a time.
template <class T>
void CopyElementsOnGpu(const Device& device, const CopyDesc& desc, const void* from, void* to) {
  WithIndex(desc, [&](auto tag) {
    using Index = typename decltype(tag)::Type;
    const int64_t count = desc.Count();
    Launch(device, CopyKernel<T, Index>, map_internal::Blocks(count), map_internal::kBlock,
           Steps<Index>(desc, desc.axes), count, static_cast<const T*>(from), static_cast<T*>(to));
  });
}

// Calls f(TypeTag<T>) with a T of `bytes` bytes: 1, 2, 4, 8 or 16.
template <class F>
void WithElement(size_t bytes, F f) {
  if (bytes == 1) return f(TypeTag<uint8_t>{});
  if (bytes == 2) return f(TypeTag<uint16_t>{});
  if (bytes == 4) return f(TypeTag<uint32_t>{});
  if (bytes == 8) return f(TypeTag<uint64_t>{});
  f(TypeTag<Bytes16>{});
}

// Returns the same copy with elements as large as its inner blocks, strides and addresses allow.
CopyDesc InLargeElements(const CopyDesc& desc, const void* from, const void* to) {
  const auto size = static_cast<int64_t>(desc.element_bytes);
  const int last = desc.axes - 1;
  int64_t all =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) |
      desc.length[last] * size;
  for (int a = 0; a < last; ++a) all |= (desc.from_step[a] | desc.to_step[a]) * size;
  int64_t large = 16;
  while (large > size && all % large != 0) large /= 2;
  const int64_t times = large / size;
  CopyDesc result(static_cast<size_t>(large));
  for (int a = 0; a < last; ++a) {
    result.Axis(desc.length[a], desc.from_step[a] / times, desc.to_step[a] / times);
  }
  return result.Axis(desc.length[last] / times, 1, 1);
}

// Returns the axis whose elements are neighbours, or -1.
int AxisOfStep1(const CopyDesc& desc, const int64_t* steps) {
  for (int a = 0; a < desc.axes; ++a) {
    if (steps[a] == 1) return a;
  }
  return -1;
}

// Copies with whole lines on both sides: axis `row` has step 1 in the source, and axis `column` in
// the target.
template <class T>
void Transpose(const Device& device, const CopyDesc& desc, int row, int column, const void* from,
               void* to) {
  CopyDesc outer(desc.element_bytes);
  for (int a = 0; a < desc.axes; ++a) {
    if (a == row || a == column) continue;
    outer.length[outer.axes] = desc.length[a];
    outer.from_step[outer.axes] = desc.from_step[a];
    outer.to_step[outer.axes++] = desc.to_step[a];
  }
  const TransposedMatrix m = {desc.length[row], desc.length[column], desc.from_step[column],
                              desc.to_step[row]};
  const int64_t matrices = outer.Count();
  const int64_t tiles = (m.rows + kTransposeTile - 1) / kTransposeTile *
                        ((m.columns + kTransposeTile - 1) / kTransposeTile);
  WithIndex(desc, [&](auto tag) {
    using Index = typename decltype(tag)::Type;
    Launch(device, TransposeKernel<T, Index>, loops_internal::Blocks(matrices * tiles),
           dim3(kTransposeTile, kTileRows), Steps<Index>(outer, outer.axes), matrices, m,
           static_cast<const T*>(from), static_cast<T*>(to));
  });
}

// Rounds when the kernel stores what it returns.
struct SameNumber {
  HD float operator()(int64_t, float x) const { return x; }
};

}  // namespace

void Copy(const Device& device, const CopyDesc& desc, const void* from, void* to) {
  if (desc.Count() == 0) return;
  CopyDesc copy = desc;
  if (copy.axes == 0) {  // the copy has a single element
    copy.axes = 1;
    copy.length[0] = copy.from_step[0] = copy.to_step[0] = 1;
  }
  const int row = AxisOfStep1(copy, copy.from_step), column = AxisOfStep1(copy, copy.to_step);
  const int last = copy.axes - 1;
  if (row == last && column == last) {
    copy = InLargeElements(copy, from, to);
  } else if (row >= 0 && column >= 0 && row != column) {
    return WithElement(copy.element_bytes, [&](auto tag) {
      Transpose<typename decltype(tag)::Type>(device, copy, row, column, from, to);
    });
  }
  WithElement(copy.element_bytes, [&](auto tag) {
    CopyElementsOnGpu<typename decltype(tag)::Type>(device, copy, from, to);
  });
}

void Convert(const Device& device, const ConstTensor& from, const Tensor& to) {
  DispatchDtype(from.dtype, [&](auto in) {
    DispatchDtype(to.dtype, [&](auto out) {
      using In = typename decltype(in)::Type;
      using Out = typename decltype(out)::Type;
      map_internal::LaunchMap(device, SameNumber{}, to.Count(), to.As<Out>(), from.As<In>());
    });
  });
}

}  // namespace trainer::cuda
