#include "trainer/monitor/page.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "answers.h"
#include "card_table.h"
#include "history/run_files.h"
#include "html.h"
#include "metric_charts.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/best_test.h"
#include "trainer/monitor/chart.h"
#include "trainer/monitor/live_view.h"
#include "trainer/monitor/run_charts.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

// Returns "finished", "stopped" or, without a line about the end, "not finished".
std::string StateOf(const RunMetrics& run) {
  if (run.ended && !run.stopped_early) return "finished";
  return run.stopped_early ? "stopped" : "not finished";
}

std::string LastOf(const std::vector<MetricPoint>& points) {
  return points.empty() ? "" : Plain(points.back().value);
}

double MeanOf(const std::vector<MetricPoint>& points) {
  double sum = 0;
  for (const MetricPoint& point : points) sum += point.value;
  return points.empty() ? 0 : sum / static_cast<double>(points.size());
}

// Returns up to four outputs of the last test of the first test net: "accuracy 0.9912, loss 0.03".
std::string LastTest(const RunMetrics& run) {
  if (run.tests.empty() || run.tests[0].empty()) return "";
  std::string text;
  constexpr size_t kMost = 4;
  const auto& outputs = run.tests[0].back().outputs;
  for (size_t i = 0; i < std::min(outputs.size(), kMost); ++i) {
    text += Join(i == 0 ? "" : ", ", outputs[i].first, " ", Plain(outputs[i].second));
  }
  return text;
}

// Returns the local time of `time`, seconds since 1970; "" if it is 0.
std::string DateOf(double time) {
  if (time <= 0) return "";
  const auto seconds = static_cast<std::time_t>(time);
  std::tm local{};
  char text[32];
  localtime_r(&seconds, &local);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local));
}

// Returns "accuracy 0.9912 at 1500", or "" if no test counts.
std::string BestTestText(const RunMetrics& run) {
  const std::optional<BestTest> best = BestTestOf(run, BestOutputOf(run.path));
  return best ? Join(best->output, " ", Plain(best->value), " at ", best->iter) : "";
}

// Returns "500 of 1000", or only the iteration if their number is unknown.
std::string IterationsOf(const RunMetrics& run) {
  return run.max_iter > 0 ? Join(run.last_iter, " of ", run.max_iter) : Join(run.last_iter);
}

// Returns the mean of the images per second; "" if they are unknown.
std::string SpeedOf(const RunMetrics& run) {
  return run.images_per_second.empty() ? "" : Join(std::lround(MeanOf(run.images_per_second)));
}

// Returns the mean share of the time that the run waited for data; "" if it is unknown.
std::string WaitingOf(const RunMetrics& run) {
  return run.data_wait.empty() ? "" : Join(std::lround(100 * MeanOf(run.data_wait)), " %");
}

std::string DeviceOf(const RunMetrics& run) {
  const std::optional<JsonObject> json = JsonOfRun(run, kEnvironmentName);
  return json ? JsonText(*json, "device") : "";
}

// Returns the table that compares several runs, with a row for each.
std::string RunsTable(const std::vector<RunMetrics>& runs, const std::vector<ReportedNet>& nets) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunMetrics& run = runs[i];
    rows.push_back({NameOf(run), run.net, DateOf(run.first_time), StateOf(run), IterationsOf(run),
                    ClockText(run.seconds), BestTestText(run), LastTest(run), LastOf(run.loss),
                    SpeedOf(run), WaitingOf(run), nets[i].parameters, DeviceOf(run)});
  }
  return TableHtml({"run", "net", "started", "state", "iteration", "time", "best test", "last test",
                    "last loss", "images/s", "waiting for data", "parameters", "device"},
                   rows, true);
}

// Returns the main figures of one run, each with its name below. Figures that are unknown are left
// out.
std::string Cards(const RunMetrics& run, const ReportedNet& net) {
  const std::string started = DateOf(run.first_time), last = DateOf(run.last_time);
  const std::pair<const char*, std::string> cards[] = {
      {"best test", BestTestText(run)},
      {"last test", LastTest(run)},
      {"last loss", LastOf(run.loss)},
      {"iterations", Join(IterationsOf(run), ", ", StateOf(run))},
      {"time", ClockText(run.seconds)},
      {"images/s", SpeedOf(run)},
      {"waiting for data", WaitingOf(run)},
      {"parameters", net.parameters},
      {"device", DeviceOf(run)},
      {"started", started},
      {"last line", last == started ? "" : last}};
  std::string html = "<div class=\"cards\">\n";
  for (const auto& [name, text] : cards) {
    if (text.empty()) continue;
    html += Join("<div class=\"card\"><b>", EscapeHtml(text), "</b>", name, "</div>\n");
  }
  return html + "</div>\n";
}

// Returns the fields of the solver in a folded table; "" if the run has no folder.
std::string SettingsTable(const RunMetrics& run) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : SettingsOfRun(run)) rows.push_back({name, value});
  if (rows.empty()) return "";
  return "<details><summary>Settings</summary>\n" + TableHtml({"solver", ""}, rows) +
         "</details>\n";
}

