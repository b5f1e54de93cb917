#include "trainer/storage/table_reader.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/base/text/utf8.h"

namespace trainer {
namespace {

constexpr int64_t kMostLoggedRows = 5;
constexpr size_t kShownBytes = 40;  // of a field in a message
constexpr char kNotUtf8[] =
    "has a text that is not UTF-8; convert the table, for example with iconv -f latin1 -t utf-8";
// The advice if the columns are those of another set, which no flag can change.
constexpr char kCorrectField[] =
    "correct the field, or leave the row out with --bad_records=skip=N";

std::string ShownField(const std::string& field) {
  return EscapeControl(field.substr(0, kShownBytes)) + (field.size() > kShownBytes ? "..." : "");
}

// What programs write for a value that nobody knows.
bool IsMissingField(const std::string& field) {
  if (field.empty()) return true;
  if (field.size() > 4) return false;
  const std::string word = LowerCase(field);
  return word == "?" || word == "na" || word == "n/a" || word == "nan" || word == "null" ||
         word == "none";
}

// Parses a number; true is 1 and false is 0.
std::optional<double> ParseTableNumber(const std::string& field) {
  std::string_view text = field;
  if (text.starts_with('+')) text.remove_prefix(1);
  if (const std::optional<double> number = ParseNumber<double>(text)) return number;
  const std::string word = LowerCase(field);
  if (word == "true") return 1;
  if (word == "false") return 0;
  return std::nullopt;
}

std::vector<std::string> ColumnNames(std::vector<std::string> header) {
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i].empty()) header[i] = Join(i + 1);
  }
  return header;
}

// Returns the place of each column among the names. Throws kData if one is not there.
std::vector<size_t> FindColumns(const std::vector<TableColumn>& columns,
                                const std::vector<std::string>& names, const std::string& path,
                                const char* what) {
  std::map<std::string_view, size_t> place_of;
  for (size_t i = 0; i < names.size(); ++i) place_of.emplace(names[i], i);
  std::vector<size_t> places;
  for (const TableColumn& column : columns) {
    const auto found = place_of.find(column.name);
    if (found == place_of.end()) {
      throw Error(
          ErrorCode::kData, {path, 1},
          EscapeControl(Join("the table has no column '", column.name, "', which is ", what, ".",
                             DidYouMean(column.name, names), " It has: ", JoinList(names))));
    }
    places.push_back(found->second);
  }
  return places;
}

std::vector<std::map<std::string, size_t>> CategoryIndices(
    const std::vector<TableColumn>& columns) {
  std::vector<std::map<std::string, size_t>> indices(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    for (const std::string& category : columns[i].categories) {
      indices[i].emplace(category, indices[i].size());
    }
  }
  return indices;
}

}  // namespace

std::vector<std::string> ReadTableHeader(const std::string& path, char separator, bool has_header) {
  CsvReader csv(path, separator);
  std::vector<std::string> header;
  if (!csv.Next(&header)) {
    throw Error(ErrorCode::kData, {path}, "the table is empty; write a header and rows");
  }
  if (!has_header) std::ranges::fill(header, "");
  header = ColumnNames(std::move(header));
  std::set<std::string_view> names;
  for (size_t i = 0; i < header.size(); ++i) {
    if (!IsUtf8(header[i])) {
      throw Error(ErrorCode::kData, {path, static_cast<int>(csv.line())},
                  Join("the name of column ", i + 1, " ", kNotUtf8));
    }
    if (names.insert(header[i]).second) continue;
    throw Error(ErrorCode::kData, {path, static_cast<int>(csv.line())},
                Join("two columns are named '", ShownField(header[i]), "'; rename one"));
  }
  return header;
}

TableReader::TableReader(const std::string& path, const TableFormat& format,
                         const TableReaderOptions& options)
    : format_(format), options_(options), csv_(path, format.separator) {
  const std::vector<std::string> names = ReadTableHeader(path, format.separator, format.has_header);
  field_count_ = names.size();
  input_fields_ = FindColumns(format.inputs, names, path, "an input");
  if (options.labels) label_fields_ = FindColumns(format.labels, names, path, "a label");
  const std::set<std::string_view> ignored(format.ignored.begin(), format.ignored.end());
  for (size_t i = 0; i < names.size(); ++i) {
    if (!ignored.contains(names[i])) continue;
    ignored_names_.push_back(names[i]);
    ignored_fields_.push_back(i);
  }
  input_categories_ = CategoryIndices(format.inputs);
  label_categories_ = CategoryIndices(format.labels);
  if (format.has_header) csv_.Next(&fields_);
}

void TableReader::Fail(const TableColumn& column, const std::string& why) const {
  throw Error(ErrorCode::kData, {csv_.path(), static_cast<int>(csv_.line())},
              Join("column '", ShownField(column.name), "' ", why));
}

