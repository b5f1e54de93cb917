#include "trainer/monitor/run_metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

// Formats a number as Python's repr does, because Caffe's script writes it that way.
std::string PythonNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  constexpr double kLeast = 1e-4, kMost = 1e16;
  const double size = std::abs(value);
  const bool fixed = size == 0 || (size >= kLeast && size < kMost);
  char digits[400];
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value, format).ptr);
  if (fixed && text.find('.') == std::string::npos) text += ".0";
  return text;
}

// Returns the text as a cell of a CSV table, quoted if it has a comma, a quote or a line break.
std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// Removes the items of iteration `iter` and later ones.
template <class T>
void DropItemsFrom(double iter, std::vector<T>* items) {
  std::erase_if(*items, [&](const T& item) { return item.iter >= iter; });
}

}  // namespace

void DropFrom(double iter, RunMetrics* history) {
  DropItemsFrom(iter, &history->train);
  for (std::vector<MetricRow>& rows : history->tests) DropItemsFrom(iter, &rows);
  for (std::vector<MetricPoint>* points :
       {&history->loss, &history->rate, &history->images_per_second,
        &history->iterations_per_second, &history->data_wait, &history->ranks_computing,
        &history->ranks_exchange, &history->ranks_data}) {
    DropItemsFrom(iter, points);
  }
}

std::string LogCsv(const std::vector<MetricRow>& rows) {
  std::string table = "NumIters,Seconds,LearningRate";
  if (rows.empty()) return table + "\r\n";
  for (const auto& [name, value] : rows[0].outputs) table += "," + CsvCell(name);
  table += "\r\n";
  for (const MetricRow& row : rows) {
    table +=
        Join(PythonNumber(row.iter), ",", PythonNumber(row.seconds), ",", PythonNumber(row.rate));
    for (const auto& [name, unused] : rows[0].outputs) {
      const auto cell =
          std::ranges::find(row.outputs, name, [](const auto& output) { return output.first; });
      table += "," + (cell == row.outputs.end() ? std::string() : PythonNumber(cell->second));
    }
    table += "\r\n";
  }
  return table;
}

RunMetrics ReadRunMetrics(const std::string& path) {
  if (!IsDirectory(path) && !IsMissing(path)) {
    return path.ends_with(".jsonl") ? ReadMetrics(path) : ReadTrainingLog(path);
  }
  const std::string metrics = JoinPath(path, kMetricsName);
  if (IsMissing(metrics)) ThrowNotARun(path);
  RunMetrics history = ReadMetrics(metrics);
  history.path = path;
  return history;
}

}  // namespace trainer
