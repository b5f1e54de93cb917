#pragma once
// How a table of numbers and categories becomes the inputs and labels of records.

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// What happens with an empty field.
enum class MissingValue {
  kRefuse,  // it is an error
  kMean,    // the column's mean takes its place; a category has no input that is 1
  kZero,    // 0 takes its place
  kSkip,    // the row is left out
};

struct TableColumn {
  std::string name;
  bool is_categorical = false;
  // Of a number x: (x - subtract) * multiply is stored, and `fill` is the x of an empty field.
  double subtract = 0, multiply = 1, fill = 0;
  // The categories of a categorical column, in the order of their indices. An input column is
  // stored one-hot: a number per category, 1 for the category of the row and 0 for the others. A
  // label column is stored as the index of the category.
  std::vector<std::string> categories;
};

struct TableFormat {
  char separator = ',';
  bool has_header = true;  // else columns are named 1, 2, 3, ...
  MissingValue missing = MissingValue::kRefuse;
  std::vector<TableColumn> inputs, labels;
  std::vector<std::string> ignored;  // columns that are neither

  // Returns the numbers of a record's inputs.
  int64_t InputCount() const;
};

// Returns the file next to the set that describes its columns. A path that ends in .json is such a
// file itself.
std::string TableFormatPath(const std::string& set);

// Writes a format as JSON. Throws as WriteWhole does.
void WriteTableFormat(const std::string& path, const TableFormat& format);

// Reads the format of a set. Throws kNoInput if the set has none, kNoPermission, kIo, and kData for
// a damaged file.
TableFormat ReadTableFormat(const std::string& set);

// Returns the separator of "," or ";" or another character, "tab" or "space". Throws kUsage, naming
// --separator, for any other text.
char ParseSeparator(const std::string& text);

}  // namespace trainer
