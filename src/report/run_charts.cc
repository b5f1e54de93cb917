// Which curves of runs there are.

#include <algorithm>
#include <limits>
#include <set>

#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/observe/run_folder.h"
#include "trainer/report/chart.h"

namespace trainer {
namespace {

using Points = std::vector<HistoryPoint>;

std::vector<std::string> OutputNames(const std::vector<HistoryRow>& rows) {
  std::vector<std::string> names;
  if (rows.empty()) return names;
  for (const auto& [name, value] : rows[0].outputs) names.push_back(name);
  return names;
}

Points PointsOf(const std::vector<HistoryRow>& rows, const std::string& name) {
  Points points;
  for (const HistoryRow& row : rows) {
    for (const auto& [output, value] : row.outputs) {
      if (output == name) points.push_back({row.iter, value});
    }
  }
  return points;
}

const std::vector<HistoryRow>& RowsOfTest(const RunHistory& run, size_t net) {
  static const std::vector<HistoryRow> none;
  return net < run.tests.size() ? run.tests[net] : none;
}

// Builds a chart of several runs: a colour for each run, or for each curve of a single one.
class Builder {
 public:
  explicit Builder(const std::vector<RunHistory>& runs) : runs_(runs) {}

  // `of` gives the points of a run; `name` is the curve's where there is one run.
  template <class F>
  void Add(Chart* chart, const std::string& name, F&& of) const {
    for (size_t i = 0; i < runs_.size(); ++i) {
      const bool single = runs_.size() == 1;
      const std::string run = NameOf(runs_[i]);
      ChartSeries series;
      series.name = single ? name : name.empty() ? run : run + " " + name;
      series.points = of(runs_[i]);
      series.color = static_cast<int>(single ? chart->series.size() : i);
      if (!series.points.empty()) chart->series.push_back(std::move(series));
    }
  }

 private:
  const std::vector<RunHistory>& runs_;
};

Chart Named(const std::string& title) {
  Chart chart;
  chart.title = title;
  return chart;
}

// Whether the curves fall by so much that a logarithmic axis shows more.
bool FallsFar(const Chart& chart) {
  constexpr double kFar = 20;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const ChartSeries& series : chart.series) {
    for (const HistoryPoint& point : series.points) {
      low = std::min(low, point.value);
      high = std::max(high, point.value);
    }
  }
  return low > 0 && high > kFar * low;
}

}  // namespace

std::string NameOf(const RunHistory& run) {
  std::string path = run.path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (FileNameOf(path) == kMetricsName) path = FolderOf(path);
  return FileNameOf(path) == "." ? FileNameOf(AbsolutePath(path)) : FileNameOf(path);
}

std::vector<Chart> ChartsOf(const std::vector<RunHistory>& runs) {
  const Builder builder(runs);
  std::vector<Chart> charts;
  const auto single = [&](const std::string& title, Points RunHistory::*points, bool from_zero) {
    Chart chart = Named(title);
    chart.from_zero = from_zero;
    builder.Add(&chart, "", [&](const RunHistory& run) { return run.*points; });
    charts.push_back(chart);
  };
  single("training loss", &RunHistory::loss, false);
  charts.back().logarithmic = FallsFar(charts.back());
  size_t nets = 0;
  for (const RunHistory& run : runs) nets = std::max(nets, run.tests.size());
  for (size_t net = 0; net < nets; ++net) {
    std::set<std::string> names;
    for (const RunHistory& run : runs) {
      for (const std::string& name : OutputNames(RowsOfTest(run, net))) names.insert(name);
    }
    constexpr size_t kMostOutputs = 12;
    size_t count = 0;
    for (const std::string& name : names) {
      if (count++ == kMostOutputs) break;
      Chart chart = Named(Join("test", nets > 1 ? Join(" net ", net) : "", ": ", name));
      builder.Add(&chart, "",
                  [&](const RunHistory& run) { return PointsOf(RowsOfTest(run, net), name); });
      chart.logarithmic = FallsFar(chart);
      charts.push_back(chart);
    }
  }
  single("learning rate", &RunHistory::rate, false);
  charts.back().logarithmic = FallsFar(charts.back());
  single("images per second", &RunHistory::images_per_second, true);
  single("share of the time waiting for data", &RunHistory::data_wait, true);
  Chart ranks = Named("where the time of the ranks goes");
  ranks.from_zero = true;
  builder.Add(&ranks, "computing", [](const RunHistory& run) { return run.ranks_computing; });
  builder.Add(&ranks, "sums", [](const RunHistory& run) { return run.ranks_exchange; });
  builder.Add(&ranks, "data", [](const RunHistory& run) { return run.ranks_data; });
  charts.push_back(ranks);
  std::erase_if(charts, [](const Chart& chart) { return chart.series.empty(); });
  return charts;
}

}  // namespace trainer
