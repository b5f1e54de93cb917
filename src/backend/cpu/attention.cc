#include <algorithm>
#include <cmath>

#include "cpu/onednn.h"
#include "cpu/plans.h"
#include "trainer/backend/loops/cpu_loops.h"
#include "trainer/backend/loops/math.h"
#include "trainer/backend/memory/library_call.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer::cpu {
namespace {

// About as many queries and keys form a block. A block of scores is 32 KiB, so that it stays in the
// second-level cache together with the queries, keys and values that it is made from.
constexpr int64_t kQueryBlock = 64, kKeyBlock = 128;

// Cuts a sequence into equal blocks of about `wanted` positions; the last one may be shorter. Equal
// blocks avoid a last block of one or two positions, for which the library's products are slow.
struct SequenceBlocks {
  int64_t length, count, size;

  SequenceBlocks(int64_t positions, int64_t wanted)
      : length(positions),
        count(std::max<int64_t>(1, (positions + wanted / 2) / wanted)),
        size((positions + count - 1) / count) {
    count = (length + size - 1) / size;
  }
  int64_t Begin(int64_t block) const { return block * size; }
  // Returns the number of positions in a block.
  int64_t Size(int64_t block) const { return std::min(size, length - Begin(block)); }
};

// A matrix in row-major order, with `step` floats from one row to the next.
struct MatrixAt {
  const float* at;
  int64_t step;
};
struct MutableMatrixAt {
  float* at;
  int64_t step;
};

// Computes c (m, n) = scale * op(a) (m, k) * op(b) (k, n) [+ c]. The library uses the calling
// thread only, because it is inside a parallel region.
void MultiplyBlock(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float scale,
                   const MatrixAt& a, const MatrixAt& b, bool add, const MutableMatrixAt& c) {
  const InLibraryCall mark;
  onednn::Check(dnnl_sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, scale, a.at, a.step,
                           b.at, b.step, add ? 1.0f : 0.0f, c.at, c.step),
                "a matrix product");
}

// Counts the keys of a block that each query of a block sees. With `causal`, the query of row 0
// sees `first` keys, which may be negative, and each following row sees one more. Without, all rows
// see all `columns`.
struct VisibleKeys {
  int64_t first, columns;
  bool causal;

  // Returns the number of keys, from the first one on, that the query of a row sees.
  HD int64_t OfRow(int64_t row) const {
    const int64_t seen = first + row;
    if (!causal || seen > columns) return columns;
    return seen < 0 ? 0 : seen;
  }
};

// Replaces a row of scores by exp(score - maximum so far), and scales down what earlier blocks of
// keys added to the row's sum and output if the maximum rises.
struct RunningSoftmax {
  float* scores;
  VisibleKeys visible;
  bool is_first;
  float *top, *sum;  // the maximum of each row, and the sum of exp(score - maximum)
  MutableMatrixAt out;
  int64_t size;

  __attribute__((always_inline)) void operator()(int64_t r) const {
    const int64_t columns = visible.columns, seen = visible.OfRow(r);
    float* const s = scores + r * columns;
    const CpuRow row{r, seen};
    const float before = is_first ? -FLT_MAX : top[r];
    const float highest = row.Max([&](int64_t i) { return s[i]; });
    const float now = highest > before ? highest : before;
    row.ForEach([&](int64_t i) { s[i] = Exp(s[i] - now); });
    for (int64_t i = seen; i < columns; ++i) s[i] = 0;
    const float added = row.Sum([&](int64_t i) { return s[i]; });
    top[r] = now;
    if (is_first) {
      sum[r] = added;
      return;
    }
    const float kept = Exp(before - now);
    sum[r] = sum[r] * kept + added;
    float* const o = out.at + r * out.step;
    for (int64_t d = 0; d < size; ++d) o[d] *= kept;
  }
};

// Divides a row of the output by its sum, and stores the logarithm of the sum of exp(score).
struct FinishRow {
  const float *top, *sum;
  MutableMatrixAt out;
  int64_t size;
  float* log_sums;

  __attribute__((always_inline)) void operator()(int64_t r) const {
    const float scale = 1 / sum[r];
    float* const o = out.at + r * out.step;
    for (int64_t d = 0; d < size; ++d) o[d] *= scale;
    log_sums[r] = top[r] + std::log(sum[r]);
  }
};

// Replaces a row of scores by its probabilities p, and a row of their gradients dp by the gradient
// of q . k: p * (dp - delta) * scale.
struct ScoreGradients {
  float *scores, *gradients;
  VisibleKeys visible;
  const float *log_sums, *delta;
  float scale;

