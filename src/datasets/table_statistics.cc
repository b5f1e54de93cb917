#include "table_statistics.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kMostCategories = 10000;  // of a column

// Categories that are all numbers in the order of the numbers, else in byte order.
std::vector<std::string> SortedCategories(const std::set<std::string>& categories) {
  std::vector<std::string> sorted(categories.begin(), categories.end());
  const auto number = [](const std::string& text) { return ParseNumber<double>(text); };
  if (std::ranges::all_of(sorted, [&](const auto& text) { return number(text).has_value(); })) {
    std::ranges::stable_sort(sorted, {}, [&](const auto& text) { return *number(text); });
  }
  return sorted;
}

}  // namespace

void TableStatistics::Column::Add(const TableCell& cell) {
  if (cell.is_missing) {
    ++missing;
    return;
  }
  if (!cell.text.empty()) {
    if (categories.size() <= kMostCategories) categories.insert(cell.text);
    return;
  }
  min = count == 0 ? cell.number : std::min(min, cell.number);
  max = count == 0 ? cell.number : std::max(max, cell.number);
  ++count;
  const double before = cell.number - mean;
  mean += before / static_cast<double>(count);
  squares += before * (cell.number - mean);
}

void TableStatistics::Add(const TableRow& row, bool is_training) {
  for (size_t i = 0; is_training && i < row.inputs.size(); ++i) inputs_[i].Add(row.inputs[i]);
  // Every class needs a number, also one that only validation rows have.
  for (size_t i = 0; i < row.labels.size(); ++i) {
    if (is_training || !row.labels[i].text.empty()) labels_[i].Add(row.labels[i]);
  }
}

void TableStatistics::ApplyTo(const Column& from, TableScale scale, MissingValue missing,
                              const std::string& table, TableColumn* column) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kData, {table},
                Join("column '", EscapeControl(column->name), "' ", why));
  };
  const char* const no_value = "has no value in any row; leave it out with --ignore";
  if (column->is_categorical) {
    if (from.categories.empty()) fail(no_value);
    if (from.categories.size() > kMostCategories) {
      fail(Join("has more than ", kMostCategories,
                " categories, each of which would be an input; leave it out with --ignore"));
    }
    column->categories = SortedCategories(from.categories);
    return;
  }
  if (from.count == 0) fail(no_value);
  // Filled-in values count too, so that the stored column has exactly the requested range, or mean
  // and deviation.
  double min = from.min, max = from.max, mean = from.mean, squares = from.squares;
  const auto count = static_cast<double>(from.count), filled = static_cast<double>(from.missing);
  if (missing == MissingValue::kMean) column->fill = mean;
  if (missing == MissingValue::kZero && from.missing > 0) {
    min = std::min(min, 0.0);
    max = std::max(max, 0.0);
    squares += mean * mean * count * filled / (count + filled);
    mean *= count / (count + filled);
  }
  if (scale == TableScale::kNone) return;
  const double spread =
      scale == TableScale::kMinMax ? max - min : std::sqrt(squares / (count + filled));
  column->subtract = scale == TableScale::kMinMax ? min : mean;
  column->multiply = spread > 0 ? 1 / spread : 1;  // a constant column becomes 0
}

void TableStatistics::Apply(const CsvOptions& options, const std::string& table,
                            TableFormat* format) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    ApplyTo(inputs_[i], options.scale, options.missing, table, &format->inputs[i]);
  }
  const TableScale scale = options.scale_labels ? options.scale : TableScale::kNone;
  for (size_t i = 0; i < labels_.size(); ++i) {
    ApplyTo(labels_[i], scale, MissingValue::kRefuse, table, &format->labels[i]);
  }
}

}  // namespace trainer
