#include "trainer/report/page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>

#include "run_files.h"
#include "trainer/base/text.h"
#include "trainer/observe/live_view.h"
#include "trainer/observe/run_folder.h"
#include "trainer/report/chart.h"

namespace trainer {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

const Value* Field(const Struct& json, const std::string& name) {
  const auto found = json.fields().find(name);
  return found == json.fields().end() ? nullptr : &found->second;
}

double Number(const Struct& json, const std::string& name) {
  const Value* const value = Field(json, name);
  return value == nullptr ? 0 : value->number_value();
}

std::string Plain(double value) { return Join(static_cast<float>(value)); }

std::string Cell(const std::string& text, const char* tag = "td") {
  return Join("<", tag, ">", EscapeHtml(text), "</", tag, ">");
}

std::string TableRow(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string row = "<tr>";
  for (const std::string& cell : cells) row += Cell(cell, tag);
  return row + "</tr>\n";
}

// Wide tables scroll by themselves on narrow screens.
std::string TableHtml(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"wide\"><table>\n" + TableRow(head, "th");
  for (const auto& row : rows) html += TableRow(row);
  return html + "</table></div>\n";
}

std::string StateOf(const RunHistory& run) {
  if (run.ended && !run.stopped_early) return "finished";
  return run.stopped_early ? "stopped" : "not finished";
}

std::string LastOf(const std::vector<HistoryPoint>& points) {
  return points.empty() ? "" : Plain(points.back().value);
}

double MeanOf(const std::vector<HistoryPoint>& points) {
  double sum = 0;
  for (const HistoryPoint& point : points) sum += point.value;
  return points.empty() ? 0 : sum / static_cast<double>(points.size());
}

// "accuracy 0.9912, loss 0.03"
std::string LastTest(const RunHistory& run) {
  if (run.tests.empty() || run.tests[0].empty()) return "";
  std::string text;
  constexpr size_t kMost = 4;
  const auto& outputs = run.tests[0].back().outputs;
  for (size_t i = 0; i < std::min(outputs.size(), kMost); ++i) {
    text += Join(i == 0 ? "" : ", ", outputs[i].first, " ", Plain(outputs[i].second));
  }
  return text;
}

std::string RunsTable(const std::vector<RunHistory>& runs) {
  std::vector<std::vector<std::string>> rows;
  for (const RunHistory& run : runs) {
    rows.push_back(
        {NameOf(run), run.net, StateOf(run),
         run.max_iter > 0 ? Join(run.last_iter, " of ", run.max_iter) : Join(run.last_iter),
         ClockText(run.seconds), LastOf(run.loss), LastTest(run),
         run.images_per_second.empty() ? "" : Plain(MeanOf(run.images_per_second)),
         run.data_wait.empty() ? "" : Join(std::lround(100 * MeanOf(run.data_wait)), " %")});
  }
  return TableHtml({"run", "net", "state", "iteration", "time", "last loss", "last test",
                    "images/s", "waiting for data"},
                   rows);
}

// The fields of the solvers that are not the same in all runs.
std::string DifferencesTable(const std::vector<RunHistory>& runs) {
  std::vector<std::map<std::string, std::string>> settings;
  std::set<std::string> names;
  for (const RunHistory& run : runs) {
    settings.push_back(SettingsOfRun(run));
    for (const auto& [name, value] : settings.back()) names.insert(name);
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : names) {
    std::vector<std::string> row = {name};
    for (auto& of_run : settings) row.push_back(of_run[name]);
    const bool differs =
        std::adjacent_find(row.begin() + 1, row.end(), std::not_equal_to<>()) != row.end();
    if (differs) rows.push_back(row);
  }
  if (rows.empty()) return "";
  std::vector<std::string> head = {"solver"};
  for (const RunHistory& run : runs) head.push_back(NameOf(run));
  return "<h2>Settings that differ</h2>\n" + TableHtml(head, rows);
}

std::string Picture(const RunHistory& run, const char* file, const std::string& caption) {
  const std::optional<std::string> png = FileOfRun(run, file);
  if (!png) return "";
  return Join("<figure><img alt=\"", EscapeHtml(caption), "\" src=\"data:image/png;base64,",
              Base64(*png), "\"><figcaption>", EscapeHtml(caption), "</figcaption></figure>\n");
}

// Each layer's milliseconds as bars, by what `trainer time --json` measured.
std::string LayerTimes(const RunHistory& run) {
  const std::optional<Struct> json = JsonOfRun(run, "time.json");
  const Value* const layers = json ? Field(*json, "layers") : nullptr;
  if (layers == nullptr) return "";
  struct Bar {
    std::string name;
    double ms = 0;
  };
  std::vector<Bar> bars;
  double most = 0;
  for (const Value& value : layers->list_value().values()) {
    const Struct& layer = value.struct_value();
    Bar bar;
    const Value* const name = Field(layer, "name");
    bar.name = name == nullptr ? "" : name->string_value();
    for (const char* pass : {"forward", "backward"}) {
      const Value* const times = Field(layer, pass);
      if (times != nullptr) bar.ms += Number(times->struct_value(), "median_ms");
    }
    most = std::max(most, bar.ms);
    bars.push_back(bar);
  }
  std::string html = "<h3>Time per layer, forward and backward</h3>\n<div class=\"wide\"><table>\n";
  for (const Bar& bar : bars) {
    const int percent = most > 0 ? static_cast<int>(std::lround(100 * bar.ms / most)) : 0;
    html += Join("<tr><td>", EscapeHtml(bar.name), "</td><td>", Plain(bar.ms),
                 " ms</td><td class=\"bars\"><div class=\"bar\" style=\"width:", percent,
                 "%\"></div></td></tr>\n");
  }
  return html + "</table></div>\n";
}

std::string Confusion(const RunHistory& run) {
  const std::optional<Struct> file = JsonOfRun(run, "confusion.json");
  const Value* const inside = file ? Field(*file, "confusion") : nullptr;
  if (inside == nullptr) return "";
  const Struct& json = inside->struct_value();
  const Value* const classes = Field(json, "classes");
  if (classes == nullptr) return "";
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  for (const Value& value : classes->list_value().values()) {
    const Struct& one = value.struct_value();
    const Value* const name = Field(one, "name");
    names.push_back(name == nullptr ? Plain(Number(one, "class")) : name->string_value());
    rows.push_back({names.back(), Plain(Number(one, "records")), Plain(Number(one, "recall")),
                    Plain(Number(one, "precision"))});
  }
  std::vector<Struct> cells;
  if (const Value* const matrix = Field(json, "matrix")) {
    for (const Value& value : matrix->list_value().values()) cells.push_back(value.struct_value());
  }
  std::erase_if(cells, [](const Struct& c) { return Number(c, "label") == Number(c, "answer"); });
  std::ranges::stable_sort(cells, std::greater<>(),
                           [](const Struct& c) { return Number(c, "count"); });
  constexpr size_t kMost = 20;
  std::vector<std::vector<std::string>> mistakes;
  const auto name_of = [&](double number) {
    const auto at = static_cast<size_t>(std::max(number, 0.0));
    return at < names.size() ? names[at] : Plain(number);
  };
  for (size_t i = 0; i < std::min(cells.size(), kMost); ++i) {
    mistakes.push_back({Plain(Number(cells[i], "count")), name_of(Number(cells[i], "label")),
                        name_of(Number(cells[i], "answer"))});
  }
  std::string html = Join("<h3>Classes, accuracy ", Plain(Number(json, "accuracy")), "</h3>\n",
                          TableHtml({"class", "records", "recall", "precision"}, rows));
  if (mistakes.empty()) return html;
  return html + "<h3>Most frequent mistakes</h3>\n" +
         TableHtml({"times", "class", "taken for"}, mistakes);
}

std::string EnvironmentTable(const RunHistory& run) {
  const std::optional<Struct> json = JsonOfRun(run, "environment.json");
  if (!json) return "";
  std::vector<std::vector<std::string>> rows;
  for (const char* name : {"program", "build", "command", "folder", "host", "ranks", "device",
                           "processor", "threads", "onednn", "batch_job"}) {
    const Value* const value = Field(*json, name);
    if (value == nullptr) continue;
    std::string text =
        value->has_number_value() ? Plain(value->number_value()) : value->string_value();
    for (const Value& word : value->list_value().values()) {
      text += (text.empty() ? "" : " ") + word.string_value();
    }
    rows.push_back({name, text});
  }
  return "<details><summary>Environment</summary>\n" + TableHtml({"", ""}, rows) + "</details>\n";
}

std::string Details(const RunHistory& run) {
  const std::string pictures = Picture(run, kFiltersName, "filters of the first convolution") +
                               Picture(run, kImagesName, "images of the first batch");
  const std::string html =
      (pictures.empty() ? "" : "<div class=\"pictures\">" + pictures + "</div>") + LayerTimes(run) +
      Confusion(run) + EnvironmentTable(run);
  return html.empty() ? "" : "<h2>" + EscapeHtml(NameOf(run)) + "</h2>\n" + html;
}

constexpr char kPageStyle[] =
    "body{margin:0 auto;max-width:1360px;padding:1rem;font:15px/1.45 system-ui,sans-serif;"
    "color:var(--ink);background:#fff}"
    "@media(prefers-color-scheme:dark){body{background:#181a1b}}"
    "h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}h3{font-size:1rem}"
    ".wide{overflow-x:auto}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:.25rem .7rem;border-bottom:1px solid var(--faint);"
    "vertical-align:top;white-space:nowrap}details td{white-space:normal}"
    ".charts{margin-top:1.5rem;display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax("
    "min(100%,30rem),"
    "1fr))}"
    ".charts svg{width:100%;height:auto}"
    ".pictures{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0}"
    "img{max-width:100%;min-width:min(14rem,100%);image-rendering:pixelated}figcaption{font-size:."
    "85rem}"
    ".bars{min-width:10rem}.bar{height:.8rem;margin-top:.3rem;background:var(--c0)}\n";

}  // namespace

std::string ReportPage(const std::vector<RunHistory>& runs) {
  std::string title = runs.size() == 1 ? NameOf(runs[0]) : Join(runs.size(), " runs");
  std::string html = Join(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      EscapeHtml(title), "</title>\n<style>\n", ChartStyle(), kPageStyle,
      "</style>\n</head>\n<body>\n<h1>", EscapeHtml(title), "</h1>\n", RunsTable(runs));
  if (runs.size() > 1) html += DifferencesTable(runs);
  html += "<div class=\"charts\">\n";
  for (const Chart& chart : ChartsOf(runs)) html += ChartSvg(chart);
  html += "</div>\n";
  for (const RunHistory& run : runs) html += Details(run);
  return html + "</body>\n</html>\n";
}

}  // namespace trainer
