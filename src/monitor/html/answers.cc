#include "answers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "history/run_files.h"
#include "html.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

constexpr size_t kMostMistakes = 20;
constexpr size_t kMostOfMatrix = 20;  // classes whose matrix fits on a page

// Returns the objects in the list `name`; none if the field is missing.
std::vector<JsonObject> ListOf(const JsonObject& json, const char* name) {
  std::vector<JsonObject> list;
  const JsonElement* const values = JsonField(json, name);
  if (values == nullptr) return list;
  for (const JsonElement& value : values->list_value().values())
    list.push_back(value.struct_value());
  return list;
}

// Returns the name of a class, or its number if it has none.
std::string ClassName(const std::vector<std::string>& names, double number) {
  const bool known = number >= 0 && number < static_cast<double>(names.size());
  return known ? names[static_cast<size_t>(number)] : Plain(number);
}

// Returns the fraction `name` in percent; "-" if it is missing or null, as for a class without
// records.
std::string Percent(const JsonObject& json, const char* name) {
  const JsonElement* const value = JsonField(json, name);
  if (value == nullptr || !value->has_number_value()) return "-";
  return Plain(std::round(1000 * value->number_value()) / 10) + " %";
}

// Returns a table with a row per label and a column per answer. The colour of a field is stronger,
// the larger its share of the row.
std::string MatrixHtml(const std::vector<std::string>& names,
                       const std::vector<JsonObject>& cells) {
  std::map<std::pair<size_t, size_t>, double> counts;
  std::vector<double> sums(names.size());
  for (const JsonObject& cell : cells) {
    const double label = JsonNumber(cell, "label"), answer = JsonNumber(cell, "answer");
    const auto size = static_cast<double>(names.size());
    if (!(label >= 0 && label < size && answer >= 0 && answer < size)) continue;
    counts[{static_cast<size_t>(label), static_cast<size_t>(answer)}] = JsonNumber(cell, "count");
    sums[static_cast<size_t>(label)] += JsonNumber(cell, "count");
  }
  std::string html =
      "<h3>Confusion matrix</h3>\n"
      "<p>One row per class, one column per answer.</p>\n"
      "<div class=\"wide\"><table class=\"matrix\">\n"
      "<tr><th></th>";
  for (const std::string& name : names) html += "<th>" + EscapeHtml(name) + "</th>";
  html += "</tr>\n";
  for (size_t label = 0; label < names.size(); ++label) {
    html += "<tr><th>" + EscapeHtml(names[label]) + "</th>";
    for (size_t answer = 0; answer < names.size(); ++answer) {
      const auto found = counts.find({label, answer});
      if (found == counts.end()) {
        html += "<td></td>";
        continue;
      }
      const long percent = std::lround(100 * found->second / std::max(sums[label], 1.0));
      html += Join("<td class=\"", label == answer ? "hit" : "miss", "\" style=\"--share:", percent,
                   "%\">", Plain(found->second), "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

// Returns a table of the most frequent pairs of a class and a wrong answer; "" without mistakes.
std::string MistakesHtml(const std::vector<std::string>& names, std::vector<JsonObject> cells) {
  std::erase_if(
      cells, [](const JsonObject& c) { return JsonNumber(c, "label") == JsonNumber(c, "answer"); });
  std::ranges::stable_sort(cells, std::greater<>(),
                           [](const JsonObject& c) { return JsonNumber(c, "count"); });
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < std::min(cells.size(), kMostMistakes); ++i) {
    rows.push_back({Plain(JsonNumber(cells[i], "count")),
                    ClassName(names, JsonNumber(cells[i], "label")),
                    ClassName(names, JsonNumber(cells[i], "answer"))});
  }
  if (rows.empty()) return "";
  return "<h3>Most frequent mistakes</h3>\n" + TableHtml({"times", "class", "classified as"}, rows);
}

// Returns the loss with three decimals. JSON has null for a loss that is not finite.
std::string LossOf(const JsonObject& picture) {
  const JsonElement* const loss = JsonField(picture, "loss");
  if (loss == nullptr || !loss->has_number_value()) return "not finite";
  return Plain(std::round(1000 * loss->number_value()) / 1000);
}

}  // namespace

std::string ConfusionHtml(const RunMetrics& run) {
  const std::optional<JsonObject> file = JsonOfRun(run, kConfusionName);
  const JsonElement* const inside = file ? JsonField(*file, "confusion") : nullptr;
  if (inside == nullptr || JsonField(inside->struct_value(), "classes") == nullptr) return "";
  const JsonObject& json = inside->struct_value();
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  for (const JsonObject& one : ListOf(json, "classes")) {
    const std::string name = JsonText(one, "name");
    names.push_back(name.empty() ? Plain(JsonNumber(one, "class")) : name);
    rows.push_back({names.back(), Plain(JsonNumber(one, "records")), Percent(one, "recall"),
                    Percent(one, "precision")});
  }
  const std::vector<JsonObject> cells = ListOf(json, "matrix");
  return Join("<h3>Classes, accuracy ", Percent(json, "accuracy"), "</h3>\n",
              TableHtml({"class", "records", "recall", "precision"}, rows),
              names.size() <= kMostOfMatrix ? MatrixHtml(names, cells) : "",
              MistakesHtml(names, cells));
}

std::string WorstHtml(const RunMetrics& run) {
  const std::optional<JsonObject> file = JsonOfRun(run, kWorstName);
  if (!file) return "";
  std::string figures;
  for (const JsonObject& picture : ListOf(*file, "pictures")) {
    const auto name = [&](const char* words, const char* number) {
      const std::string text = JsonText(picture, words);
      return text.empty() ? Plain(JsonNumber(picture, number)) : text;
    };
    const std::string label = name("label_name", "label"), answer = name("answer_name", "answer");
    const long percent = std::lround(100 * JsonNumber(picture, "confidence"));
    figures +=
        FigureHtml(JsonText(picture, "png"),
                   {label == answer ? label + ", correct" : Join(label, ", classified as ", answer),
                    Join(percent, " %, loss ", LossOf(picture)),
                    "record " + Plain(JsonNumber(picture, "record"))});
  }
  if (figures.empty()) return "";
  return "<h3>Images with the highest loss</h3>\n<div class=\"pictures worst\">\n" + figures +
         "</div>\n";
}

}  // namespace trainer
