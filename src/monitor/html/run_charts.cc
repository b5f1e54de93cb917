#include "trainer/monitor/run_charts.h"

#include <algorithm>
#include <set>

#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

using Points = std::vector<MetricPoint>;

// Returns the names of the outputs in the first row.
std::vector<std::string> OutputNames(const std::vector<MetricRow>& rows) {
  std::vector<std::string> names;
  if (rows.empty()) return names;
  for (const auto& [name, value] : rows[0].outputs) names.push_back(name);
  return names;
}

// Returns the values of one output by iteration.
Points PointsOf(const std::vector<MetricRow>& rows, const std::string& name) {
  Points points;
  for (const MetricRow& row : rows) {
    for (const auto& [output, value] : row.outputs) {
      if (output == name) points.push_back({row.iter, value});
    }
  }
  return points;
}

// Returns the tests of a test net; an empty list if the run has no such net.
const std::vector<MetricRow>& RowsOfTest(const RunMetrics& run, size_t net) {
  static const std::vector<MetricRow> none;
  return net < run.tests.size() ? run.tests[net] : none;
}

// Builds a chart of several runs: a colour for each run, or for each curve of a single one.
class Builder {
 public:
  explicit Builder(const std::vector<RunMetrics>& runs) : runs_(runs) {}

  // Adds a curve for each run. `of` returns the points of a run. The curve is called `name` if
  // there is one run, and by the run's name and `name` otherwise.
  template <class F>
  void Add(Chart* chart, const std::string& name, F&& of, ChartSeries style = {}) const {
    for (size_t i = 0; i < runs_.size(); ++i) {
      const bool single = runs_.size() == 1;
      const std::string run = NameOf(runs_[i]);
      ChartSeries series = style;
      series.name = single ? name : name.empty() ? run : run + " " + name;
      series.points = of(runs_[i]);
      series.color = static_cast<int>(single ? chart->series.size() : i);
      if (!series.points.empty()) chart->series.push_back(std::move(series));
    }
  }

 private:
  const std::vector<RunMetrics>& runs_;
};

// Returns a chart without series.
Chart Named(const std::string& title) {
  Chart chart;
  chart.title = title;
  return chart;
}

// Returns whether the curves fall by so much (20 times) that a logarithmic axis shows more. The
// largest values, one in 30, do not decide that. Values of 0 or less forbid it.
bool FallsFar(const Chart& chart) {
  constexpr double kFar = 20;
  constexpr size_t kOneIn = 30;
  std::vector<double> values;
  for (const ChartSeries& series : chart.series) {
    for (const MetricPoint& point : series.points) values.push_back(point.value);
  }
  if (values.size() < 2) return false;
  std::ranges::sort(values);
  const double high =
      values[values.size() - 2 - std::min(values.size() / kOneIn, values.size() - 2)];
  return values[0] > 0 && high > kFar * values[0];
}

// Returns a chart of a test output and, as a second curve, of the training output with the same
// name or, if `with_loss`, of the training's loss. `net` is the number of the test net.
Chart TrainAndTest(const Builder& builder, const std::string& title, const std::string& name,
                   size_t net, bool with_loss) {
  Chart chart = Named(title);
  const auto train = [&](const RunMetrics& run) {
    return with_loss ? run.loss : PointsOf(run.train, name);
  };
  const auto test = [&](const RunMetrics& run) { return PointsOf(RowsOfTest(run, net), name); };
  ChartSeries training, testing;
  training.smoothed = true;
  testing.dashed = true;
  builder.Add(&chart, "training", train, training);
  const bool alone = chart.series.empty();
  builder.Add(&chart, alone ? "" : "test", test, alone ? ChartSeries{} : testing);
  chart.logarithmic = FallsFar(chart);
  return chart;
}

// Returns the name of the output that is the loss, in training and in the first test net of any
// run; "" if there is none.
std::string LossOutput(const std::vector<RunMetrics>& runs) {
  for (const RunMetrics& run : runs) {
    for (const std::string& name : OutputNames(RowsOfTest(run, 0))) {
      const bool trained = std::ranges::count(OutputNames(run.train), name) > 0;
      if (trained && name.find("loss") != std::string::npos) return name;
    }
  }
  return "";
}

}  // namespace

std::string NameOf(const RunMetrics& run) {
  std::string path = run.path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (FileNameOf(path) == kMetricsName) path = FolderOf(path);
  return FileNameOf(path) == "." ? FileNameOf(AbsolutePath(path)) : FileNameOf(path);
}

std::vector<Chart> RunCharts(const std::vector<RunMetrics>& runs) {
  const Builder builder(runs);
  std::vector<Chart> charts;
  const auto single = [&](const std::string& title, Points RunMetrics::*points, bool from_zero) {
    Chart chart = Named(title);
    chart.from_zero = from_zero;
    ChartSeries style;
    style.smoothed = from_zero;  // a rate of learning is exact, a speed is measured
    builder.Add(
        &chart, "", [&](const RunMetrics& run) { return run.*points; }, style);
    charts.push_back(chart);
  };
  size_t nets = 0;
  for (const RunMetrics& run : runs) nets = std::max(nets, run.tests.size());
  // The smoothed loss of training belongs to the test's output of the loss layer.
  const std::string loss = LossOutput(runs);
  charts.push_back(TrainAndTest(builder, "loss", loss, 0, true));
  for (size_t net = 0; net < nets; ++net) {
    std::set<std::string> names;
    for (const RunMetrics& run : runs) {
      for (const std::string& name : OutputNames(RowsOfTest(run, net))) names.insert(name);
    }
    if (net == 0) names.erase(loss);
    constexpr size_t kMostOutputs = 12;
    size_t count = 0;
    for (const std::string& name : names) {
      if (count++ == kMostOutputs) break;
      const std::string title = nets > 1 ? Join(name, " (test net ", net, ")") : name;
      charts.push_back(TrainAndTest(builder, title, name, net, false));
    }
  }
  single("learning rate", &RunMetrics::rate, false);
  charts.back().logarithmic = FallsFar(charts.back());
  single("images per second", &RunMetrics::images_per_second, true);
  single("share of the time waiting for data", &RunMetrics::data_wait, true);
  Chart ranks = Named("how ranks spend their time");
  ranks.from_zero = true;
  builder.Add(&ranks, "computing", [](const RunMetrics& run) { return run.ranks_computing; });
  builder.Add(&ranks, "sums", [](const RunMetrics& run) { return run.ranks_exchange; });
  builder.Add(&ranks, "data", [](const RunMetrics& run) { return run.ranks_data; });
  charts.push_back(ranks);
  std::erase_if(charts, [](const Chart& chart) { return chart.series.empty(); });
  return charts;
}

}  // namespace trainer
