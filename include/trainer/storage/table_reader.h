#pragma once
// Reads the rows of a table in CSV as numbers.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/storage/csv.h"
#include "trainer/storage/table_format.h"

namespace trainer {

struct TableCell {
  bool is_missing = false;
  double number = 0;  // of a column of numbers
  std::string text;   // of a categorical column
};

struct TableRow {
  int64_t line = 0;                       // of the file
  std::vector<TableCell> inputs, labels;  // by the format's columns; no labels if they are not read
  std::vector<std::string> ignored;       // by TableReader::ignored_names
};

struct TableReaderOptions {
  bool labels = true;    // the file has the label columns, and they are read
  bool encodes = true;   // the format's categories are complete
  int64_t most_bad = 0;  // rows that are left out before an error is thrown
};

// Categories of input columns that the format does not have.
struct UnknownCategories {
  std::string column, first;  // the first of them
  int64_t first_line = 0, rows = 0;
};

class TableReader {
 public:
  // Finds the format's columns in the file, by name and in any order. Throws kData, naming the
  // columns that the file has, if one is missing or its name is there twice; as CsvReader.
  TableReader(const std::string& path, const TableFormat& format,
              const TableReaderOptions& options);

  // Reads the next row. Returns false at the end. Rows with empty fields are left out if the format
  // says so. Throws kData with the line, for a bad row (another number of fields, a text in place
  // of a number, a label of an unknown category) once there are more of them than most_bad.
  bool Next(TableRow* row);

  // Appends the numbers that are stored for a row. Requires `encodes`.
  void Encode(const TableRow& row, std::vector<float>* inputs, std::vector<float>* labels);

  int64_t bad() const { return bad_; }          // rows left out as bad
  int64_t skipped() const { return skipped_; }  // rows left out for empty fields
  const std::vector<UnknownCategories>& unknown() const { return unknown_; }
  // Returns the format's ignored columns that the file has.
  const std::vector<std::string>& ignored_names() const { return ignored_names_; }

 private:
  // Returns false if the row is left out for an empty field.
  bool Parse(TableRow* row) const;
  bool ParseCells(const std::vector<TableColumn>& columns, const std::vector<size_t>& fields,
                  bool are_labels, std::vector<TableCell>* cells) const;
  // Returns false if the field is empty.
  bool ParseCell(const TableColumn& column, const std::string& field, TableCell* cell) const;
  [[noreturn]] void Fail(const TableColumn& column, const std::string& why) const;
  void AppendInput(size_t column, const TableCell& cell, int64_t line, std::vector<float>* to);
  void CountUnknown(const std::string& column, const std::string& category, int64_t line);

  const TableFormat& format_;
  TableReaderOptions options_;
  CsvReader csv_;
  size_t field_count_ = 0;  // of each row
  std::vector<size_t> input_fields_, label_fields_, ignored_fields_;
  std::vector<std::string> ignored_names_;
  std::vector<std::map<std::string, size_t>> input_categories_, label_categories_;
  std::vector<std::string> fields_;
  int64_t bad_ = 0, skipped_ = 0;
  std::vector<UnknownCategories> unknown_;
};

// Returns the names of the columns of a file. Columns without a name, or all if the file has no
// header, are named 1, 2, 3, ... Throws kData for an empty file and a name that is there twice.
std::vector<std::string> ReadTableHeader(const std::string& path, char separator, bool has_header);

}  // namespace trainer
