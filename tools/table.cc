#include "table.h"

#include <algorithm>
#include <cctype>
#include <iomanip>
#include <locale>
#include <sstream>

#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr std::pair<std::string_view, double> kByteUnits[] = {
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
    {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
    {"K", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30},   {"T", 0x1p40}};

bool LooksLikeNumber(const std::string& cell) {
  return cell.empty() || cell == "-" || std::isdigit(static_cast<unsigned char>(cell[0]));
}

}  // namespace

std::string Wrap(std::string_view text, size_t indent, size_t column) {
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
    const size_t end = std::min(text.find_first_of(" \n", i), text.size());
    const size_t length = end - i;
    if (!line_start && at + 1 + length > kColumns) {
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

std::string Table::ToString() const {
  const size_t columns = rows_[0].size();
  std::vector<size_t> width(columns, 0);
  std::vector<bool> number(columns, rows_.size() > 1);
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      width[c] = std::max(width[c], rows_[r][c].size());
      if (r > 0 && !LooksLikeNumber(rows_[r][c])) number[c] = false;
    }
  }
  std::string out;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t c = 0; c < columns; ++c) {
      const std::string pad(width[c] - row[c].size(), ' ');
      if (c > 0) line += "  ";
      line += number[c] ? pad + row[c] : row[c] + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
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
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    if (!whole || !(value > 0) || value * factor > 0x1p60) return std::nullopt;
    return static_cast<size_t>(value * factor);
  }
  return std::nullopt;
}

}  // namespace trainer
