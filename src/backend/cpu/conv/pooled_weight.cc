#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cpu/conv/segment.h"
#include "cpu/plans.h"
#include "cpu/pool/fast_pool.h"
#include "desc_checks.h"
#include "trainer/backend/loops/parallel_for.h"

namespace trainer::cpu {
namespace {

// The outputs of a pool that one list of windows describes; arrays are (count, channels).
struct PooledBlock {
  const float* dy = nullptr;
  const uint8_t* winners = nullptr;
  int64_t count = 0, channels = 0;
  const int32_t* first = nullptr;  // where the first pixel's window begins, by output of the pool
  int32_t kernel_w = 1;            // of the pool
  int32_t down = 0, across = 0;  // from a pixel's window to the next one's, below and to the right
  int32_t* offset = nullptr;     // where the winner's window begins
  float* value = nullptr;        // the gradient of the winner, 0 if there is none
  float* sums = nullptr;         // (channels): the sum of `value`
};

// Lists the windows of the winners of a block.
template <class V>
struct ListWinners {
  static TRAINER_INLINE void Run(const PooledBlock& b) {
    using I = typename V::I;
    using F = typename V::F;
    const int32_t inverse = ((1 << 16) + b.kernel_w - 1) / b.kernel_w;  // exact up to 255
    const int32_t next_row = b.down - b.kernel_w * b.across;
    ForBlocks<V::kLanes>(
        b.channels, [&](int64_t c) __attribute__((always_inline)) {
          F sum = {};
          for (int64_t i = 0, at = c; i < b.count; ++i, at += b.channels) {
            I winner;
            F value;
            V::LoadInts(winner, b.winners + at);
            V::LoadTo(value, b.dy + at);
            const I row = winner * inverse >> 16;
            const I offset = b.first[i] + winner * b.across + row * next_row;
            const I none = winner == kNoWinner<uint8_t>;
            value = none ? F{} : value;
            V::StoreInts(b.offset + at, none ? I{} : offset);
            V::StoreTo(b.value + at, value);
            sum += value;
          }
          V::StoreTo(b.sums + c, sum);
        });
  }
};

// Copies all windows of one row of a padded image, `wide` floats each, to aligned memory.
template <class V>
struct CopyWindows {
  static TRAINER_INLINE void Run(const float* row, int64_t windows, int64_t step, int64_t wide,
                                 float* to) {
    for (int64_t w = 0; w < windows; ++w, row += step) {
      for (int64_t k = 0; k < wide; k += V::kLanes, to += V::kLanes) {
        typename V::F part;
        V::LoadTo(part, row + k);
        V::StoreTo(to, part);
      }
    }
  }
};

// `count` windows of x with one factor each, whose sum is
//   g[i, k] += sum over windows e of value[e * step] * x[offset[e * step] + i * x_row + k]
// for i < rows, k < length, with g[i, k] at g + i * length + k. `length` is 8 or a multiple of 16.
struct WindowSum {
  const float* x;
  const int32_t* offset;
  const float* value;
  int64_t count, step, x_row;
  float* g;
  int64_t rows, length;
};

// The register blocking of a WindowSum for vectors of L floats.
template <int L>
struct WindowBlocking {
  static constexpr int kSums = L == 16 ? 24 : 12;  // accumulators that fit the registers
  static constexpr int kMaxVectors = 2;
  // Returns how many rows a tile of this many vectors may have.
  static constexpr int Rows(int vectors) { return 12 / vectors; }
  // Returns how many windows a tile adds at a time: two if the tile is so small that the sums of
  // one would wait for each other.
  static constexpr int Windows(int rows, int vectors) {
    return 2 * rows * vectors <= kSums ? 2 : 1;
  }
};

// Computes R rows by N vectors of a WindowSum in registers.
template <class V, int R, int N>
struct WindowTile {
  static TRAINER_INLINE void Run(const WindowSum& t, const float* x, float* g) {
    constexpr int kWindows = WindowBlocking<V::kLanes>::Windows(R, N);
    using F = typename V::F;
    F sum[kWindows][R][N] = {};
    int64_t e = 0;
    const auto add = [&](F(&to)[R][N]) __attribute__((always_inline)) {
      const float* from = x + t.offset[e * t.step];
      F factor;
      V::Broadcast(factor, t.value + e * t.step);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < N; ++v) {
          F next;
          V::LoadTo(next, from + r * t.x_row + v * V::kLanes);
          to[r][v] += factor * next;
        }
      }
      ++e;
    };
    while (e + kWindows <= t.count) {
#pragma GCC unroll 2
      for (int w = 0; w < kWindows; ++w) add(sum[w]);
    }
    while (e < t.count) add(sum[0]);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < N; ++v) {
        F total;
        V::LoadTo(total, g + r * t.length + v * V::kLanes);
#pragma GCC unroll 2
        for (int w = 0; w < kWindows; ++w) total += sum[w][r][v];
        V::StoreTo(g + r * t.length + v * V::kLanes, total);
      }
    }
  }
};

