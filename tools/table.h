#pragma once
// Text laid out for a terminal.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

inline constexpr size_t kColumns = 80;

// Words of `text` in lines of at most kColumns, each after the first begun with `indent` blanks.
// `column` is where the first line starts. Newlines of the text stay.
std::string Wrap(std::string_view text, size_t indent, size_t column = 0);

// Rows under a head, columns as wide as their widest cell, two blanks between them. Cells of
// columns where every cell below the head looks like a number stand to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  // As many cells as the head has.
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// `value` with `decimals` digits after the point, in the C locale: "12.30".
std::string Fixed(double value, int decimals);

// "1.5 MiB", "812 B".
std::string Bytes(size_t bytes);
// "1.5GiB", "16G", "2GB" in bytes; nothing for any other text.
std::optional<size_t> ParseBytes(std::string_view text);

}  // namespace trainer