// Returns a table of the fields of the solvers that are not the same in all runs; "" without any.
std::string DifferencesTable(const std::vector<RunMetrics>& runs) {
  std::vector<std::map<std::string, std::string>> settings;
  std::set<std::string> names;
  for (const RunMetrics& run : runs) {
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
  for (const RunMetrics& run : runs) head.push_back(NameOf(run));
  return "<h2>Settings that differ</h2>\n" + TableHtml(head, rows);
}

// Returns each layer's milliseconds as bars, as `trainer time --json` measured them; "" if the
// folder has no such file.
std::string LayerTimes(const RunMetrics& run) {
  const std::optional<JsonObject> json = JsonOfRun(run, kTimesName);
  const JsonElement* const layers = json ? JsonField(*json, "layers") : nullptr;
  if (layers == nullptr) return "";
  struct Bar {
    std::string name;
    double ms = 0;
  };
  std::vector<Bar> bars;
  double most = 0;
  for (const JsonElement& value : layers->list_value().values()) {
    const JsonObject& layer = value.struct_value();
    Bar bar;
    const JsonElement* const name = JsonField(layer, "name");
    bar.name = name == nullptr ? "" : name->string_value();
    for (const char* pass : {"forward", "backward"}) {
      const JsonElement* const times = JsonField(layer, pass);
      if (times != nullptr) bar.ms += JsonNumber(times->struct_value(), "median_ms");
    }
    most = std::max(most, bar.ms);
    bars.push_back(bar);
  }
  std::string html = "<h3>Time per layer, forward and backward</h3>\n<div class=\"wide\"><table>\n";
  for (const Bar& bar : bars) {
    const int percent = most > 0 ? static_cast<int>(std::lround(100 * bar.ms / most)) : 0;
    html +=
        Join("<tr><td>", EscapeHtml(bar.name), "</td><td>", Plain(std::round(1000 * bar.ms) / 1000),
             " ms</td><td class=\"bars\"><div class=\"bar\" style=\"width:", percent,
             "%\"></div></td></tr>\n");
  }
  return html + "</table></div>\n";
}

// Returns the fields of environment.json in a folded table; "" if the run has no folder.
std::string EnvironmentTable(const RunMetrics& run) {
  const std::optional<JsonObject> json = JsonOfRun(run, kEnvironmentName);
  if (!json) return "";
  std::vector<std::vector<std::string>> rows;
  for (const char* name : {"program", "commit", "build", "command", "folder", "host", "ranks",
                           "device", "processor", "threads", "onednn", "batch_job"}) {
    const JsonElement* const value = JsonField(*json, name);
    if (value == nullptr) continue;
    std::string text =
        value->has_number_value() ? Plain(value->number_value()) : value->string_value();
    for (const JsonElement& word : value->list_value().values()) {
      text += (text.empty() ? "" : " ") + word.string_value();
    }
    rows.push_back({name, text});
  }
  return "<details><summary>Environment</summary>\n" + TableHtml({"", ""}, rows) + "</details>\n";
}

// Returns the drawing of a net. If the net has many layers, it is folded, because it is long.
std::string NetDrawing(const ReportedNet& net) {
  constexpr size_t kMostOpen = 30;
  if (net.svg.empty()) return "";
  return Join("<details", net.boxes <= kMostOpen ? " open" : "",
              "><summary>Net</summary>\n<div class=\"wide\">", net.svg, "</div></details>\n");
}

// Returns the section of one run with all that its folder has; "" if that is nothing.
std::string Details(const RunMetrics& run, const ReportedNet& net, std::optional<double> carbon) {
  const std::string pictures = PictureOfRun(run, kFiltersName, "filters of the first convolution") +
                               PictureOfRun(run, kImagesName, "images of the first batch");
  const std::string html =
      (pictures.empty() ? "" : "<div class=\"pictures\">" + pictures + "</div>") + LayerTimes(run) +
      MetricsHtml(run) + ConfusionHtml(run) + WorstHtml(run) + CardHtml(run, carbon) +
      NetDrawing(net) + SettingsTable(run) + EnvironmentTable(run);
  return html.empty() ? "" : "<h2>" + EscapeHtml(NameOf(run)) + "</h2>\n" + html;
}

// Returns "LeNet: first", or "LeNet: 2 runs" if all have the same net.
std::string TitleOf(const std::vector<RunMetrics>& runs) {
  const std::string name = runs.size() == 1 ? NameOf(runs[0]) : Join(runs.size(), " runs");
  const bool same = std::ranges::all_of(runs, [&](const auto& r) { return r.net == runs[0].net; });
  return same && !runs[0].net.empty() ? runs[0].net + ": " + name : name;
}

}  // namespace

std::string ReportPage(const std::vector<RunMetrics>& runs,
                       const std::vector<ReportedNet>& given_nets,
                       const std::vector<ReportedTable>& tables, std::optional<double> carbon) {
  std::vector<ReportedNet> nets = given_nets;
  nets.resize(runs.size());
  std::string html;
  for (const ReportedTable& table : tables) {
    html += "<h2>" + EscapeHtml(table.title) + "</h2>\n" + TableHtml(table.head, table.rows, true);
  }
  html += runs.size() == 1 ? Cards(runs[0], nets[0]) : RunsTable(runs, nets);
  if (runs.size() > 1) html += DifferencesTable(runs);
  html += "<div class=\"charts\">\n";
  for (const Chart& chart : RunCharts(runs)) html += ChartSvg(chart);
  html += "</div>\n";
  for (size_t i = 0; i < runs.size(); ++i) html += Details(runs[i], nets[i], carbon);
  return PageHtml(TitleOf(runs), html);
}

}  // namespace trainer
