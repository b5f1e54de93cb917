// Attention in tiles of scores that stay in shared memory. All products are plain loops in f32.

#include "cuda/kernels/attention_tiles.h"
#include "cuda/loops.h"
#include "cuda/plans.h"
#include "trainer/backend/loops/math.h"
#include "trainer/base/error/error.h"

namespace trainer::cuda {
namespace {

// Computes up to kColumns columns of the outputs of a tile of queries per block: blockIdx.x counts
// the tiles of all heads, blockIdx.y the groups of columns.
template <int kColumns>
__global__ void __launch_bounds__(kScoreThreads)
    AttentionForwardKernel(AttentionSizes sizes, const float* qkv, float* out, float* log_sums) {
  __shared__ AttentionTiles<kColumns> tiles;
  const int tiles_of_head = sizes.Tiles(), block = static_cast<int>(blockIdx.x);
  const int head = block / tiles_of_head, column = static_cast<int>(blockIdx.y) * kColumns;
  const int first = block % tiles_of_head * kScoreTile;
  const int channels = sizes.Channels();
  const HeadRows q{PackedHead(qkv, sizes, head, 0), 3 * channels};
  const HeadRows k{PackedHead(qkv, sizes, head, 1), 3 * channels};
  const HeadRows v{PackedHead(qkv, sizes, head, 2), 3 * channels};
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  float result[kScorePart][kColumns / kScoreSide] = {}, sum[kScorePart] = {}, top[kScorePart];
  for (int i = 0; i < kScorePart; ++i) top[i] = -FLT_MAX;
  const int end = sizes.causal ? first + kScoreTile : sizes.length;
  for (int key = 0; key < end && key < sizes.length; key += kScoreTile) {
    float score[kScorePart][kScorePart];
    MultiplyRowTiles(q, first, k, key, sizes, tiles, score);
#pragma unroll
    for (int i = 0; i < kScorePart; ++i) {
      const int row = first + y + i * kScoreSide;
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
    const int row = first + y + i * kScoreSide;
    factor[i] = 1 / sum[i];
    if (column == 0 && x == 0 && row < sizes.length) {
      log_sums[int64_t{head} * sizes.length + row] = top[i] + logf(sum[i]);
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
      : q{PackedHead(in.qkv, in.sizes, head, 0), 3 * in.sizes.Channels()},
        k{PackedHead(in.qkv, in.sizes, head, 1), 3 * in.sizes.Channels()},
        v{PackedHead(in.qkv, in.sizes, head, 2), 3 * in.sizes.Channels()},
        dout{OutputHead(in.dout, in.sizes, head), in.sizes.Channels()} {}
};

// Computes the thread's probabilities of a tile of scores and the gradients of the products q . k.
// Called by all threads of a block.
template <int kColumns>
__device__ void ComputeScoreGradients(const AttentionOperands& in, const BackwardRows& rows,
                                      int head, int query, int key, AttentionTiles<kColumns>& tiles,
                                      float p[kScorePart][kScorePart],
                                      float gradient[kScorePart][kScorePart]) {
  const int y = threadIdx.x / kScoreSide, x = threadIdx.x % kScoreSide;
  MultiplyRowTiles(rows.q, query, rows.k, key, in.sizes, tiles, p);
  MultiplyRowTiles(rows.dout, query, rows.v, key, in.sizes, tiles, gradient);
#pragma unroll
  for (int i = 0; i < kScorePart; ++i) {
    const int row = query + y + i * kScoreSide;
    const int64_t at = int64_t{head} * in.sizes.length + row;
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
  const int tiles_of_head = sizes.Tiles(), block = static_cast<int>(blockIdx.x);
  const int head = block / tiles_of_head, column = static_cast<int>(blockIdx.y) * kColumns;
  const int key = block % tiles_of_head * kScoreTile;
  const BackwardRows rows(in, head);
  float dk[kScorePart][kColumns / kScoreSide] = {}, dv[kScorePart][kColumns / kScoreSide] = {};
  for (int query = sizes.causal ? key : 0; query < sizes.length; query += kScoreTile) {
    float p[kScorePart][kScorePart], gradient[kScorePart][kScorePart];
    ComputeScoreGradients(in, rows, head, query, key, tiles, p, gradient);
    ShareTile(p, tiles);
    AddTileProduct<kColumns, true>(rows.dout, query, column, sizes, tiles, dv);
    ShareTile(gradient, tiles);
    AddTileProduct<kColumns, true>(rows.q, query, column, sizes, tiles, dk);
  }
  const float ones[kScorePart] = {1, 1, 1, 1};
  const int step = 3 * sizes.Channels();
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
  const int tiles_of_head = sizes.Tiles(), block = static_cast<int>(blockIdx.x);
  const int head = block / tiles_of_head, column = static_cast<int>(blockIdx.y) * kColumns;
  const int query = block % tiles_of_head * kScoreTile;
  const BackwardRows rows(in, head);
  float dq[kScorePart][kColumns / kScoreSide] = {};
  const int end = sizes.causal ? query + kScoreTile : sizes.length;
  for (int key = 0; key < end && key < sizes.length; key += kScoreTile) {
    float p[kScorePart][kScorePart], gradient[kScorePart][kScorePart];
    ComputeScoreGradients(in, rows, head, query, key, tiles, p, gradient);
    ShareTile(gradient, tiles);
    AddTileProduct<kColumns, false>(rows.k, key, column, sizes, tiles, dq);
  }
  const float ones[kScorePart] = {1, 1, 1, 1};
  StoreTile<kColumns>(dq, ones, query, column, sizes, PackedHead(in.dqkv, sizes, head, 0),
                      3 * sizes.Channels());
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

// Returns the sizes as the kernels count them, in 32 bits.
AttentionSizes Narrow(const AttentionDesc& desc) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (desc.length >= kMost || 3 * desc.Channels() >= kMost) {
    throw Error(ErrorCode::kConfig,
                "attention on a GPU supports less than 2^30 positions and 2^30 / 3 channels");
  }
  return {static_cast<int>(desc.length), static_cast<int>(desc.heads), static_cast<int>(desc.size),
          desc.causal, desc.Scale()};
}

// Launches the kernels above, with wider blocks for heads of more than 64 numbers.
class GpuAttention final : public AttentionPrimitive {
 public:
  GpuAttention(const Device& device, const AttentionDesc& desc)
      : loops_(device), desc_(desc), sizes_(Narrow(desc)) {}

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