  __attribute__((always_inline)) void operator()(int64_t r) const {
    const int64_t columns = visible.columns, seen = visible.OfRow(r);
    float *const s = scores + r * columns, *const g = gradients + r * columns;
    const float top = log_sums[r], mean = delta[r], by = scale;
#pragma GCC ivdep
    for (int64_t i = 0; i < seen; ++i) {
      const float p = Exp(s[i] - top);
      s[i] = p;
      g[i] = p * (g[i] - mean) * by;
    }
    for (int64_t i = seen; i < columns; ++i) s[i] = g[i] = 0;
  }
};

// Computes delta, the sum over the head of out * dout, which the gradient of a softmax subtracts.
struct OutputDots {
  MatrixAt out, dout;
  int64_t size;
  float* delta;

  __attribute__((always_inline)) void operator()(int64_t r) const {
    const float *const o = out.at + r * out.step, *const g = dout.at + r * dout.step;
    delta[r] = CpuRow{r, size}.Sum([&](int64_t d) { return o[d] * g[d]; });
  }
};

// Calls f(row) for each row on this thread.
template <class F>
void ForBlockRows(int64_t rows, F f) {
  parallel_for_internal::Loop(0, rows, f);
}

// Multiplies blocks with the library's single-precision product, one head after the other on each
// thread. Forward divides the blocks of queries of all heads among the threads, Backward whole
// heads, because all blocks of queries add to the gradients of the same keys.
class CpuAttention final : public AttentionPrimitive {
 public:
  explicit CpuAttention(const AttentionDesc& desc)
      : desc_(desc),
        queries_(desc.length, kQueryBlock),
        keys_(desc.length, kKeyBlock),
        parts_(std::min<int64_t>(TeamSize(), desc.batch * desc.heads * queries_.count)),
        scores_(layout_.Add<float>(queries_.size * keys_.size)),
        gradients_(layout_.Add<float>(queries_.size * keys_.size)),
        top_(layout_.Add<float>(queries_.size)),
        sum_(layout_.Add<float>(queries_.size)),
        delta_(layout_.Add<float>(desc.length)) {}

  std::string kernel() const override { return "blocks, onednn sgemm"; }
  size_t ScratchBytes() const override { return static_cast<size_t>(parts_) * layout_.Bytes(); }

  void Forward(const float* qkv, float* out, float* log_sums,
               std::span<std::byte> scratch) override {
    ForParts(desc_.batch * desc_.heads * queries_.count, scratch, [&](int64_t task, auto own) {
      ForwardBlock(HeadAt(task / queries_.count), task % queries_.count, qkv, out, log_sums, own);
    });
  }

  void Backward(const AttentionSaved& in, float* dqkv, std::span<std::byte> scratch) override {
    ForParts(desc_.batch * desc_.heads, scratch,
             [&](int64_t task, auto own) { BackwardHead(HeadAt(task), in, dqkv, own); });
  }

 private:
  // The offset of a head of an item in each array.
  struct Head {
    int64_t qkv, out, log_sums;
  };
  Head HeadAt(int64_t index) const {
    const int64_t item = index / desc_.heads, head = index % desc_.heads;
    const int64_t rows = item * desc_.length, columns = head * desc_.size;
    return {rows * 3 * desc_.Channels() + columns, rows * desc_.Channels() + columns,
            index * desc_.length};
  }

  // Calls f(task, its thread's scratch) for each of `tasks` tasks.
  template <class F>
  void ForParts(int64_t tasks, std::span<std::byte> scratch, const F& f) const {
    const int parts = static_cast<int>(std::min(tasks, parts_));
    RunParts(parts, [&](int part) {
      const auto own = scratch.subspan(static_cast<size_t>(part) * layout_.Bytes());
      for (int64_t t = tasks * part / parts; t < tasks * (part + 1) / parts; ++t) f(t, own);
    });
  }

  // Returns the rows of q (0), k (1) or v (2) of a head, from position `row` on.
  MatrixAt Rows(const float* qkv, int which, int64_t row) const {
    const int64_t c = desc_.Channels();
    return {qkv + row * 3 * c + which * c, 3 * c};
  }
  MutableMatrixAt Rows(float* qkv, int which, int64_t row) const {
    const int64_t c = desc_.Channels();
    return {qkv + row * 3 * c + which * c, 3 * c};
  }

