#include "trainer/base/text/table.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iomanip>
#include <locale>
#include <sstream>

#include "trainer/base/log/terminal.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr std::pair<std::string_view, double> kByteUnits[] = {
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
    {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
    {"K", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30},   {"T", 0x1p40}};

// Returns whether a cell begins with a number ("12", "16 96 55 55", "1:02:03"), or stands for a
// missing one ("", "-", "nan", "inf").
bool BeginsWithNumber(const std::string& cell) {
  if (cell.empty() || cell == "-" || cell == "nan" || cell == "inf") return true;
  const size_t sign = cell.find_first_of("-+<") == 0 ? 1 : 0;
  return cell.size() > sign && std::isdigit(static_cast<unsigned char>(cell[sign]));
}

// Returns whether a cell is a number, with or without its unit, or empty.
bool LooksLikeNumber(const std::string& cell) {
  const size_t end = cell.find_first_not_of("0123456789.,:+-<e");
  return BeginsWithNumber(cell) &&
         (end == std::string::npos || cell.substr(0, 3) == "nan" || cell.substr(0, 3) == "inf" ||
          cell[end] == '%' ||
          (cell[end] == ' ' && cell.find_first_of("0123456789", end) == std::string::npos));
}

// Returns the offsets in `text` at which a UTF-8 character begins. Each character takes a column.
std::vector<size_t> CharactersOf(const std::string& text) {
  std::vector<size_t> begins;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) begins.push_back(i);
  }
  return begins;
}

// Returns at most `width` columns of `text`, namely its beginning and its end, because names of
// layers differ in either.
std::string Shortened(const std::string& text, size_t width) {
  constexpr std::string_view kGap = "..";
  const std::vector<size_t> begins = CharactersOf(text);
  if (begins.size() <= width) return text;
  if (width <= kGap.size()) return text.substr(0, begins[width]);
  const size_t shown = width - kGap.size(), end = shown / 2, begin = shown - end;
  std::string out = text.substr(0, begins[begin]);
  out += kGap;
  return end == 0 ? out : out + text.substr(begins[begins.size() - end]);
}

// Writes the numbers of bytes below the header in one unit, which the header names.
void WriteInOneUnit(std::vector<std::vector<std::string>>* rows, size_t column) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double most = 0;
  for (size_t r = 1; r < rows->size(); ++r) {
    most = std::max(most, std::strtod((*rows)[r][column].c_str(), nullptr));
  }
  int unit = 0;
  double scale = 1;
  for (; unit < 4 && most / scale >= 1e5; ++unit) scale *= 1024;
  (*rows)[0][column] += Join(", ", kUnits[unit]);
  if (unit == 0) return;
  constexpr double kLeast = 0.05;  // the least number that one decimal shows
  for (size_t r = 1; r < rows->size(); ++r) {
    std::string& cell = (*rows)[r][column];
    if (cell.find_first_not_of("0123456789") != std::string::npos || cell.empty()) continue;
    const double value = std::strtod(cell.c_str(), nullptr) / scale;
    cell = value > 0 && value < kLeast ? "<0.1" : Fixed(value, 1);
  }
}

// Fits a table into a width.
class FittedTable {
 public:
  FittedTable(std::vector<std::vector<std::string>> rows,
              const std::vector<std::string>& kept_whole)
      : rows_(std::move(rows)) {
    for (size_t c = 0; c < rows_[0].size(); ++c)
      Measure(c, std::ranges::count(kept_whole, rows_[0][c]) > 0);
  }

  // Stops as soon as the lines have at most `width` columns: shortens names to no less than 26
  // columns, then drops the columns of `spare` one by one, then shortens names to no less than 8,
  // and at last drops columns from the right.
  void Fit(size_t width, const std::vector<std::string>& spare) {
    constexpr size_t kReadable = 26, kLeast = 8;  // columns of a name
    Shorten(width, kReadable);
    for (const std::string& name : spare) {
      if (Width() <= width) return;
      const auto found = std::ranges::find(rows_[0], name);
      if (found != rows_[0].end()) Drop(static_cast<size_t>(found - rows_[0].begin()));
      Shorten(width, kReadable);
    }
    Shorten(width, kLeast);
    while (Width() > width && width_.size() > 1) Drop(width_.size() - 1);
  }

  // Returns row `r`, with numbers right-aligned and without blanks at the end.
  std::string Line(size_t r) const {
    std::string line;
    for (size_t c = 0; c < width_.size(); ++c) {
      const std::string cell = Shortened(rows_[r][c], width_[c]);
      const std::string pad(width_[c] - CharactersOf(cell).size(), ' ');
      if (c > 0) line += "  ";
      line += number_[c] ? pad + cell : cell + pad;
    }
    return line.erase(line.find_last_not_of(' ') + 1);
  }
  size_t rows() const { return rows_.size(); }
  const std::vector<std::string>& dropped() const { return dropped_; }

 private:
  // Appends column `c` to the measured columns. It is right-aligned if all its cells look like
  // numbers, and never shortened if all begin with one or if it is to be kept whole.
  void Measure(size_t c, bool kept_whole) {
    size_t width = 0;
    bool number = rows_.size() > 1, whole = number;
    for (size_t r = 0; r < rows_.size(); ++r) {
      width = std::max(width, CharactersOf(rows_[r][c]).size());
      if (r > 0 && !LooksLikeNumber(rows_[r][c])) number = false;
      if (r > 0 && !BeginsWithNumber(rows_[r][c])) whole = false;
    }
    whole_.push_back(whole || kept_whole);
    natural_.push_back(width);
    width_.push_back(width);
    number_.push_back(number);
  }

