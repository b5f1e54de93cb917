#include "trainer/monitor/run_tables.h"

#include "trainer/base/error/error.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"
#include "trainer/monitor/live_view.h"
#include "trainer/monitor/run_charts.h"

namespace trainer {
namespace {

std::string LogNumber(double value) { return Join(static_cast<float>(value)); }

}  // namespace

std::string RunTables(const RunMetrics& run) {
  std::string text = Join(EscapeControl(run.path), ": iterations ", run.first_iter, " to ",
                          run.last_iter, " in ", ClockText(run.seconds));
  if (!run.loss.empty()) {
    text += Join(", loss ", LogNumber(run.loss.front().value), " to ",
                 LogNumber(run.loss.back().value));
  }
  text += "\n";
  for (size_t net = 0; net < run.tests.size(); ++net) {
    const std::vector<MetricRow>& rows = run.tests[net];
    if (rows.empty()) continue;
    std::vector<std::string> head = {"iteration", "time"};
    for (const auto& [name, value] : rows[0].outputs) head.push_back(EscapeControl(name));
    Table table(head);
    for (const MetricRow& row : rows) {
      std::vector<std::string> cells = {LogNumber(row.iter), ClockText(row.seconds)};
      for (const auto& [name, value] : row.outputs) cells.push_back(LogNumber(value));
      cells.resize(head.size());
      table.Add(cells);
    }
    text += Join("\n", net == 0 ? "" : Join("test net ", net, "\n"), table.ToString());
  }
  return text;
}

std::vector<NamedFile> RunTableFiles(const RunMetrics& run) {
  const std::string name = NameOf(run);
  std::vector<NamedFile> files = {{name + ".train", LogCsv(run.train)}};
  for (size_t net = 0; net < run.tests.size(); ++net) {
    files.push_back({name + ".test" + (net == 0 ? "" : Join(net)), LogCsv(run.tests[net])});
  }
  files.push_back({name + ".svg", ChartsFile(RunCharts({run}))});
  return files;
}

}  // namespace trainer
