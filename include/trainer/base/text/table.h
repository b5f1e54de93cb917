#pragma once
// Formats text for a terminal.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

inline constexpr size_t kColumns = 80;

// Breaks `text` between words into lines of at most `width` columns, and indents each line after
// the first by `indent` blanks. `column` is where the first line starts. Newlines of the text stay,
// and a number stays on one line with its unit.
std::string Wrap(std::string_view text, size_t indent, size_t column = 0, size_t width = kColumns);

// Returns the columns of the standard output: the environment variable COLUMNS, or the terminal's.
// Returns SIZE_MAX if the output goes to a file or a pipe, whose lines have no limit.
size_t OutputColumns();

// Rows below a header. Each column is as wide as its widest cell, and two blanks separate columns.
// A column is right-aligned if every cell below the header looks like a number.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  // Adds a row, which must have as many cells as the header.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // States that the cells of these columns are whole numbers of bytes, or empty. They are printed
  // in one unit, which the largest number determines and the header names: "memory, MiB".
  Table& InBytes(const std::vector<std::string>& columns);
  // States that the cells of these columns are never shortened, because they hold numbers.
  Table& KeepWhole(std::vector<std::string> columns);
  // Names the columns that are left out if the output is too narrow, the first one first.
  Table& LeaveOut(std::vector<std::string> columns);
  // Prints the row that was added last in green if the output has colours.
  void MarkLastRow() { best_ = rows_.size() - 1; }

  // Returns lines of at most `width` columns that contain whole cells. Names that are too long lose
  // letters in their middle ("inception_..pool"); if that is not enough, columns are left out, and
  // the line below the table names them.
  std::string ToString(size_t width = OutputColumns()) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> spare_;
  size_t best_ = 0;  // 0, the head: none
  std::vector<bool> in_bytes_;
  std::vector<std::string> kept_whole_;
};

// Returns `value` with `decimals` digits after the point, in the C locale: "12.30".
std::string Fixed(double value, int decimals);

// Returns a size in the largest unit that fits, with two decimals below 10, else one: "1.50 MiB",
// "12.5 GiB", "812 B".
std::string Bytes(size_t bytes);
// Returns "1.5GiB", "16G" or "2GB" in bytes; nothing for any other text and for 0. K, M, G and T
// are powers of 1024 as KiB to TiB are; KB to TB are powers of 1000.
std::optional<size_t> ParseBytes(std::string_view text);

}  // namespace trainer