using WindowCall = void (*)(const WindowSum&, const float*, float*);
// Returns WindowTile<V, R, N> for R = 1, 2, ..., by R - 1.
template <class V, int N, int... R>
constexpr auto WindowTiles(std::integer_sequence<int, R...>) {
  return std::array<WindowCall, sizeof...(R)>{
      CompiledFor<V, WindowTile<V, R + 1, N>, const WindowSum&, const float*, float*>()...};
}

// Adds the sum of the windows to g.
template <class V>
void AddWindows(const WindowSum& t) {
  using Blocking = WindowBlocking<V::kLanes>;
  static constexpr auto kOne =
      WindowTiles<V, 1>(std::make_integer_sequence<int, Blocking::Rows(1)>{});
  static constexpr auto kTwo =
      WindowTiles<V, 2>(std::make_integer_sequence<int, Blocking::Rows(2)>{});
  ForTiles(t.length / V::kLanes, Blocking::kMaxVectors, [&](int64_t v0, int64_t v1) {
    const int64_t vectors = v1 - v0, column = v0 * V::kLanes;
    ForTiles(t.rows, Blocking::Rows(static_cast<int>(vectors)), [&](int64_t i0, int64_t i1) {
      const WindowCall tile = vectors == 1 ? kOne[i1 - i0 - 1] : kTwo[i1 - i0 - 1];
      tile(t, t.x + i0 * t.x_row + column, t.g + i0 * t.length + column);
    });
  });
}

// Adds, for each output of the pool, its gradient times the window of x that the winner was
// computed from. The rows of the windows are copied to a table, so that they start at multiples of
// a vector. A block, some rows of the pool's outputs in one image, is processed channel by channel.
// Each part of the work sums into its own gradient; the parts are then added in a fixed order.
class WinnersGradient final : public PooledConvGradient {
 public:
  WinnersGradient(const ConvDesc& conv, const PoolDesc& pool)
      : s_(conv),
        x_shape_(conv.InShape()),
        pool_(pool),
        wide_(WindowWidth(s_)),
        row_(s_.ow * wide_),
        blocks_(Blocks()),
        channel_(s_.kh * wide_),
        bias_at_(s_.m * channel_),
        grad_(bias_at_ + s_.m_wide),
        parts_(Parts()),
        list_((pool.out_h + blocks_ - 1) / blocks_ * pool.out_w * s_.m),
        grads_(scratch_.Add<float>(parts_ * grad_)),
        images_(scratch_.Add<float>(s_.threads * Image())),
        tables_(scratch_.Add<float>(s_.threads * TableFloats(s_))),
        offsets_(scratch_.Add<int32_t>(s_.threads * list_)),
        values_(scratch_.Add<float>(s_.threads * list_)),
        sums_(scratch_.Add<float>(s_.threads * s_.m_wide)) {
    for (int64_t h = 0; h < pool.out_h; ++h) {
      for (int64_t w = 0; w < pool.out_w; ++w) {
        first_.push_back(static_cast<int32_t>((h * pool.stride_h - pool.pad_h) * s_.sh * row_ +
                                              (w * pool.stride_w - pool.pad_w) * wide_));
      }
    }
  }

