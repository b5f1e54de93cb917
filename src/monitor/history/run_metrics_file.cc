// metrics.jsonl, read again.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "trainer/base/file/file.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_metrics.h"

namespace trainer {
namespace {

constexpr uint64_t kMetricsMostBytes = uint64_t{1} << 30;

using Line = JsonObject;

bool Has(const Line& line, const char* name) { return line.fields().count(name) > 0; }

// Adds the lines of metrics.jsonl, in the order of the file, to the metrics of a run.
class MetricsReader {
 public:
  explicit MetricsReader(RunMetrics* history) : history_(*history) {}

  // Adds one line, which must have an event. Unknown events only change the time and the iteration.
  void Read(const Line& line) {
    const std::string event = JsonText(line, "event");
    iter_ = JsonNumber(line, "iter");
    if (event == "start") Start(line);
    seconds_ = offset_ + JsonNumber(line, "seconds");
    history_.seconds = seconds_;
    history_.last_time = std::max(history_.last_time, JsonNumber(line, "time"));
    history_.last_iter = static_cast<int64_t>(iter_);
    if (event == "train") Train(line);
    if (event == "test") Test(line);
    if (event == "ranks") Ranks(line);
    if (event == "snapshot") Snapshot(line);
    if (event != "end") return;
    history_.ended = true;
    history_.stopped_early = JsonFlag(line, "stopped_early");
    if (Has(line, "loss")) history_.end_loss = JsonNumber(line, "loss");
  }

 private:
  // Removes what this start repeats. Its seconds count on from the last loss that remains, so that
  // pauses between starts do not count.
  void Start(const Line& line) {
    DropFrom(iter_, &history_);
    if (history_.starts++ == 0) history_.first_time = JsonNumber(line, "time");
    history_.ended = history_.stopped_early = false;
    history_.end_loss.reset();
    history_.first_iter = static_cast<int64_t>(iter_);
    history_.max_iter = static_cast<int64_t>(JsonNumber(line, "max_iter"));
    history_.net = JsonText(line, "net");
    offset_ = history_.loss.empty() ? 0 : loss_seconds_[history_.loss.back().iter];
    history_.start_seconds = offset_;
  }

  // Adds the loss, the rates and the outputs of a displayed iteration.
  void Train(const Line& line) {
    if (Has(line, "loss")) {
      Add(line, "loss", &history_.loss);
      loss_seconds_[iter_] = seconds_;
    }
    Add(line, "rate", &history_.rate);
    Add(line, "images_per_second", &history_.images_per_second);
    Add(line, "iterations_per_second", &history_.iterations_per_second);
    Add(line, "data_wait", &history_.data_wait);
    rate_ = JsonNumber(line, "rate", rate_);
    AddRow(line, &history_.train);
  }

  // Adds the outputs of a test to its net. Ignores a net above number 1,000, because the list would
  // grow to that number.
  void Test(const Line& line) {
    constexpr double kMost = 1000;
    const double net = JsonNumber(line, "net");
    if (!(net >= 0 && net < kMost)) return;
    const auto index = static_cast<size_t>(net);
    if (history_.tests.size() <= index) history_.tests.resize(index + 1);
    AddRow(line, &history_.tests[index]);
  }

  // Notes the weights that tests at this iteration computed with.
  void Snapshot(const Line& line) {
    history_.model = JsonText(line, "model");
    const std::string averaged = JsonText(line, "averaged");
    history_.weights.emplace_back(static_cast<int64_t>(iter_),
                                  averaged.empty() ? history_.model : averaged);
  }

  // Adds how the ranks spent their time.
  void Ranks(const Line& line) {
    Add(line, "computing", &history_.ranks_computing);
    Add(line, "exchange", &history_.ranks_exchange);
    Add(line, "data", &history_.ranks_data);
  }

  // Adds a point if the line has the field and its value is finite.
  void Add(const Line& line, const char* name, std::vector<MetricPoint>* to) const {
    const double value = JsonNumber(line, name, std::numeric_limits<double>::quiet_NaN());
    if (std::isfinite(value)) to->push_back({iter_, value});
  }

  // Adds a row with the outputs by name. The elements of an output with several are "prob[2]".
  void AddRow(const Line& line, std::vector<MetricRow>* rows) const {
    const auto found = line.fields().find("outputs");
    if (found == line.fields().end()) return;
    std::map<std::string, double> outputs;
    for (const auto& [name, value] : found->second.struct_value().fields()) {
      if (value.has_number_value()) outputs[name] = value.number_value();
      for (int i = 0; i < value.list_value().values_size(); ++i) {
        outputs[Join(name, "[", i, "]")] = value.list_value().values(i).number_value();
      }
    }
    rows->push_back({iter_, seconds_, rate_, {outputs.begin(), outputs.end()}});
  }

  RunMetrics& history_;
  double iter_ = 0, seconds_ = 0, offset_ = 0;
  double rate_ = std::numeric_limits<double>::quiet_NaN();
  std::map<double, double> loss_seconds_;  // by iteration
};

}  // namespace

RunMetrics ReadMetrics(const std::string& path) {
  const std::string text = ReadFile(path, kMetricsMostBytes);
  RunMetrics history;
  history.path = path;
  MetricsReader reader(&history);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::optional<Line> line = ParseJsonObject(text.substr(at, end - at));
    if (line && Has(*line, "event")) reader.Read(*line);
    at = end + 1;
  }
  if (history.starts == 0) {
    throw Error(ErrorCode::kData, {AbsolutePath(path)},
                "this is not the metrics file of a run: it has no \"start\" line; 'trainer train "
                "--run=DIR' writes such a file");
  }
  return history;
}

}  // namespace trainer
