#pragma once
// Sets of records from tables in CSV.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/datasets/convert.h"
#include "trainer/storage/record_writer.h"
#include "trainer/storage/table_reader.h"

namespace trainer {

// How the numbers of a column are scaled.
enum class TableScale {
  kNone,
  kMinMax,  // the least becomes 0 and the largest 1
  kZNorm,   // the mean becomes 0 and the standard deviation 1
};

struct CsvOptions {
  std::string table;
  WriteOptions output;
  // The columns. With `like`, the set at that path gives all of these.
  char separator = ',';
  bool has_header = true;
  std::vector<std::string> labels, ignored, categorical;
  TableScale scale = TableScale::kNone;  // of the inputs that are numbers
  bool scale_labels = false;             // also of the labels that are numbers
  MissingValue missing = MissingValue::kRefuse;
  std::string like;

  SplitSize validation;         // rows that go into another set,
  std::string validation_path;  // this one; "": named by ValidationPath
  uint64_t seed = 1;            // of the choice of these rows
  int64_t most_bad = 0;         // bad rows that are left out before the task fails
};

struct CsvResult {
  TableFormat format;
  int64_t records = 0, validation_records = 0;
  int64_t skipped = 0, bad = 0;  // rows left out for empty fields, and as bad
  std::vector<UnknownCategories> unknown;
  std::string validation_path;  // "" without validation
};

// Writes the rows of a table to a new set, in their order: the inputs as `data` (rows x inputs, or
// records of inputs x 1 x 1), the labels as `label`. A file next to each set, TableFormatPath,
// describes the columns. Figures of scaling, means and categories of inputs come from the rows that
// are not for validation; categories of labels from all rows. If the only label is categorical, or
// is an integer with at most 100 values and 20 rows for each on average, the same part of the rows
// of each value is for validation.
//
// Throws as TableReader, OpenRecordWriter and DrawSplit; kUsage for a column that the table does
// not have, columns without inputs or labels, options that contradict each other; kData for a
// column without values or with too many categories, a table without rows, and a label that the set
// cannot store.
CsvResult WriteCsv(const CsvOptions& options);

}  // namespace trainer
