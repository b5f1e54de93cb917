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
//   IndexAdd(device, rows, columns, Gradients{index, dy, columns}, table, nullptr, scratch);
//
// `scratch` has IndexAddScratch(device, rows) bytes.

#include <span>
#include <utility>

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

// A row and its index as one number. Keys ascend by index and then by row, and all differ. A row
// without an index comes last.
HD uint64_t KeyOf(int64_t index, int64_t row) {
  return static_cast<uint64_t>(index) << 32 | static_cast<uint64_t>(row);
}
HD int64_t IndexOf(uint64_t key) { return static_cast<int64_t>(key) >> 32; }
HD int64_t RowOf(uint64_t key) { return static_cast<int64_t>(key & 0xffffffffu); }

// Sets the keys of the rows.
template <class F>
struct MakeKeys {
  F f;
  uint64_t* keys;
  HD void operator()(int64_t row) const { keys[row] = KeyOf(f.Index(row), row); }
};

// Merges each kRuns neighbouring sorted runs of `length` keys into one run. The place of a key is
// the number of smaller keys in these runs, which a binary search finds in each run. The searches
// advance together, so that their reads overlap. `length` must be a power of two.
struct MergeRuns {
  static constexpr int kRuns = 8;
  const uint64_t* from;
  uint64_t* to;
  int64_t count, length;

  HD void operator()(int64_t i) const {
    const uint64_t key = from[i];
    const int64_t first = i & -(kRuns * length);
    uint32_t start[kRuns + 1], at[kRuns];  // the keys of run r before at[r] are smaller
#pragma unroll
    for (int r = 0; r <= kRuns; ++r) {
      const int64_t wish = first + r * length;
      start[r] = static_cast<uint32_t>(wish < count ? wish : count);
    }
#pragma unroll
    for (int r = 0; r < kRuns; ++r) at[r] = start[r];
    for (auto step = static_cast<uint32_t>(length); step > 0; step /= 2) {
      uint32_t next[kRuns];
      uint64_t ahead[kRuns];
#pragma unroll
      for (int r = 0; r < kRuns; ++r) {
        next[r] = at[r] + step < start[r + 1] ? at[r] + step : start[r + 1];
        ahead[r] = from[next[r] - 1];
      }
#pragma unroll
      for (int r = 0; r < kRuns; ++r) at[r] = ahead[r] < key ? next[r] : at[r];
    }
    int64_t place = first;
#pragma unroll
    for (int r = 0; r < kRuns; ++r) place += at[r] - start[r];
    to[place] = key;
  }
};

// Returns the sorted keys of all rows. `keys` has room for two of each.
template <class F>
const uint64_t* SortedKeys(const Device& device, int64_t rows, const F& f, uint64_t* keys) {
  uint64_t* other = keys + rows;
  ForEach(device, rows, MakeKeys<F>{f, keys});
  for (int64_t length = 1; length < rows; length *= MergeRuns::kRuns) {
    ForEach(device, rows, MergeRuns{keys, other, rows, length});
    std::swap(keys, other);
  }
  return keys;
}

inline constexpr int kTileColumns = 32, kTileRows = map_internal::kBlock / kTileColumns;

// Adds all rows with the same index, which are neighbours in `keys`, in one thread per column. The
// kernel uses no atomic additions, because their order would differ from run to run.
template <class F>
__global__ void __launch_bounds__(map_internal::kBlock)
    AddSortedRowsKernel(F f, const uint64_t* keys, int64_t rows, int64_t columns, float* table) {
  constexpr int kAhead = map_internal::kAhead;
  const int64_t step = int64_t{gridDim.x} * kTileRows, wide = int64_t{gridDim.y} * kTileColumns;
  for (int64_t first = int64_t{blockIdx.x} * kTileRows + threadIdx.y; first < rows; first += step) {
    const uint64_t own = keys[first];
    const int64_t index = IndexOf(own);
    if (index < 0 || (first > 0 && IndexOf(keys[first - 1]) == index)) continue;
    for (int64_t c = int64_t{blockIdx.y} * kTileColumns + threadIdx.x; c < columns; c += wide) {
      float* const to = table + index * columns + c;
      float sum = *to;
      bool has_more = true;
      for (int64_t at = first; has_more; at += kAhead) {
        bool same[kAhead];
        float ahead[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          // Past the last row of the index, its first row is read again and dropped: if reads
          // depended on a condition, a thread would wait for each before the next.
          const uint64_t key = keys[at + k < rows ? at + k : first];
          same[k] = at + k < rows && IndexOf(key) == index;
          ahead[k] = f.OfRow(RowOf(same[k] ? key : own))(c);
        }
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          if (same[k]) sum += ahead[k];
        }
        has_more = same[kAhead - 1];
      }
      *to = sum;
    }
  }
}

// Implements IndexAdd to the table on a GPU.
template <class F>
void AddToTable(const Device& device, int64_t rows, int64_t columns, const F& f, float* table,
                uint64_t* scratch) {
  const auto blocks = [](int64_t count, int64_t tile) {
    return static_cast<unsigned>(std::min<int64_t>((count + tile - 1) / tile, 65535));
  };
  Launch(
      device, AddSortedRowsKernel<F>, dim3(blocks(rows, kTileRows), blocks(columns, kTileColumns)),
      dim3(kTileColumns, kTileRows), f, SortedKeys(device, rows, f, scratch), rows, columns, table);
}
#endif

}  // namespace index_add_internal

// Returns the bytes of scratch that IndexAdd needs on this device: a GPU sorts the rows by index.
inline size_t IndexAddScratch(const Device& device, int64_t rows) {
  return device.kind() == DeviceKind::kCpu ? 0 : 2 * static_cast<size_t>(rows) * sizeof(uint64_t);
}

// Adds row r of a matrix, f.OfRow(r)(column) for `columns` columns, to row f.Index(r) of `table`,
// for each r of [0, rows); a row with a negative index is left out. Adds all rows to `total`.
// Either array may be null. There must be less than 2^31 rows, and indices below 2^31.
template <class F>
void IndexAdd(const Device& device, int64_t rows, int64_t columns, F f, float* table, float* total,
              std::span<std::byte> scratch) {
#ifdef TRAINER_DEVICE_CODE
  if (device.kind() == DeviceKind::kCuda) {
    if (rows * columns == 0) return;
    if (table != nullptr) {
      index_add_internal::AddToTable(device, rows, columns, f, table,
                                     reinterpret_cast<uint64_t*>(scratch.data()));
    }
    if (total != nullptr) {
      AddSums(device, {rows, columns, 1}, index_add_internal::TermOfRow<F>{f}, total);
    }
    return;
  }
#endif
  (void)device, (void)scratch;
  ParallelRanges(columns, std::max<int64_t>(16, MinChunk(rows)),
                 index_add_internal::AddColumns<F>{f, rows, columns, table, total});
}

}  // namespace trainer