  std::string kernel() const override { return "own pooled windows"; }
  size_t ScratchBytes() const override { return scratch_.Bytes(); }
  void Run(ConstTensor x, ConstTensor dy, std::span<const std::byte> workspace, float* dweight,
           float* dbias, std::span<std::byte> scratch) override {
    ExpectPlanned("convolution (input)", x_shape_, DType::kF32, x);
    ExpectPlanned("pooling (output gradient)", pool_.OutShape(), DType::kF32, dy);
    float* const grads = grads_.At(scratch);
    const auto* winners = reinterpret_cast<const uint8_t*>(workspace.data());
    const int64_t blocks = s_.batch * blocks_;
    RunParts(static_cast<int>(parts_), s_.threads, [&](int part, int thread) {
      RunBlocks(blocks * part / parts_, blocks * (part + 1) / parts_, x.As<float>(), dy.As<float>(),
                winners, thread, scratch, grads + part * grad_);
    });
    AddParts(grads, dweight);
    if (!s_.bias || dbias == nullptr) return;
    for (int64_t m = 0; m < s_.m; ++m) dbias[m] += SumOfParts(grads + bias_at_ + m, parts_, grad_);
  }

  // Returns the floats of the table of windows of an image.
  static int64_t TableFloats(const SegmentShape& s) {
    return s.padded / s.row * s.ow * WindowWidth(s);
  }

 private:
  // Returns the floats of a row of a window in the table.
  static int64_t WindowWidth(const SegmentShape& s) { return s.segment <= 8 ? 8 : s.segment_wide; }
  // Returns the floats of a padded image, from which rows of windows are read as whole vectors.
  int64_t Image() const { return RoundUpToLanes(s_.padded + wide_); }

  // Returns the number of blocks of an image, so that the windows of a block stay in the
  // first-level cache.
  int64_t Blocks() const {
    constexpr int64_t kBytes = 32 << 10;
    const int64_t held = kBytes / 4 / row_;  // rows of the table
    const int64_t least = (pool_.kernel_h - 1) * s_.sh + (s_.kh - 1) * s_.dh + 1;
    const int64_t rows = std::max<int64_t>((held - least) / (pool_.stride_h * s_.sh) + 1, 1);
    return (pool_.out_h + rows - 1) / rows;
  }
  // Returns the number of parts of the work, each of at least one block.
  int64_t Parts() const {
    const int64_t blocks = s_.batch * blocks_;
    return std::min(s_.threads * GradientPartsPerThread(grad_, blocks), blocks);
  }

  // Sets `grad` to the sum over blocks [begin, end) of all images' blocks.
  void RunBlocks(int64_t begin, int64_t end, const float* x, const float* dy,
                 const uint8_t* winners, int thread, std::span<std::byte> scratch,
                 float* grad) const {
    float* const image = images_.At(scratch) + thread * Image();
    float* const table = tables_.At(scratch) + thread * TableFloats(s_);
    PooledBlock block = {.channels = s_.m,
                         .kernel_w = static_cast<int32_t>(pool_.kernel_w),
                         .down = static_cast<int32_t>(s_.sh * row_),
                         .across = static_cast<int32_t>(wide_),
                         .offset = offsets_.At(scratch) + thread * list_,
                         .value = values_.At(scratch) + thread * list_,
                         .sums = sums_.At(scratch) + thread * s_.m_wide};
    std::fill_n(grad, grad_, 0.0f);
    std::fill_n(image, Image(), 0.0f);
    for (int64_t held = -1; begin < end; ++begin) {
      const int64_t n = begin / blocks_, b = begin % blocks_;
      if (n != held) {
        s_.CopyInside(x + n * s_.x_image, image);
        FillTable(image, table);
        held = n;
      }
      const int64_t first = pool_.out_h * b / blocks_ * pool_.out_w;
      const int64_t at = (n * pool_.out_h * pool_.out_w + first) * s_.m;
      block.dy = dy + at;
      block.winners = winners + at;
      block.count = pool_.out_h * (b + 1) / blocks_ * pool_.out_w - first;
      block.first = first_.data() + first;
      AddBlock(block, table, grad);
    }
  }

