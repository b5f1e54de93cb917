// Adds rows to the rows of a table. A GPU merges 16 sorted runs of rows at a time, once or several
// times, and some rows have more columns than a warp has threads.

#include "trainer/backend/loops/index_add.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "support/test_device.h"

namespace trainer {
namespace {

constexpr int64_t kIndices = 21;

struct MatrixRows {
  const int32_t* index;
  const float* values;
  int64_t columns;
  HD int64_t Index(int64_t row) const { return index[row]; }
  HD auto OfRow(int64_t row) const {
    return [from = values + row * columns](int64_t column) { return from[column]; };
  }
};

struct TableSize {
  int64_t rows, columns;
};

class IndexAddTest : public testing::TestWithParam<TableSize> {
 protected:
  IndexAddTest() {
    for (int64_t row = 0; row < rows_; ++row) {
      // Row 11 * n + 5 has no index, some indices occur late, and only the last row has its index.
      const int64_t index = row % 11 == 5 ? -1 : row % 7 + (row > 1024 ? 5 : 0);
      index_.push_back(static_cast<int32_t>(row == rows_ - 1 ? kIndices - 1 : index));
    }
    // Sums of such fractions depend on the order of the additions.
    for (int64_t i = 0; i < rows_ * columns_; ++i) {
      values_.push_back(static_cast<float>(i * 7 % 5 - 2) / static_cast<float>(i % 11 + 3));
    }
  }

  std::vector<float> Ones(int64_t count) const {
    return std::vector<float>(static_cast<size_t>(count), 1);
  }
  float ValueAt(int64_t row, int64_t column) const {
    return values_[static_cast<size_t>(row * columns_ + column)];
  }
  // Adds all rows, in order, to the rows of a table of ones.
  std::vector<float> WantTable() const {
    std::vector<float> table = Ones(kIndices * columns_);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t index = index_[static_cast<size_t>(row)];
      for (int64_t j = 0; index >= 0 && j < columns_; ++j) {
        table[static_cast<size_t>(index * columns_ + j)] += ValueAt(row, j);
      }
    }
    return table;
  }
  std::vector<float> WantTotal() const {
    std::vector<float> total = Ones(columns_);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t j = 0; j < columns_; ++j) total[static_cast<size_t>(j)] += ValueAt(row, j);
    }
    return total;
  }

  const int64_t rows_ = GetParam().rows, columns_ = GetParam().columns;
  std::vector<int32_t> index_;
  std::vector<float> values_;
};
INSTANTIATE_TEST_SUITE_P(Of, IndexAddTest,
                         testing::Values(TableSize{0, 3}, TableSize{1, 1}, TableSize{50, 260},
                                         TableSize{300, 5}, TableSize{4113, 3}),
                         [](const auto& size) {
                           return "Rows" + std::to_string(size.param.rows) + "Columns" +
                                  std::to_string(size.param.columns);
                         });

TEST_P(IndexAddTest, AddsRowsInOrderUnlessTheArrayIsNull) {
  for (const int threads : {1, 3}) {
    const auto device = MakeTestDevice(threads);
    const OnDevice<int32_t> index(*device, index_);
    const OnDevice<float> values(*device, values_);
    const MatrixRows rows = {index.data(), values.data(), columns_};
    for (const bool has_table : {true, false}) {
      const OnDevice<float> table(*device, Ones(kIndices * columns_));
      const OnDevice<float> total(*device, Ones(columns_));
      const OnDevice<std::byte> scratch(*device, IndexAddScratch(*device, rows_));
      IndexAdd(*device, rows_, columns_, rows, has_table ? table.data() : nullptr,
               has_table ? nullptr : total.data(), scratch.span());
      EXPECT_EQ(table.Read(), has_table ? WantTable() : Ones(kIndices * columns_));
      const std::vector<float> want = has_table ? Ones(columns_) : WantTotal();
      EXPECT_THAT(total.Read(), testing::Pointwise(testing::FloatNear(1e-3f), want));
    }
  }
}

// Adds rows of one column, 1, 2, 3, ..., to a table of zeros.
std::vector<float> AddedTo(int64_t entries, const std::vector<int32_t>& indices) {
  const auto device = MakeTestDevice();
  const auto rows = static_cast<int64_t>(indices.size());
  std::vector<float> numbers(indices.size());
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  const OnDevice<int32_t> index(*device, indices);
  const OnDevice<float> values(*device, numbers);
  const OnDevice<float> table(*device, static_cast<size_t>(entries));
  const OnDevice<std::byte> scratch(*device, IndexAddScratch(*device, rows));
  IndexAdd(*device, rows, 1, MatrixRows{index.data(), values.data(), 1}, table.data(), nullptr,
           scratch.span());
  return table.Read();
}

TEST(IndexAddHandValuesTest, RepeatedAndUnusedIndices) {
  EXPECT_THAT(AddedTo(5, {3, 0, 3, -1, 4, 3}), testing::ElementsAre(2, 0, 0, 10, 5));
}

TEST(IndexAddHandValuesTest, OneIndexForAllRows) {
  EXPECT_THAT(AddedTo(3, std::vector<int32_t>(40, 1)), testing::ElementsAre(0, 820, 0));
  EXPECT_THAT(AddedTo(2, std::vector<int32_t>(40, -1)), testing::ElementsAre(0, 0));
}

TEST(IndexAddHandValuesTest, FarIndicesOfALargeTable) {
  constexpr int64_t kEntries = 1 << 20;
  std::vector<int32_t> indices;
  for (int32_t i = 0; i < 300; ++i) indices.push_back(kEntries - 1 - i * 3000);
  std::vector<float> want(kEntries);
  for (size_t i = 0; i < 300; ++i) want[kEntries - 1 - i * 3000] = static_cast<float>(i + 1);
  EXPECT_EQ(AddedTo(kEntries, indices), want);
}

}  // namespace
}  // namespace trainer
