#pragma once
// Tiles of scores in the shared memory of a block, and their products, for attention.cc.

#include <cstdint>

#include "trainer/backend/loops/launch.h"
#include "trainer/base/host_device.h"

namespace trainer::cuda {

// A block of threads computes a tile of kScoreTile x kScoreTile scores, a thread kScorePart x
// kScorePart of them. Products are summed in steps of kScoreDepth.
inline constexpr int kScoreTile = 64, kScoreDepth = 16, kScorePart = 4;
inline constexpr int kScoreSide = kScoreTile / kScorePart, kScoreThreads = kScoreSide * kScoreSide;

// The shape of an attention, and the factor of its scores.
struct AttentionSizes {
  int length, heads, size;
  bool causal;
  float scale;

  HD int Tiles() const { return (length - 1) / kScoreTile + 1; }
  HD int Channels() const { return heads * size; }
  HD bool IsVisible(int query, int key) const {
    return query < length && key < length && (!causal || key <= query);
  }
};

// The rows of one head: one per position, with `step` floats from one to the next.
struct HeadRows {
  const float* at;
  int step;
};

// Returns the rows of q (`which` is 0), k (1) or v (2), or of their gradients, of head number
// `index`, counted over all items.
template <class T>
__device__ T* PackedHead(T* qkv, const AttentionSizes& sizes, int64_t index, int which) {
  const int64_t c = sizes.Channels();
  return qkv + index / sizes.heads * sizes.length * 3 * c + which * c +
         index % sizes.heads * sizes.size;
}
// Returns the rows of `out`, or of its gradient, of head number `index`.
template <class T>
__device__ T* OutputHead(T* out, const AttentionSizes& sizes, int64_t index) {
  return out +
         (index / sizes.heads * sizes.length * sizes.heads + index % sizes.heads) * sizes.size;
}

// The shared memory of a block: steps of the two factors of a score, a tile of scores or what is
// computed from them, and a step of the rows that the tile multiplies.
template <int kColumns>
struct AttentionTiles {
  float left[kScoreDepth][kScoreTile + 1], right[kScoreDepth][kScoreTile + 1];
  float scores[kScoreTile][kScoreTile + 1];
  float rows[kScoreDepth][kColumns];
};

// Calls keep(r, c, number) for each of the thread's elements of a tile of kRows x kColumns numbers:
// rows from `first` and columns from `column` on, with zeros outside. Reads all of them at once.
template <int kRows, int kColumns, class F>
__device__ void LoadNumbers(const HeadRows& from, int first, int column,
                            const AttentionSizes& sizes, const F& keep) {
  static_assert(kScoreThreads % kColumns == 0);
  constexpr int kRowsAtOnce = kScoreThreads / kColumns, kTimes = kRows / kRowsAtOnce;
  const int r = threadIdx.x / kColumns, c = threadIdx.x % kColumns;
  const int rows = column + c < sizes.size ? sizes.length - first - r : 0;
  const float* const at = from.at + int64_t{first + r} * from.step + column + c;
  float numbers[kTimes];
#pragma unroll
  for (int k = 0; k < kTimes; ++k) {
    numbers[k] = k * kRowsAtOnce < rows ? at[int64_t{k * kRowsAtOnce} * from.step] : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < kTimes; ++k) keep(r + k * kRowsAtOnce, c, numbers[k]);
}

// Sets sum[i][j] to the product of row y + i * kScoreSide of the tile of `a` and row x + j *
// kScoreSide of the tile of `b`, for thread (y, x). Called by all threads of a block.
template <int kColumns>
__device__ void MultiplyRowTiles(const HeadRows& a, int first_a, const HeadRows& b, int first_b,
                                 const AttentionSizes& sizes, AttentionTiles<kColumns>& tiles,
                                 float sum[kScorePart][kScorePart]) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  for (int i = 0; i < kScorePart; ++i) {
    for (int j = 0; j < kScorePart; ++j) sum[i][j] = 0;
  }
  for (int begin = 0; begin < sizes.size; begin += kScoreDepth) {
    LoadNumbers<kScoreTile, kScoreDepth>(
        a, first_a, begin, sizes, [&](int r, int d, float number) { tiles.left[d][r] = number; });
    LoadNumbers<kScoreTile, kScoreDepth>(
        b, first_b, begin, sizes, [&](int r, int d, float number) { tiles.right[d][r] = number; });
    __syncthreads();
    for (int d = 0; d < kScoreDepth; ++d) {
#pragma unroll
      for (int i = 0; i < kScorePart; ++i) {
#pragma unroll
        for (int j = 0; j < kScorePart; ++j) {
          sum[i][j] += tiles.left[d][y + i * kScoreSide] * tiles.right[d][x + j * kScoreSide];
        }
      }
    }
    __syncthreads();
  }
}

// Adds to sum[i][j] the product of row y + i * kScoreSide of the tile of scores, or with
// kTransposed of that column, and column `column` + x + j * kScoreSide of the tile of rows of
// `from`. Called by all threads of a block, after the scores were written.
template <int kColumns, bool kTransposed>
__device__ void AddTileProduct(const HeadRows& from, int first, int column,
                               const AttentionSizes& sizes, AttentionTiles<kColumns>& tiles,
                               float sum[kScorePart][kColumns / kScoreSide]) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  for (int begin = 0; begin < kScoreTile; begin += kScoreDepth) {
    LoadNumbers<kScoreDepth, kColumns>(
        from, first + begin, column, sizes,
        [&](int r, int c, float number) { tiles.rows[r][c] = number; });
    __syncthreads();
    for (int k = 0; k < kScoreDepth; ++k) {
#pragma unroll
      for (int i = 0; i < kScorePart; ++i) {
        const int at = y + i * kScoreSide;
        const float weight =
            kTransposed ? tiles.scores[begin + k][at] : tiles.scores[at][begin + k];
#pragma unroll
        for (int j = 0; j < kColumns / kScoreSide; ++j) {
          sum[i][j] += weight * tiles.rows[k][x + j * kScoreSide];
        }
      }
    }
    __syncthreads();
  }
}

// Returns the sum or the maximum over the kScoreSide threads that share a row of a tile.
__device__ inline float SumOfRow(float value) {
  for (int step = kScoreSide / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(~0u, value, step);
  }
  return value;
}
__device__ inline float MaxOfRow(float value) {
  for (int step = kScoreSide / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

// Writes the tile of sums to rows [first, first + kScoreTile) and columns from `column` on, each
// row times its factor.
template <int kColumns>
__device__ void StoreTile(const float sum[kScorePart][kColumns / kScoreSide],
                          const float factor[kScorePart], int first, int column,
                          const AttentionSizes& sizes, float* to, int step) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
#pragma unroll
  for (int i = 0; i < kScorePart; ++i) {
    const int row = first + y + i * kScoreSide;
#pragma unroll
    for (int j = 0; j < kColumns / kScoreSide; ++j) {
      const int c = column + x + j * kScoreSide;
      if (row < sizes.length && c < sizes.size) to[int64_t{row} * step + c] = sum[i][j] * factor[i];
    }
  }
}

}  // namespace trainer::cuda
