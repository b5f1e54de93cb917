// Attention in tiles of scores that stay in shared memory. All products are plain loops in f32.

#include <algorithm>

#include "cuda/loops.h"
#include "cuda/plans.h"
#include "trainer/backend/loops/math.h"

namespace trainer::cuda {
namespace {

// A block of threads computes a tile of kScoreTile x kScoreTile scores, a thread kScorePart x
// kScorePart of them. Products are summed in steps of kScoreDepth.
constexpr int kScoreTile = 64, kScoreDepth = 16, kScorePart = 4;
constexpr int kScoreSide = kScoreTile / kScorePart, kScoreThreads = kScoreSide * kScoreSide;

// The shape of an attention, and the factor of its scores.
struct AttentionSizes {
  int64_t batch, length, heads, size;
  bool causal;
  float scale;

  HD int64_t Tiles() const { return (length + kScoreTile - 1) / kScoreTile; }
  HD bool IsVisible(int64_t query, int64_t key) const {
    return query < length && key < length && (!causal || key <= query);
  }
};

// The rows of one head: one per position, with `step` floats from one to the next.
struct HeadRows {
  const float* at;
  int64_t step;
};

// Returns the rows of q (`which` is 0), k (1) or v (2), or of their gradients, of head number
// `index`, counted over all items.
template <class T>
__device__ T* PackedHead(T* qkv, const AttentionSizes& sizes, int64_t index, int which) {
  const int64_t c = sizes.heads * sizes.size;
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

// Loads columns [begin, begin + kScoreDepth) of the tile of rows from `first` on, with zeros
// outside.
__device__ void LoadColumns(const HeadRows& from, int64_t first, int64_t begin,
                            const AttentionSizes& sizes, float tile[kScoreDepth][kScoreTile + 1]) {
  for (int e = static_cast<int>(threadIdx.x); e < kScoreDepth * kScoreTile; e += kScoreThreads) {
    const int d = e % kScoreDepth, r = e / kScoreDepth;
    const bool inside = first + r < sizes.length && begin + d < sizes.size;
    tile[d][r] = inside ? from.at[(first + r) * from.step + begin + d] : 0.0f;
  }
}

// Sets sum[i][j] to the product of row y + i * kScoreSide of the tile of `a` and row x + j *
// kScoreSide of the tile of `b`, for thread (y, x). Called by all threads of a block.
template <int kColumns>
__device__ void MultiplyRowTiles(const HeadRows& a, int64_t first_a, const HeadRows& b,
                                 int64_t first_b, const AttentionSizes& sizes,
                                 AttentionTiles<kColumns>& tiles,
                                 float sum[kScorePart][kScorePart]) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  for (int i = 0; i < kScorePart; ++i) {
    for (int j = 0; j < kScorePart; ++j) sum[i][j] = 0;
  }
  for (int64_t begin = 0; begin < sizes.size; begin += kScoreDepth) {
    LoadColumns(a, first_a, begin, sizes, tiles.left);
    LoadColumns(b, first_b, begin, sizes, tiles.right);
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
__device__ void AddTileProduct(const HeadRows& from, int64_t first, int64_t column,
                               const AttentionSizes& sizes, AttentionTiles<kColumns>& tiles,
                               float sum[kScorePart][kColumns / kScoreSide]) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  for (int begin = 0; begin < kScoreTile; begin += kScoreDepth) {
    for (int e = static_cast<int>(threadIdx.x); e < kScoreDepth * kColumns; e += kScoreThreads) {
      const int r = e / kColumns, c = e % kColumns;
      const int64_t row = first + begin + r;
      const bool inside = row < sizes.length && column + c < sizes.size;
      tiles.rows[r][c] = inside ? from.at[row * from.step + column + c] : 0.0f;
    }
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
__device__ float SumOfRow(float value) {
  for (int step = kScoreSide / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(~0u, value, step);
  }
  return value;
}
__device__ float MaxOfRow(float value) {
  for (int step = kScoreSide / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

// Writes the tile of sums to rows [first, first + kScoreTile) and columns from `column` on, each
// row times its factor.
template <int kColumns>
__device__ void StoreTile(const float sum[kScorePart][kColumns / kScoreSide],
                          const float factor[kScorePart], int64_t first, int64_t column,
                          const AttentionSizes& sizes, float* to, int64_t step) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
#pragma unroll
  for (int i = 0; i < kScorePart; ++i) {
    const int64_t row = first + y + i * kScoreSide;
#pragma unroll
    for (int j = 0; j < kColumns / kScoreSide; ++j) {
      const int64_t c = column + x + j * kScoreSide;
      if (row < sizes.length && c < sizes.size) to[row * step + c] = sum[i][j] * factor[i];
    }
  }
}

// Computes up to kColumns columns of the outputs of a tile of queries per block: blockIdx.x counts
// the tiles of all heads, blockIdx.y the groups of columns.
template <int kColumns>
__global__ void __launch_bounds__(kScoreThreads)
    AttentionForwardKernel(AttentionSizes sizes, const float* qkv, float* out, float* log_sums) {
  __shared__ AttentionTiles<kColumns> tiles;
  const int64_t head = blockIdx.x / sizes.Tiles(), column = int64_t{blockIdx.y} * kColumns;
  const int64_t first = blockIdx.x % sizes.Tiles() * kScoreTile;
  const int64_t channels = sizes.heads * sizes.size;
  const HeadRows q{PackedHead(qkv, sizes, head, 0), 3 * channels};
  const HeadRows k{PackedHead(qkv, sizes, head, 1), 3 * channels};
  const HeadRows v{PackedHead(qkv, sizes, head, 2), 3 * channels};
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  float result[kScorePart][kColumns / kScoreSide] = {}, sum[kScorePart] = {}, top[kScorePart];
  for (int i = 0; i < kScorePart; ++i) top[i] = -FLT_MAX;
  const int64_t end = sizes.causal ? first + kScoreTile : sizes.length;
  for (int64_t key = 0; key < end && key < sizes.length; key += kScoreTile) {
    float score[kScorePart][kScorePart];
    MultiplyRowTiles(q, first, k, key, sizes, tiles, score);
#pragma unroll
    for (int i = 0; i < kScorePart; ++i) {
      const int64_t row = first + y + i * kScoreSide;
      float highest = -FLT_MAX, added = 0;
      for (int j = 0; j < kScorePart; ++j) {
        score[i][j] *= sizes.scale;
        if (sizes.IsVisible(row, key + x + j * kScoreSide)) highest = fmaxf(highest, score[i][j]);
      }
      const float now = fmaxf(top[i], MaxOfRow(highest));
      for (int j = 0; j < kScorePart; ++j) {
        const bool visible = sizes.IsVisible(row, key + x + j * kScoreSide);
        const float p = visible ? Exp(score[i][j] - now) : 0.0f;
        tiles.scores[y + i * kScoreSide][x + j * kScoreSide] = p;
        added += p;
      }
      const float kept = Exp(top[i] - now);
      sum[i] = sum[i] * kept + SumOfRow(added);
      for (int j = 0; j < kColumns / kScoreSide; ++j) result[i][j] *= kept;
      top[i] = now;
    }
    __syncthreads();
    AddTileProduct<kColumns, false>(v, key, column, sizes, tiles, result);
  }
  float factor[kScorePart];
  for (int i = 0; i < kScorePart; ++i) {
    const int64_t row = first + y + i * kScoreSide;
    factor[i] = 1 / sum[i];
    if (column == 0 && x == 0 && row < sizes.length) {
      log_sums[head * sizes.length + row] = top[i] + logf(sum[i]);
    }
  }
  StoreTile<kColumns>(result, factor, first, column, sizes, OutputHead(out, sizes, head), channels);
}

// The operands of the backward kernels; delta (batch, heads, length) is the sum of out * dout over
// a head.
struct AttentionOperands {
  AttentionSizes sizes;
  const float *qkv, *dout, *log_sums, *delta;
  float* dqkv;
};

// The rows of one head that the backward kernels read.
struct BackwardRows {
  HeadRows q, k, v, dout;

  __device__ BackwardRows(const AttentionOperands& in, int64_t head)
      : q{PackedHead(in.qkv, in.sizes, head, 0), 3 * in.sizes.heads * in.sizes.size},
        k{PackedHead(in.qkv, in.sizes, head, 1), 3 * in.sizes.heads * in.sizes.size},
        v{PackedHead(in.qkv, in.sizes, head, 2), 3 * in.sizes.heads * in.sizes.size},
        dout{OutputHead(in.dout, in.sizes, head), in.sizes.heads * in.sizes.size} {}
};

// Computes the thread's probabilities of a tile of scores and the gradients of the products q . k.
// Called by all threads of a block.
template <int kColumns>
__device__ void ComputeScoreGradients(const AttentionOperands& in, const BackwardRows& rows,
                                      int64_t head, int64_t query, int64_t key,
                                      AttentionTiles<kColumns>& tiles,
                                      float p[kScorePart][kScorePart],
                                      float gradient[kScorePart][kScorePart]) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  MultiplyRowTiles(rows.q, query, rows.k, key, in.sizes, tiles, p);
  MultiplyRowTiles(rows.dout, query, rows.v, key, in.sizes, tiles, gradient);
#pragma unroll
  for (int i = 0; i < kScorePart; ++i) {
    const int64_t row = query + y + i * kScoreSide, at = head * in.sizes.length + row;
    const float top = row < in.sizes.length ? in.log_sums[at] : 0.0f;
    const float mean = row < in.sizes.length ? in.delta[at] : 0.0f;
#pragma unroll
    for (int j = 0; j < kScorePart; ++j) {
      const bool visible = in.sizes.IsVisible(row, key + x + j * kScoreSide);
      p[i][j] = visible ? Exp(p[i][j] * in.sizes.scale - top) : 0.0f;
      gradient[i][j] = visible ? p[i][j] * (gradient[i][j] - mean) * in.sizes.scale : 0.0f;
    }
  }
}

// Writes the thread's part of a tile to shared memory, and waits until all threads have.
template <int kColumns>
__device__ void ShareTile(const float part[kScorePart][kScorePart],
                          AttentionTiles<kColumns>& tiles) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  for (int i = 0; i < kScorePart; ++i) {
    for (int j = 0; j < kScorePart; ++j) {
      tiles.scores[y + i * kScoreSide][x + j * kScoreSide] = part[i][j];
    }
  }
  __syncthreads();
}

// Computes the gradients of a tile of keys and values per block.
template <int kColumns>
__global__ void __launch_bounds__(kScoreThreads) AttentionKeyGradientKernel(AttentionOperands in) {
  __shared__ AttentionTiles<kColumns> tiles;
  const AttentionSizes& sizes = in.sizes;
  const int64_t head = blockIdx.x / sizes.Tiles(), column = int64_t{blockIdx.y} * kColumns;
  const int64_t key = blockIdx.x % sizes.Tiles() * kScoreTile;
  const BackwardRows rows(in, head);
  float dk[kScorePart][kColumns / kScoreSide] = {}, dv[kScorePart][kColumns / kScoreSide] = {};
  for (int64_t query = sizes.causal ? key : 0; query < sizes.length; query += kScoreTile) {
    float p[kScorePart][kScorePart], gradient[kScorePart][kScorePart];
    ComputeScoreGradients(in, rows, head, query, key, tiles, p, gradient);
    ShareTile(p, tiles);
    AddTileProduct<kColumns, true>(rows.dout, query, column, sizes, tiles, dv);
    ShareTile(gradient, tiles);
    AddTileProduct<kColumns, true>(rows.q, query, column, sizes, tiles, dk);
  }
  const float ones[kScorePart] = {1, 1, 1, 1};
  const int64_t step = 3 * sizes.heads * sizes.size;
  StoreTile<kColumns>(dk, ones, key, column, sizes, PackedHead(in.dqkv, sizes, head, 1), step);
  StoreTile<kColumns>(dv, ones, key, column, sizes, PackedHead(in.dqkv, sizes, head, 2), step);
}

// Computes the gradients of a tile of queries per block. It computes the scores a second time, so
// that no two blocks add to one gradient and sums repeat.
template <int kColumns>
__global__ void __launch_bounds__(kScoreThreads)
    AttentionQueryGradientKernel(AttentionOperands in) {
  __shared__ AttentionTiles<kColumns> tiles;
  const AttentionSizes& sizes = in.sizes;
  const int64_t head = blockIdx.x / sizes.Tiles(), column = int64_t{blockIdx.y} * kColumns;
  const int64_t query = blockIdx.x % sizes.Tiles() * kScoreTile;
  const BackwardRows rows(in, head);
  float dq[kScorePart][kColumns / kScoreSide] = {};
  const int64_t end = sizes.causal ? query + kScoreTile : sizes.length;
  for (int64_t key = 0; key < end && key < sizes.length; key += kScoreTile) {
    float p[kScorePart][kScorePart], gradient[kScorePart][kScorePart];
    ComputeScoreGradients(in, rows, head, query, key, tiles, p, gradient);
    ShareTile(gradient, tiles);
    AddTileProduct<kColumns, false>(rows.k, key, column, sizes, tiles, dq);
  }
  const float ones[kScorePart] = {1, 1, 1, 1};
  StoreTile<kColumns>(dq, ones, query, column, sizes, PackedHead(in.dqkv, sizes, head, 0),
                      3 * sizes.heads * sizes.size);
}

// Computes delta: the sum of out * dout over the head of one position.
struct HeadDots {
  const float *out, *dout;
  float* delta;
  int64_t length, heads, size;

  template <class Row>
  HD void operator()(const Row& row) const {
    const int64_t head = row.index / length, position = row.index % length;
    const int64_t at = ((head / heads * length + position) * heads + head % heads) * size;
    const float sum = row.Sum([&](int64_t d) { return out[at + d] * dout[at + d]; });
    row.Once([&] { delta[row.index] = sum; });
  }
};

// Launches the kernels above, with wider blocks for heads of more than 64 numbers.
class GpuAttention final : public AttentionPrimitive {
 public:
  GpuAttention(const Device& device, const AttentionDesc& desc)
      : loops_(device), desc_(desc), sizes_{desc.batch, desc.length, desc.heads,
                                            desc.size,  desc.causal, desc.Scale()} {}

  std::string kernel() const override { return "tiles"; }
  size_t ScratchBytes() const override {
    return static_cast<size_t>(desc_.LogSums()) * sizeof(float);
  }

  void Forward(const float* qkv, float* out, float* log_sums, std::span<std::byte>) override {
    ForColumns([&](auto columns) {
      Launch(loops_.device(), AttentionForwardKernel<columns()>, Blocks(columns()),
             dim3(kScoreThreads), sizes_, qkv, out, log_sums);
    });
  }

  void Backward(const AttentionSaved& in, float* dqkv, std::span<std::byte> scratch) override {
    auto* const delta = reinterpret_cast<float*>(scratch.data());
    loops_.ForRows(desc_.LogSums(), desc_.size,
                   HeadDots{in.out, in.dout, delta, desc_.length, desc_.heads, desc_.size});
    const AttentionOperands operands{sizes_, in.qkv, in.dout, in.log_sums, delta, dqkv};
    ForColumns([&](auto columns) {
      Launch(loops_.device(), AttentionKeyGradientKernel<columns()>, Blocks(columns()),
             dim3(kScoreThreads), operands);
      Launch(loops_.device(), AttentionQueryGradientKernel<columns()>, Blocks(columns()),
             dim3(kScoreThreads), operands);
    });
  }

 private:
  // Calls f with the number of columns that a block computes.
  template <class F>
  void ForColumns(const F& f) const {
    if (desc_.size <= 64) return f(std::integral_constant<int, 64>{});
    f(std::integral_constant<int, 128>{});
  }
  // Returns a block for each tile of each head, and for each group of columns.
  dim3 Blocks(int columns) const {
    return {static_cast<unsigned>(desc_.batch * desc_.heads * sizes_.Tiles()),
            static_cast<unsigned>((desc_.size + columns - 1) / columns)};
  }

  Loops loops_;
  AttentionDesc desc_;
  AttentionSizes sizes_;
};

}  // namespace

std::unique_ptr<AttentionPrimitive> NewAttention(const Device& device, const AttentionDesc& desc) {
  return std::make_unique<GpuAttention>(device, desc);
}

}  // namespace trainer::cuda