  // Returns the keys of block j that the first query of block i sees.
  VisibleKeys Visible(int64_t i, int64_t j) const {
    return {queries_.Begin(i) - keys_.Begin(j) + 1, keys_.Size(j), desc_.causal};
  }
  // Returns how many blocks of keys the queries of block i see.
  int64_t KeyBlocksOf(int64_t i) const {
    if (!desc_.causal) return keys_.count;
    return (queries_.Begin(i) + queries_.Size(i) - 1) / keys_.size + 1;
  }
  // Returns the first block of queries that sees keys of block j.
  int64_t FirstQueryBlockOf(int64_t j) const {
    return desc_.causal ? keys_.Begin(j) / queries_.size : 0;
  }

  // Computes the output of one block of queries.
  void ForwardBlock(const Head& head, int64_t i, const float* qkv, float* out, float* log_sums,
                    std::span<std::byte> own) const {
    const float* const from = qkv + head.qkv;
    const int64_t begin = queries_.Begin(i), rows = queries_.Size(i), size = desc_.size;
    const MutableMatrixAt to{out + head.out + begin * desc_.Channels(), desc_.Channels()};
    float *const scores = scores_.At(own), *const top = top_.At(own), *const sum = sum_.At(own);
    for (int64_t j = 0; j < KeyBlocksOf(i); ++j) {
      const int64_t columns = keys_.Size(j);
      MultiplyBlock(false, true, rows, columns, size, desc_.Scale(), Rows(from, 0, begin),
                    Rows(from, 1, keys_.Begin(j)), false, {scores, columns});
      ForBlockRows(rows, RunningSoftmax{scores, Visible(i, j), j == 0, top, sum, to, size});
      MultiplyBlock(false, false, rows, size, columns, 1, {scores, columns},
                    Rows(from, 2, keys_.Begin(j)), j > 0, to);
    }
    ForBlockRows(rows, FinishRow{top, sum, to, size, log_sums + head.log_sums + begin});
  }

  // Computes the gradients of q, k and v of one head.
  void BackwardHead(const Head& head, const AttentionSaved& in, float* dqkv,
                    std::span<std::byte> own) const {
    const int64_t c = desc_.Channels();
    ForBlockRows(
        desc_.length,
        OutputDots{{in.out + head.out, c}, {in.dout + head.out, c}, desc_.size, delta_.At(own)});
    for (int64_t j = 0; j < keys_.count; ++j) {
      for (int64_t i = FirstQueryBlockOf(j); i < queries_.count; ++i) {
        BackwardBlock(head, i, j, in, dqkv + head.qkv, own);
      }
    }
  }

  // Adds what the queries of block i and the keys of block j contribute to the gradients. The first
  // contribution to a block of them overwrites it.
  void BackwardBlock(const Head& head, int64_t i, int64_t j, const AttentionSaved& in, float* to,
                     std::span<std::byte> own) const {
    const float* const from = in.qkv + head.qkv;
    const int64_t query = queries_.Begin(i), key = keys_.Begin(j), size = desc_.size;
    const int64_t rows = queries_.Size(i), columns = keys_.Size(j), c = desc_.Channels();
    const MatrixAt dout{in.dout + head.out + query * c, c};
    float *const scores = scores_.At(own), *const gradients = gradients_.At(own);
    MultiplyBlock(false, true, rows, columns, size, desc_.Scale(), Rows(from, 0, query),
                  Rows(from, 1, key), false, {scores, columns});
    MultiplyBlock(false, true, rows, columns, size, 1, dout, Rows(from, 2, key), false,
                  {gradients, columns});
    ForBlockRows(
        rows, ScoreGradients{scores, gradients, Visible(i, j), in.log_sums + head.log_sums + query,
                             delta_.At(own) + query, desc_.Scale()});
    const bool adds = i > FirstQueryBlockOf(j);
    MultiplyBlock(true, false, columns, size, rows, 1, {scores, columns}, dout, adds,
                  Rows(to, 2, key));
    MultiplyBlock(true, false, columns, size, rows, 1, {gradients, columns}, Rows(from, 0, query),
                  adds, Rows(to, 1, key));
    MultiplyBlock(false, false, rows, size, columns, 1, {gradients, columns}, Rows(from, 1, key),
                  j > 0, Rows(to, 0, query));
  }

  AttentionDesc desc_;
  SequenceBlocks queries_, keys_;
  int64_t parts_;         // of the work, each with its own scratch
  ScratchLayout layout_;  // of one part
  ScratchRegion<float> scores_, gradients_, top_, sum_, delta_;
};

}  // namespace

std::unique_ptr<AttentionPrimitive> NewAttention(const AttentionDesc& desc) {
  return std::make_unique<CpuAttention>(desc);
}

}  // namespace trainer::cpu
