#pragma once
// Adds rows of a matrix to the rows of a table that an index selects, like PyTorch's index_add_,
// written once for both devices. Rows with the same index are added in order, so results repeat.
//
//   struct Gradients {
//     const float *index, *dy;
//     int64_t columns;
//     HD int64_t Index(int64_t row) const { return static_cast<int64_t>(index[row]); }
//     HD auto OfRow(int64_t row) const {
//       return [from = dy + row * columns](int64_t column) { return from[column]; };
//     }
//   };
//   IndexAdd(device, rows, columns, Gradients{index, dy, columns}, table, nullptr);

#include "trainer/backend/loops/grouped_sums.h"

namespace trainer {
namespace index_add_internal {

// Adds columns [begin, end) of all rows, on the CPU.
template <class F>
struct AddColumns {
  F f;
  int64_t rows, columns;
  float *table, *total;

  void operator()(int64_t begin, int64_t end) const {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t index = f.Index(row);
      const auto values = f.OfRow(row);
      if (table != nullptr && index >= 0) {
        float* const to = table + index * columns;
        for (int64_t j = begin; j < end; ++j) to[j] += values(j);
      }
      for (int64_t j = begin; total != nullptr && j < end; ++j) total[j] += values(j);
    }
  }
};

#ifdef TRAINER_DEVICE_CODE
// Returns the term of a row for AddSums, whose channels are the columns.
template <class F>
struct TermOfRow {
  F f;
  template <class Place>
  HD float operator()(const Place& place) const {
    return f.OfRow(place.Outer())(place.channel);
  }
};

inline constexpr int kPassRows = map_internal::kAhead * map_internal::kBlock;
inline constexpr int kWords = kPassRows / 32;
static_assert(kWords == 32, "each lane of a warp looks at one word");

// The numbers, in order, of the bits that are set in kWords words. All lanes of a warp read the
// same ones.
struct SetBits {
  const unsigned* words;
  unsigned words_left;  // bit w: words[w] is not 0 and was not read yet
  unsigned bits_left = 0;
  int word = 0;

  // Returns the next number, or -1 after the last one.
  __device__ int Next() {
    if (bits_left == 0) {
      if (words_left == 0) return -1;
      word = __ffs(static_cast<int>(words_left)) - 1;
      words_left &= words_left - 1;
      bits_left = words[word];
    }
    const int bit = __ffs(static_cast<int>(bits_left)) - 1;
    bits_left &= bits_left - 1;
    return 32 * word + bit;
  }
};

// A block has one row and kBlock columns at a time. If no earlier row has the same index, it adds
// all rows with that index to the table, else it does nothing. It compares the indices of kPassRows
// rows together. The number of comparisons is rows * (different indices) and does not depend on the
// size of the table. The kernel uses no atomic additions, because their order would differ from run
// to run.
template <class F>
__global__ void __launch_bounds__(map_internal::kBlock)
    IndexAddKernel(F f, int64_t rows, int64_t columns, float* table) {
  constexpr int kBlock = map_internal::kBlock, kAhead = map_internal::kAhead;
  __shared__ unsigned matches[2][kWords];  // bit b of word w: row 32 * w + b of a pass
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int64_t tiles = (columns + kBlock - 1) / kBlock;
  int turn = 0;  // passes write to matches[1] and [0] in turn, so that one barrier is enough
  for (int64_t task = blockIdx.x; task < rows * tiles; task += gridDim.x) {
    const int64_t own = task / tiles, column = task % tiles * kBlock + threadIdx.x;
    const int64_t index = f.Index(own);
    if (index < 0) continue;
    float* const to = table + index * columns + column;
    bool adds = false;
    float sum = 0;
    for (int64_t begin = 0; begin < rows; begin += kPassRows) {
      turn ^= 1;
      bool same[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int64_t row = begin + k * kBlock + threadIdx.x;
        same[k] = row < rows && f.Index(row) == index;
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const unsigned bits = __ballot_sync(~0u, same[k]);
        if (lane == 0) matches[turn][k * (kBlock / 32) + warp] = bits;
      }
      __syncthreads();
      SetBits found = {matches[turn], __ballot_sync(~0u, matches[turn][lane] != 0)};
      int next = found.Next();
      if (!adds && next >= 0) {
        if (begin + next != own) break;
        adds = true;
        if (column < columns) sum = *to;
      }
      while (next >= 0) {
        float ahead[kAhead] = {};
        int count = 0;
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          if (next < 0) continue;
          if (column < columns) ahead[k] = f.OfRow(begin + next)(column);
          next = found.Next();
          ++count;
        }
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          if (k < count) sum += ahead[k];
        }
      }
    }
    if (adds && column < columns) *to = sum;
  }
}
#endif

}  // namespace index_add_internal

// Adds row r of a matrix, f.OfRow(r)(column) for `columns` columns, to row f.Index(r) of `table`,
// for each r of [0, rows); a row with a negative index is left out. Adds all rows to `total`.
// Either array may be null.
template <class F>
void IndexAdd(const Device& device, int64_t rows, int64_t columns, F f, float* table,
              float* total) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (rows * columns == 0) return;
    if (table != nullptr) {
      const int64_t tasks = rows * ((columns + map_internal::kBlock - 1) / map_internal::kBlock);
      Launch(device, index_add_internal::IndexAddKernel<F>,
             static_cast<unsigned>(std::min<int64_t>(tasks, 1 << 16)), map_internal::kBlock, f,
             rows, columns, table);
    }
    if (total != nullptr) {
      AddSums(device, {rows, columns, 1}, index_add_internal::TermOfRow<F>{f}, total);
    }
    return;
  }
#endif
  (void)device;
  ParallelRanges(columns, std::max<int64_t>(16, MinChunk(rows)),
                 index_add_internal::AddColumns<F>{f, rows, columns, table, total});
}

}  // namespace trainer