  // Copies the windows of a padded image to `table`: (rows of the image, windows of a row, wide_).
  void FillTable(const float* image, float* table) const {
    for (int64_t h = 0; h < s_.padded / s_.row; ++h) {
      CompiledFor<Lanes<8>, CopyWindows<Lanes<8>>, const float*, int64_t, int64_t, int64_t,
                  float*>()(image + h * s_.row, s_.ow, s_.sw * s_.c, wide_, table + h * row_);
    }
  }

  // Adds the contribution of one block to `grad`.
  void AddBlock(const PooledBlock& block, const float* table, float* grad) const {
    if (LanesFor(s_.m) == 16) {
      CompiledFor<Lanes<16>, ListWinners<Lanes<16>>, const PooledBlock&>()(block);
    } else {
      CompiledFor<Lanes<8>, ListWinners<Lanes<8>>, const PooledBlock&>()(block);
    }
    for (int64_t m = 0; m < s_.m; ++m) {
      const WindowSum sum = {.x = table,
                             .offset = block.offset + m,
                             .value = block.value + m,
                             .count = block.count,
                             .step = s_.m,
                             .x_row = s_.dh * row_,
                             .g = grad + m * channel_,
                             .rows = s_.kh,
                             .length = wide_};
      LanesFor(wide_) == 16 ? AddWindows<Lanes<16>>(sum) : AddWindows<Lanes<8>>(sum);
      grad[bias_at_ + m] += block.sums[m];
    }
  }

  // Adds the gradients of all parts, (M, KH, (KW, C) wide), in the order of the parts, to `dweight`
  // (M, C, KH, KW).
  void AddParts(const float* grads, float* dweight) const {
    const int64_t taps = s_.kh * s_.kw;
    ParallelRanges(s_.m, 1 + 4096 / channel_, [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m) {
        for (int64_t i = 0; i < s_.kh; ++i) {
          const float* from = grads + m * channel_ + i * wide_;
          float* to = dweight + m * taps * s_.c + i * s_.kw;
          for (int64_t k = 0; k < s_.segment; ++k) {
            to[k % s_.c * taps + k / s_.c] += SumOfParts(from + k, parts_, grad_);
          }
        }
      }
    });
  }

  SegmentShape s_;
  Shape x_shape_;
  PoolDesc pool_;
  int64_t wide_, row_;                // floats in a row of a window, and in a row of the table
  int64_t blocks_;                    // of an image
  int64_t channel_, bias_at_, grad_;  // a channel's gradient, offset of the bias's, and all
  int64_t parts_;                     // of the work, each with its own gradient
  int64_t list_;                      // maximum windows of a block, all channels together
  std::vector<int32_t> first_;        // see PooledBlock, for all outputs of an image
  ScratchLayout scratch_;
  ScratchRegion<float> grads_, images_, tables_;
  ScratchRegion<int32_t> offsets_;
  ScratchRegion<float> values_, sums_;
};

}  // namespace

std::unique_ptr<PooledConvGradient> NewPooledConvGradient(const ConvDesc& conv,
                                                          const PoolDesc& pool) {
  constexpr int64_t kMaxChannels = 4;  // with more, the input is hardly an image without gradient
  constexpr int64_t kMaxTable = (256 << 10) / 4;  // stays in the second-level cache
  if (!SegmentsRefuseForwardOrData(conv).empty() || conv.in_channels > kMaxChannels) return nullptr;
  if (pool.method != PoolMethod::kMax || !HasByteTaps(pool)) return nullptr;
  if (conv.out_channels < 8) return nullptr;
  if (WinnersGradient::TableFloats(SegmentShape(conv)) > kMaxTable) return nullptr;
  // If more than a third of the convolution's outputs win, dense products are faster.
  const bool few = pool.out_h * pool.out_w * 3 <= pool.in_h * pool.in_w;
  return few ? std::make_unique<WinnersGradient>(conv, pool) : nullptr;
}

}  // namespace trainer::cpu