bool TableReader::ParseCell(const TableColumn& column, const std::string& field,
                            TableCell* cell) const {
  cell->is_missing = IsMissingField(field);
  if (cell->is_missing) return false;
  if (column.is_categorical) {
    if (!IsUtf8(field)) Fail(column, kNotUtf8);
    cell->text = field;
    return true;
  }
  const std::optional<double> number = ParseTableNumber(field);
  if (!number) {
    Fail(column,
         Join("has '", ShownField(field), "', which is not a number; ",
              options_.encodes
                  ? kCorrectField
                  : Join("if it is a category, give --categorical=", ShownField(column.name),
                         ", or leave the column out with --ignore")));
  }
  if (!std::isfinite(*number) || std::fabs(*number) > 3e38) {
    Fail(column, Join("has '", ShownField(field), "', which is too large for a 32-bit float"));
  }
  cell->number = *number;
  return true;
}

bool TableReader::ParseCells(const std::vector<TableColumn>& columns,
                             const std::vector<size_t>& fields, bool are_labels,
                             std::vector<TableCell>* cells) const {
  cells->resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string& field = fields_[fields[i]];
    if (ParseCell(columns[i], field, &(*cells)[i])) continue;
    if (format_.missing == MissingValue::kSkip) return false;
    if (are_labels) {
      Fail(columns[i],
           Join("is a label and has no value ('", ShownField(field), "'); ",
                options_.encodes ? kCorrectField : "leave such rows out with --missing=skip"));
    }
    if (format_.missing == MissingValue::kRefuse) {
      Fail(columns[i],
           Join("has no value ('", ShownField(field), "'); ",
                options_.encodes ? kCorrectField
                                 : "say what takes its place: --missing=mean, zero, or skip to "
                                   "leave the row out"));
    }
  }
  return true;
}

bool TableReader::Parse(TableRow* row) const {
  row->line = csv_.line();
  if (fields_.size() != field_count_) {
    throw Error(ErrorCode::kData, {csv_.path(), static_cast<int>(csv_.line())},
                Join("the row has ", fields_.size(), " fields, but the ",
                     format_.has_header ? "header" : "first row", " has ", field_count_,
                     "; quote fields that contain the separator '", format_.separator, "'"));
  }
  if (!ParseCells(format_.inputs, input_fields_, false, &row->inputs)) return false;
  if (!ParseCells(format_.labels, label_fields_, true, &row->labels)) return false;
  for (size_t i = 0; options_.encodes && i < row->labels.size(); ++i) {
    const TableColumn& column = format_.labels[i];
    if (!column.is_categorical || label_categories_[i].contains(row->labels[i].text)) continue;
    Fail(column, Join("is a label and has the new category '", ShownField(row->labels[i].text),
                      "'; the known ones are: ", EscapeControl(FirstNames(column.categories))));
  }
  row->ignored.clear();
  for (const size_t field : ignored_fields_) row->ignored.push_back(fields_[field]);
  return true;
}

bool TableReader::Next(TableRow* row) {
  while (csv_.Next(&fields_)) {
    try {
      if (Parse(row)) return true;
      ++skipped_;
    } catch (const Error& error) {
      if (bad_ == options_.most_bad) throw;
      // A pass that only measures the table leaves the warning to the one that encodes its rows.
      LOG_IF(WARNING, ++bad_ <= kMostLoggedRows && options_.encodes)
          << "left out: " << error.what();
    }
  }
  return false;
}

void TableReader::CountUnknown(const std::string& column, const std::string& category,
                               int64_t line) {
  const auto found = std::ranges::find(unknown_, column, &UnknownCategories::column);
  if (found != unknown_.end()) {
    ++found->rows;
  } else {
    unknown_.push_back({column, category, line, 1});
  }
}

void TableReader::AppendInput(size_t index, const TableCell& cell, int64_t line,
                              std::vector<float>* to) {
  const TableColumn& column = format_.inputs[index];
  if (!column.is_categorical) {
    const double number = cell.is_missing ? column.fill : cell.number;
    to->push_back(static_cast<float>((number - column.subtract) * column.multiply));
    return;
  }
  const size_t begin = to->size();
  to->resize(begin + column.categories.size(), 0.0f);
  if (cell.is_missing) return;
  const auto category = input_categories_[index].find(cell.text);
  if (category == input_categories_[index].end()) return CountUnknown(column.name, cell.text, line);
  (*to)[begin + category->second] = 1;
}

void TableReader::Encode(const TableRow& row, std::vector<float>* inputs,
                         std::vector<float>* labels) {
  for (size_t i = 0; i < row.inputs.size(); ++i) AppendInput(i, row.inputs[i], row.line, inputs);
  for (size_t i = 0; i < row.labels.size(); ++i) {
    const TableColumn& column = format_.labels[i];
    const double value = column.is_categorical
                             ? static_cast<double>(label_categories_[i].at(row.labels[i].text))
                             : (row.labels[i].number - column.subtract) * column.multiply;
    labels->push_back(static_cast<float>(value));
  }
}

}  // namespace trainer
