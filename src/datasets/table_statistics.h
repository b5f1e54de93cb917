#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "trainer/datasets/from_csv.h"

namespace trainer {

// Collects what a table's format keeps of the training rows: figures of scaling and categories.
class TableStatistics {
 public:
  // Collects for the columns of `format`, which has none of these figures yet.
  explicit TableStatistics(const TableFormat& format)
      : inputs_(format.inputs.size()), labels_(format.labels.size()) {}

  void Add(const TableRow& row, bool is_training);
  // Sets the figures of the format. Throws kData, naming `table`, for a column that has no value or
  // too many categories.
  void Apply(const CsvOptions& options, const std::string& table, TableFormat* format) const;

 private:
  // Welford's running mean and sum of squared deviations.
  struct Column {
    int64_t count = 0, missing = 0;
    double mean = 0, squares = 0, min = 0, max = 0;
    std::set<std::string> categories;
    void Add(const TableCell& cell);
  };

  static void ApplyTo(const Column& from, TableScale scale, MissingValue missing,
                      const std::string& table, TableColumn* column);

  std::vector<Column> inputs_, labels_;
};

}  // namespace trainer
