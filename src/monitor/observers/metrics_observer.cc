#include "trainer/monitor/metrics_observer.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "append_file.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

constexpr char kTableHead[] = "iter,time,name,value\n";
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// Returns the iteration of a line of metrics.jsonl, {"event": "train", "iter": 100, ...}, or of
// metrics.csv, "100,..."; no value if it has none.
std::optional<int64_t> IterOf(std::string_view line) {
  constexpr std::string_view kKey = "\"iter\": ";
  const size_t key = line.starts_with('{') ? line.find(kKey) : 0;
  if (key == std::string_view::npos) return std::nullopt;
  const char* const begin = line.data() + key + (line.starts_with('{') ? kKey.size() : 0);
  int64_t iter = 0;
  if (std::from_chars(begin, line.data() + line.size(), iter).ec != std::errc()) {
    return std::nullopt;
  }
  return iter;
}

// Returns whether the line remains if the run starts at iteration `first`: all lines before it, and
// the snapshot of that iteration, because the run resumes from it.
bool Keeps(std::string_view line, int64_t first) {
  const std::optional<int64_t> iter = IterOf(line);
  if (!iter) return false;
  return *iter < first || (*iter == first && line.find("\"snapshot\"") != std::string_view::npos);
}

// Removes the lines from iteration `first` on and an incomplete last line; `head` becomes the first
// line again. If the file cannot be written, it stays as it is; the "start" line that follows tells
// readers which lines to skip.
void DropFrom(const std::string& path, int64_t first, const std::string& head) {
  if (!Exists(path)) return;
  try {
    const std::string text = ReadFile(path, kMostBytes);
    std::string kept;
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string_view line(text.data() + at, end - at);
      if (Keeps(line, first)) kept.append(line) += '\n';
    }
    if (first == 0 && !text.empty()) {
      LOG(WARNING) << EscapeControl(Join(path,
                                         " is from an earlier run that this run repeats from the "
                                         "beginning: the file is replaced"));
    }
    if (kept.size() + head.size() < text.size()) WriteWhole(path, head + kept);
  } catch (const Error& e) {
    WarnOfRunFolder(e.what());
  }
}

// Returns seconds since 1970 in whole milliseconds.
double SecondsNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) /
         1e3;
}

// Returns {"accuracy": 0.98, "loss": 0.1}; an output of several elements has a list.
Json Outputs(std::span<const ReportedValue> outputs) {
  Json json = Json::Object();
  for (size_t i = 0; i < outputs.size();) {
    size_t end = i + 1;
    while (end < outputs.size() && outputs[end].name == outputs[i].name) ++end;
    Json list = Json::Array();
    for (size_t j = i; j < end; ++j) list.Push(outputs[j].value);
    json.Set(outputs[i].name, end == i + 1 ? Json(outputs[i].value) : std::move(list));
    i = end;
  }
  return json;
}

// See MakeMetricsObserver. iter_ is the iteration of notes, ends and table lines.
class MetricsObserver final : public TrainingObserver {
 public:
  explicit MetricsObserver(const std::string& folder)
      : lines_(JoinPath(folder, kMetricsName)), table_(JoinPath(folder, kMetricsTableName)) {}

  // Removes what this start will repeat from both files, and adds a line "start".
  void OnStart(const RunStart& start) override {
    records_ = start.records;
    iter_ = start.first_iter;
    begin_ = std::chrono::steady_clock::now();
    DropFrom(lines_.path(), start.first_iter, "");
    DropFrom(table_.path(), start.first_iter, kTableHead);
    if (!Exists(table_.path())) table_.Add(kTableHead);
    Write(Line("start", start.first_iter)
              .Set("max_iter", start.max_iter)
              .Set("net", start.net)
              .Set("records", start.records));
    Flush();
  }

  void OnIteration(const IterationReport& report) override {
    iter_ = report.iter;
    Json line = Line("train", report.iter).Set("loss", report.loss);
    Row("train/loss", report.loss);
    if (!report.after_last) AddSpeed(report, &line);
    for (const ReportedValue& output : report.outputs)
      Row("train/output/" + output.name, output.value);
    if (!report.outputs.empty()) line.Set("outputs", Outputs(report.outputs));
    Write(line);
  }

