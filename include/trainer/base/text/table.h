#pragma once
// Text laid out for a terminal.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

inline constexpr size_t kColumns = 80;

// Words of `text` in lines of at most `width` columns, each after the first begun with `indent`
// blanks. `column` is where the first line starts. Newlines of the text stay, and so do a number
// and its unit together.
std::string Wrap(std::string_view text, size_t indent, size_t column = 0, size_t width = kColumns);

// The columns of the standard output: the environment variable COLUMNS, or what the terminal has.
// SIZE_MAX where the output goes to a file or a pipe, whose lines have no limit.
size_t OutputColumns();

// Rows under a head, columns as wide as their widest cell, two blanks between them. Cells of
// columns where every cell below the head looks like a number stand to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  // As many cells as the head has.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // The cells of these columns are whole numbers of bytes, or empty. They are printed in one unit,
  // which follows the largest and stands in the head: "memory, MiB".
  Table& InBytes(const std::vector<std::string>& columns);
  // The cells of these columns are never shortened, because they hold numbers.
  Table& KeepWhole(std::vector<std::string> columns);
  // The columns that a narrow output goes without, the first one first.
  Table& LeaveOut(std::vector<std::string> columns);
  // The row added last is green where the output has colours.
  void MarkLastRow() { best_ = rows_.size() - 1; }

  // Lines of at most `width` columns, of whole cells: names too long lose letters in their middle
  // ("inception_..pool"), then columns are left out, which the line below the table names.
  std::string ToString(size_t width = OutputColumns()) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> spare_;
  size_t best_ = 0;  // 0, the head: none
  std::vector<bool> in_bytes_;
  std::vector<std::string> kept_whole_;
};

// `value` with `decimals` digits after the point, in the C locale: "12.30".
std::string Fixed(double value, int decimals);

// "1.5 MiB", "812 B".
std::string Bytes(size_t bytes);
// "1.5GiB", "16G", "2GB" in bytes; nothing for any other text.
std::optional<size_t> ParseBytes(std::string_view text);

}  // namespace trainer