  // Returns the columns that a line takes.
  size_t Width() const {
    size_t sum = 2 * (width_.size() - 1);
    for (const size_t width : width_) sum += width;
    return sum;
  }

  // Shortens the widest names, but not below `least` or the width of the header.
  void Shorten(size_t width, size_t least) {
    width_ = natural_;
    while (Width() > width) {
      size_t widest = width_.size();
      for (size_t c = 0; c < width_.size(); ++c) {
        if (whole_[c] || width_[c] <= std::max(least, rows_[0][c].size())) continue;
        if (widest == width_.size() || width_[c] > width_[widest]) widest = c;
      }
      if (widest == width_.size()) return;
      --width_[widest];
    }
  }

  // Removes a column from all rows, and keeps its name for the line below the table.
  void Drop(size_t column) {
    const auto at = static_cast<std::ptrdiff_t>(column);
    dropped_.push_back(rows_[0][column]);
    for (std::vector<std::string>& row : rows_) row.erase(row.begin() + at);
    natural_.erase(natural_.begin() + at);
    width_.erase(width_.begin() + at);
    number_.erase(number_.begin() + at);
    whole_.erase(whole_.begin() + at);
  }

  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> natural_, width_;
  std::vector<bool> number_, whole_;  // right-aligned; never shortened
  std::vector<std::string> dropped_;
};

// Returns the end of the word that begins at `i`; a number and its unit are one word.
size_t WordEnd(std::string_view text, size_t i) {
  static constexpr std::string_view kUnits[] = {"B",  "KiB", "MiB", "GiB", "TiB",
                                                "ms", "s",   "us",  "%"};
  const size_t end = std::min(text.find_first_of(" \n", i), text.size());
  if (std::isdigit(static_cast<unsigned char>(text[i])) == 0 || end == text.size()) return end;
  const size_t next = std::min(text.find_first_of(" \n", end + 1), text.size());
  std::string_view unit = text.substr(end + 1, next - end - 1);
  unit = unit.substr(0, unit.find_last_not_of(",.;:)") + 1);
  return text[end] == ' ' && std::ranges::find(kUnits, unit) != std::end(kUnits) ? next : end;
}

}  // namespace

std::string Wrap(std::string_view text, size_t indent, size_t column, size_t width) {
  std::string out;
  size_t at = column;
  bool line_start = true;
  size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '\n') {
      out += '\n';
      out.append(indent, ' ');
      at = indent;
      line_start = true;
      ++i;
      continue;
    }
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    const size_t end = WordEnd(text, i);
    const size_t length = end - i;
    if (!line_start && at + 1 + length > width) {
      out += '\n';
      out.append(indent, ' ');
      at = indent;
      line_start = true;
    }
    if (!line_start) {
      out += ' ';
      ++at;
    }
    out += text.substr(i, length);
    at += length;
    line_start = false;
    i = end;
  }
  return out;
}

size_t OutputColumns() {
  const std::string given = EnvironmentVariable("COLUMNS");
  if (const size_t columns = ParseNumber<size_t>(given).value_or(0); columns > 0) return columns;
  const int terminal = TerminalColumns(STDOUT_FILENO);
  return terminal > 0 ? static_cast<size_t>(terminal) : SIZE_MAX;
}

Table& Table::InBytes(const std::vector<std::string>& columns) {
  in_bytes_.assign(rows_[0].size(), false);
  for (size_t c = 0; c < rows_[0].size(); ++c) {
    in_bytes_[c] = std::ranges::find(columns, rows_[0][c]) != columns.end();
  }
  return *this;
}

Table& Table::KeepWhole(std::vector<std::string> columns) {
  kept_whole_ = std::move(columns);
  return *this;
}

Table& Table::LeaveOut(std::vector<std::string> columns) {
  spare_ = std::move(columns);
  return *this;
}

std::string Table::ToString(size_t width) const {
  std::vector<std::vector<std::string>> rows = rows_;
  std::vector<std::string> spare = spare_;
  for (size_t c = 0; c < in_bytes_.size(); ++c) {
    if (!in_bytes_[c]) continue;
    const std::string name = rows[0][c];
    WriteInOneUnit(&rows, c);
    std::ranges::replace(spare, name, rows[0][c]);
  }
  FittedTable layout(std::move(rows), kept_whole_);
  layout.Fit(width, spare);
  std::string out;
  for (size_t r = 0; r < layout.rows(); ++r) {
    const bool best = r > 0 && r == best_;
    out += Painted(best ? Color::kGreen : Color::kPlain, layout.Line(r), STDOUT_FILENO) + "\n";
  }
  if (layout.dropped().empty()) return out;
  return out +
         Wrap(Join("(not shown in ", width, " columns: ", JoinList(layout.dropped()), ")"), 1) +
         "\n";
}

std::string Fixed(double value, int decimals) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << std::fixed << std::setprecision(decimals) << value;
  return out.str();
}

std::string Bytes(size_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return Join(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return Fixed(value, value < 10 ? 2 : 1) + " " + kUnits[unit];
}

std::optional<size_t> ParseBytes(std::string_view text) {
  for (const auto& [unit, factor] : kByteUnits) {
    if (!text.ends_with(unit)) continue;
    const std::string_view digits = text.substr(0, text.size() - unit.size());
    const double value = ParseNumber<double>(digits).value_or(0);
    if (!(value > 0) || value * factor > 0x1p60) return std::nullopt;
    return static_cast<size_t>(value * factor);
  }
  return std::nullopt;
}

}  // namespace trainer