  void OnRanks(const RanksReport& report) override {
    Json line = Line("ranks", iter_)
                    .Set("computing", static_cast<float>(report.computing))
                    .Set("exchange", static_cast<float>(report.exchange))
                    .Set("data", static_cast<float>(report.data))
                    .Set("hidden", static_cast<float>(report.hidden));
    if (!report.slowest.empty())
      line.Set("slowest", report.slowest).Set("cost", static_cast<float>(report.cost));
    Write(line);
    Row("ranks/computing", static_cast<float>(report.computing));
    Row("ranks/exchange", static_cast<float>(report.exchange));
    Row("ranks/data", static_cast<float>(report.data));
  }

  // Writes the numbers of the GPU at the iteration of the report, which is the previous display.
  void OnGpu(const GpuReport& report) override {
    const int iter = std::exchange(iter_, report.iter);
    Json line = Line("gpu", report.iter);
    for (const ReportedValue& number : report.numbers) {
      line.Set(number.name, number.value);
      Row("gpu/" + number.name, number.value);
    }
    Write(line);
    iter_ = iter;
  }

  // Writes a complete test to both files, and flushes them.
  void OnTest(const TestReport& report) override {
    if (report.interrupted) return;
    iter_ = report.iter;
    Json line = Line("test", report.iter).Set("net", report.net);
    const std::string head = Join("test", report.net, "/");
    if (report.has_loss) {
      line.Set("loss", report.loss);
      Row(head + "total_loss", report.loss);
    }
    for (const ReportedValue& output : report.outputs) Row(head + output.name, output.value);
    Write(line.Set("outputs", Outputs(report.outputs)));
    Flush();
  }

  void OnSnapshot(const SnapshotReport& report) override {
    Json line = Line("snapshot", report.iter).Set("model", report.model).Set("state", report.state);
    if (!report.averaged.empty()) line.Set("averaged", report.averaged);
    Write(std::move(line));
    Flush();
  }

  void OnNote(const std::string& text) override { Write(Line("note", iter_).Set("text", text)); }

  void OnStep(int iter) override { iter_ = iter; }

  void OnEnd(const RunEnd& end) override {
    Json line = Line("end", iter_).Set("stopped_early", end.stopped_early);
    if (end.loss) line.Set("loss", *end.loss);
    Write(line);
    Flush();
  }

 private:
  // Returns a line of metrics.jsonl with the fields that all events have.
  Json Line(const char* event, int iter) const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
    return Json::Object()
        .Set("event", event)
        .Set("iter", iter)
        .Set("time", SecondsNow())
        .Set("seconds", static_cast<float>(passed.count()));
  }

  // Adds the learning rate, the loss scale and the speed to the line and to the table. Without an
  // iteration since the last report the speed is unknown and left out.
  void AddSpeed(const IterationReport& report, Json* line) {
    line->Set("rate", report.rate);
    Row("train/rate", report.rate);
    if (report.loss_scale > 0) {
      line->Set("loss_scale", report.loss_scale).Set("skipped_steps", report.skipped_steps);
      Row("train/loss_scale", report.loss_scale);
      Row("train/skipped_steps", static_cast<float>(report.skipped_steps));
    }
    if (report.epoch >= 0) line->Set("epoch", report.epoch);
    if (report.iterations == 0 || !(report.seconds > 0)) return;
    const double speed = report.iterations / report.seconds;
    const double waited = std::clamp(report.data_seconds / report.seconds, 0.0, 1.0);
    const double images = speed * static_cast<double>(records_);
    line->Set("iterations_per_second", static_cast<float>(speed))
        .Set("images_per_second", static_cast<float>(images))
        .Set("data_wait", static_cast<float>(waited));
    Row("speed/iterations_per_second", static_cast<float>(speed));
    Row("speed/images_per_second", static_cast<float>(images));
    Row("speed/data_wait", static_cast<float>(waited));
  }

  void Write(const Json& line) { lines_.Add(line.ToLine()); }

  // Adds a line of metrics.csv at iteration iter_. Commas, quotes and line breaks in a name, which
  // are rare, become '_'.
  void Row(std::string name, float value) {
    std::ranges::replace_if(
        name, [](char c) { return c == ',' || c == '"' || c == '\n'; }, '_');
    char text[64];
    std::snprintf(text, sizeof text, "%.3f", SecondsNow());
    table_.Add(Join(iter_, ",", text, ",", name, ",", value, "\n"));
  }

  void Flush() {
    lines_.Flush();
    table_.Flush();
  }

  AppendFile lines_, table_;
  int64_t records_ = 0;
  int iter_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

std::unique_ptr<TrainingObserver> MakeMetricsObserver(const std::string& folder) {
  return std::make_unique<MetricsObserver>(folder);
}

}  // namespace trainer
