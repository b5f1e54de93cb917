#include "cpu/blocked_product.h"

#include <algorithm>
#include <array>

#include "cpu/simd.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/base/thread/thread_team.h"

namespace trainer::cpu {
namespace {

// Floats of a packed block of A and of a packed group of columns of B. Both fit the second-level
// cache.
constexpr int64_t kLeftFloats = 48 << 10, kRightFloats = 32 << 10;

// Returns the number of groups of 16 that hold `count` rows or columns.
int64_t Groups(int64_t count) { return (count + kLanes - 1) / kLanes; }

// Returns the floats from one packed group to the next: an odd number of cache lines, because
// otherwise a row of all groups would be in the same set of the caches.
int64_t GroupStep(int64_t depth) { return (depth | 1) * kLanes; }

// Returns part `index` of `parts` of [0, count), in steps of `unit`.
BlockRange PartOf(int64_t count, int64_t unit, int64_t index, int64_t parts) {
  const int64_t units = (count + unit - 1) / unit;
  return {units * index / parts * unit, std::min(units * (index + 1) / parts * unit, count)};
}

// Returns row `row` of a matrix.
template <class T>
const T* RowOf(const StoredMatrix& m, int64_t row) {
  return static_cast<const T*>(m.data) + (m.place ? m.place(row) : row) * m.step;
}

// Copies `count` neighbouring numbers to groups of 16 floats. A group begins `step` floats after
// the previous one, and zeros fill the last group.
template <class T>
struct CopyToGroups {
  static TRAINER_INLINE void Run(const T* from, int64_t count, int64_t step, float* to) {
    using V = Lanes<8>;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes, to += step) {
      for (int64_t lane = 0; lane < kLanes; lane += V::kLanes) {
        V::F value;
        V::LoadTo(value, from + i + lane);
        V::StoreTo(to + lane, value);
      }
    }
    for (int64_t lane = 0; i < count && lane < kLanes; ++lane) {
      to[lane] = i + lane < count ? Load(from[i + lane]) : 0.0f;
    }
  }
};

// Transposes 8 vectors of 8 floats.
TRAINER_INLINE void TransposeEight(Lanes<8>::F* x) {
  Lanes<8>::F pairs[8], fours[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const auto &a = pairs[i / 2 * 4 + i % 2], &b = pairs[i / 2 * 4 + i % 2 + 2];
    fours[i / 2 * 4 + i % 2 * 2] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    fours[i / 2 * 4 + i % 2 * 2 + 1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    x[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    x[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Copies 16 rows of `depth` numbers to one group of floats: to[t * 16 + row] = rows[row][t].
template <class T>
struct RowsToGroup {
  static TRAINER_INLINE void Run(const T* const* rows, int64_t depth, float* to) {
    using V = Lanes<8>;
    int64_t t = 0;
    for (; t + V::kLanes <= depth; t += V::kLanes) {
      for (int64_t half = 0; half < kLanes; half += V::kLanes) {
        V::F x[V::kLanes];
#pragma GCC unroll 8
        for (int i = 0; i < V::kLanes; ++i) V::LoadTo(x[i], rows[half + i] + t);
        TransposeEight(x);
#pragma GCC unroll 8
        for (int i = 0; i < V::kLanes; ++i) V::StoreTo(to + (t + i) * kLanes + half, x[i]);
      }
    }
    for (; t < depth; ++t) {
      for (int64_t row = 0; row < kLanes; ++row) to[t * kLanes + row] = Load(rows[row][t]);
    }
  }
};

// Packs rows `inner` of a matrix to groups of its columns `lanes`: [group][inner][16].
template <class T>
void PackRows(const StoredMatrix& from, BlockRange lanes, BlockRange inner, float* to) {
  for (int64_t i = inner.begin; i < inner.end; ++i, to += kLanes) {
    CompiledFor<Lanes<8>, CopyToGroups<T>, const T*, int64_t, int64_t, float*>()(
        RowOf<T>(from, i) + lanes.begin, lanes.size(), GroupStep(inner.size()), to);
  }
}

// Packs columns `inner` of a matrix to groups of its rows `lanes`: [group][inner][16].
template <class T>
void PackColumns(const StoredMatrix& from, BlockRange lanes, BlockRange inner, float* to) {
  for (int64_t lane = lanes.begin; lane < lanes.end;
       lane += kLanes, to += GroupStep(inner.size())) {
    std::array<const T*, kLanes> rows;
    for (int64_t i = 0; i < kLanes; ++i) {
      // The sums of lanes beyond the last row are not used.
      rows[i] = RowOf<T>(from, std::min(lane + i, lanes.end - 1)) + inner.begin;
    }
    CompiledFor<Lanes<8>, RowsToGroup<T>, const T* const*, int64_t, float*>()(rows.data(),
                                                                              inner.size(), to);
  }
}

// Packs the part of a matrix with rows or columns `lanes` (rows if `across`) and products `inner`
// as MultiplyGroup reads it: [group][inner][16].
void Pack(const StoredMatrix& from, bool across, BlockRange lanes, BlockRange inner, float* to) {
  DispatchCpuDtype(from.dtype, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    across ? PackColumns<T>(from, lanes, inner, to) : PackRows<T>(from, lanes, inner, to);
  });
}

// Computes `t`, whose last columns may not fill a vector: only `columns` columns are written.
void MultiplyFirst(GroupProduct t, int64_t columns) {
  if (columns == kLanes) return MultiplyGroup(t);
  float sums[kLanes * kLanes];
  const GroupProduct whole = t;
  t.add = nullptr;
  t.y = sums;
  t.y_step = kLanes;
  MultiplyGroup(t);
  for (int64_t i = 0; i < t.rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const float before = whole.add != nullptr ? whole.add[i * whole.add_step + j] : 0.0f;
      whole.y[i * whole.y_step + j] = before + sums[i * kLanes + j];
    }
  }
}

// Adds the sums over the packed rows of a block to `sums`, one for each of `count` lanes.
void AddLaneSums(const float* packed, int64_t count, int64_t depth, float* sums) {
  for (int64_t lane = 0; lane < count; lane += kLanes, packed += GroupStep(depth)) {
    float group[kLanes] = {};
    AddRows(packed, depth, kLanes, group);
    for (int64_t i = 0; i < std::min(kLanes, count - lane); ++i) sums[lane + i] += group[i];
  }
}

// Returns into how many parts at least `parts` units are divided, so that the threads get the same
// number of parts: a divisor or a multiple of `threads`, at most `units`.
int64_t EvenParts(int64_t parts, int threads, int64_t units) {
  if (parts >= threads) {
    parts = (parts + threads - 1) / threads * threads;
  } else {
    while (threads % parts != 0) ++parts;
  }
  return std::min(parts, units);
}

}  // namespace

BlockedProduct::BlockedProduct(const Sizes& sizes) : sizes_(sizes), threads_(TeamSize()) {
  Divide();
  const int64_t rows = (Groups(sizes.m) + row_parts_ - 1) / row_parts_;
  left_floats_ = rows * GroupStep(depth_);
  right_floats_ = Groups(width_) * GroupStep(depth_);
  left_ = scratch_.Add<float>(threads_ * left_floats_);
  right_ = scratch_.Add<float>(threads_ * right_floats_);
  if (inner_parts_ == 1) return;
  sums_ = scratch_.Add<float>(inner_parts_ * sizes.m * sizes.n);
  row_sums_ = scratch_.Add<float>(inner_parts_ * sizes.m);
}

void BlockedProduct::Divide() {
  constexpr int64_t kMaxSums = int64_t{12} << 20;  // floats of all parts of the inner length
  const int64_t rows = Groups(sizes_.m), columns = Groups(sizes_.n);
  const int64_t depth = std::min(sizes_.k, kDepth);
  const int64_t block = std::max<int64_t>(1, kLeftFloats / depth / kLanes);
  row_parts_ = EvenParts((rows + block - 1) / block, threads_, rows);
  const int64_t spare = std::max<int64_t>(1, threads_ / row_parts_);
  if (sizes_.split_k) {
    const int64_t most = std::min(sizes_.k / (2 * kDepth), kMaxSums / (sizes_.m * sizes_.n));
    inner_parts_ = std::clamp<int64_t>(most, 1, spare);
    while (spare % inner_parts_ != 0) --inner_parts_;
  }
  column_parts_ = std::min(spare / inner_parts_, columns);
  const int64_t inner = (sizes_.k + inner_parts_ - 1) / inner_parts_;
  const int64_t blocks = (inner + kDepth - 1) / kDepth;
  depth_ = (inner + blocks - 1) / blocks;
  width_ = std::clamp<int64_t>(kRightFloats / depth_ / kLanes, 1,
                               (columns + column_parts_ - 1) / column_parts_) *
           kLanes;
}

void BlockedProduct::Run(const StoredMatrix& a, const StoredMatrix& b, const ProductResult& result,
                         std::span<std::byte> scratch) const {
  const int64_t tasks = row_parts_ * column_parts_ * inner_parts_;
  RunParts(threads_, [&](int part) {
    for (int64_t i = tasks * part / threads_; i < tasks * (part + 1) / threads_; ++i) {
      RunTask(TaskAt(i, result, scratch), a, b, left_.At(scratch) + part * left_floats_,
              right_.At(scratch) + part * right_floats_);
    }
  });
  if (inner_parts_ > 1) Join(result, scratch);
}

BlockedProduct::Task BlockedProduct::TaskAt(int64_t index, const ProductResult& result,
                                            std::span<std::byte> scratch) const {
  const int64_t row = index % row_parts_, column = index / row_parts_ % column_parts_;
  const int64_t inner = index / row_parts_ / column_parts_;
  Task task = {.rows = PartOf(sizes_.m, kLanes, row, row_parts_),
               .columns = PartOf(sizes_.n, kLanes, column, column_parts_),
               .inner = PartOf(sizes_.k, 1, inner, inner_parts_),
               .c = result.c,
               .add = result.accumulate ? result.c : nullptr,
               .row_sums = column == 0 ? result.row_sums : nullptr};
  if (inner_parts_ == 1) return task;
  task.c = sums_.At(scratch) + inner * sizes_.m * sizes_.n;
  task.add = nullptr;
  if (task.row_sums == nullptr) return task;
  task.row_sums = row_sums_.At(scratch) + inner * sizes_.m;
  std::fill_n(task.row_sums + task.rows.begin, task.rows.size(), 0.0f);
  return task;
}

void BlockedProduct::RunTask(const Task& task, const StoredMatrix& a, const StoredMatrix& b,
                             float* left, float* right) const {
  const int64_t blocks = (task.inner.size() + depth_ - 1) / depth_;
  for (int64_t block = 0; block < blocks; ++block) {
    const BlockRange part = PartOf(task.inner.size(), 1, block, blocks);
    const BlockRange inner = {task.inner.begin + part.begin, task.inner.begin + part.end};
    const int64_t depth = inner.size(), step = GroupStep(depth);
    Pack(a, !sizes_.trans_a, task.rows, inner, left);
    if (task.row_sums != nullptr) {
      AddLaneSums(left, task.rows.size(), depth, task.row_sums + task.rows.begin);
    }
    const float* add = block == 0 ? task.add : task.c;
    for (int64_t first = task.columns.begin; first < task.columns.end; first += width_) {
      const BlockRange columns = {first, std::min(first + width_, task.columns.end)};
      Pack(b, false, columns, inner, right);
      for (int64_t i = task.rows.begin; i < task.rows.end; i += kLanes) {
        for (int64_t j = columns.begin; j < columns.end; j += kLanes) {
          MultiplyFirst({.left = left + (i - task.rows.begin) / kLanes * step,
                         .right = right + (j - columns.begin) / kLanes * step,
                         .depth = depth,
                         .rows = std::min(kLanes, task.rows.end - i),
                         .columns = kLanes,
                         .add = add != nullptr ? add + i * sizes_.n + j : nullptr,
                         .add_step = sizes_.n,
                         .y = task.c + i * sizes_.n + j,
                         .y_step = sizes_.n},
                        std::min(kLanes, columns.end - j));
        }
      }
    }
  }
}

void BlockedProduct::Join(const ProductResult& result, std::span<std::byte> scratch) const {
  const auto add = [&](const float* sums, int64_t count, float* to) {
    ParallelRanges(count, 1 << 12, [&](int64_t begin, int64_t end) {
      for (int64_t part = 0; part < inner_parts_; ++part) {
        const float* from = sums + part * count;
        for (int64_t i = begin; i < end; ++i) to[i] += from[i];
      }
    });
  };
  add(sums_.At(scratch), sizes_.m * sizes_.n, result.c);
  if (result.row_sums != nullptr) add(row_sums_.At(scratch), sizes_.m, result.row_sums);
}

}  // namespace trainer::cpu
