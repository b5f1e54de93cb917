#include "answers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "history/run_files.h"
#include "html.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"
#include "trainer/monitor/run_folder.h"

namespace trainer {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr size_t kMostMistakes = 20;
constexpr size_t kMostOfMatrix = 20;  // classes whose matrix fits on a page

std::vector<Struct> ListOf(const Struct& json, const char* name) {
  std::vector<Struct> list;
  const Value* const values = Field(json, name);
  if (values == nullptr) return list;
  for (const Value& value : values->list_value().values()) list.push_back(value.struct_value());
  return list;
}

// The name of a class, or its number.
std::string ClassName(const std::vector<std::string>& names, double number) {
  const bool known = number >= 0 && number < static_cast<double>(names.size());
  return known ? names[static_cast<size_t>(number)] : Plain(number);
}

// "-" where there is nothing to share.
std::string Percent(const Struct& json, const char* name) {
  const Value* const value = Field(json, name);
  if (value == nullptr || !value->has_number_value()) return "-";
  return Plain(std::round(1000 * value->number_value()) / 10) + " %";
}

// Lines are labels, columns answers; the stronger a field's colour, the larger its share of the
// line.
std::string MatrixHtml(const std::vector<std::string>& names, const std::vector<Struct>& cells) {
  std::map<std::pair<size_t, size_t>, double> counts;
  std::vector<double> sums(names.size());
  for (const Struct& cell : cells) {
    const double label = Number(cell, "label"), answer = Number(cell, "answer");
    const auto size = static_cast<double>(names.size());
    if (!(label >= 0 && label < size && answer >= 0 && answer < size)) continue;
    counts[{static_cast<size_t>(label), static_cast<size_t>(answer)}] = Number(cell, "count");
    sums[static_cast<size_t>(label)] += Number(cell, "count");
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

std::string MistakesHtml(const std::vector<std::string>& names, std::vector<Struct> cells) {
  std::erase_if(cells, [](const Struct& c) { return Number(c, "label") == Number(c, "answer"); });
  std::ranges::stable_sort(cells, std::greater<>(),
                           [](const Struct& c) { return Number(c, "count"); });
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < std::min(cells.size(), kMostMistakes); ++i) {
    rows.push_back({Plain(Number(cells[i], "count")), ClassName(names, Number(cells[i], "label")),
                    ClassName(names, Number(cells[i], "answer"))});
  }
  if (rows.empty()) return "";
  return "<h3>Most frequent mistakes</h3>\n" + TableHtml({"times", "class", "classified as"}, rows);
}

std::string LossOf(const Struct& picture) {
  const Value* const loss = Field(picture, "loss");
  if (loss == nullptr || !loss->has_number_value()) return "not finite";
  return Plain(std::round(1000 * loss->number_value()) / 1000);
}

}  // namespace

std::string ConfusionHtml(const RunHistory& run) {
  const std::optional<Struct> file = JsonOfRun(run, kConfusionName);
  const Value* const inside = file ? Field(*file, "confusion") : nullptr;
  if (inside == nullptr || Field(inside->struct_value(), "classes") == nullptr) return "";
  const Struct& json = inside->struct_value();
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  for (const Struct& one : ListOf(json, "classes")) {
    const std::string name = Text(one, "name");
    names.push_back(name.empty() ? Plain(Number(one, "class")) : name);
    rows.push_back({names.back(), Plain(Number(one, "records")), Percent(one, "recall"),
                    Percent(one, "precision")});
  }
  const std::vector<Struct> cells = ListOf(json, "matrix");
  return Join("<h3>Classes, accuracy ", Percent(json, "accuracy"), "</h3>\n",
              TableHtml({"class", "records", "recall", "precision"}, rows),
              names.size() <= kMostOfMatrix ? MatrixHtml(names, cells) : "",
              MistakesHtml(names, cells));
}

std::string WorstHtml(const RunHistory& run) {
  const std::optional<Struct> file = JsonOfRun(run, kWorstName);
  if (!file) return "";
  std::string figures;
  for (const Struct& picture : ListOf(*file, "pictures")) {
    const auto name = [&](const char* words, const char* number) {
      const std::string text = Text(picture, words);
      return text.empty() ? Plain(Number(picture, number)) : text;
    };
    const std::string label = name("label_name", "label"), answer = name("answer_name", "answer");
    const long percent = std::lround(100 * Number(picture, "confidence"));
    figures +=
        FigureHtml(Text(picture, "png"),
                   {label == answer ? label + ", correct" : Join(label, ", classified as ", answer),
                    Join(percent, " %, loss ", LossOf(picture)),
                    "record " + Plain(Number(picture, "record"))});
  }
  if (figures.empty()) return "";
  return "<h3>Images with the highest loss</h3>\n<div class=\"pictures worst\">\n" + figures +
         "</div>\n";
}

}  // namespace trainer
