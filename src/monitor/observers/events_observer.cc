#include "trainer/monitor/events_observer.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "append_file.h"
#include "event_records.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/text/text.h"
#include "trainer/image/image_grid.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

constexpr int kMostImages = 8;

// Returns seconds since 1970.
double Now() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return now.count();
}

constexpr char kHead[] = "events.out.tfevents.";

// Returns the name of a new event file. Readers look for "tfevents" and take the files in the order
// of their names, which begin with the second of their start. If the folder already has a file of
// this second, the new name has the next one.
std::string FileName(const std::string& folder) {
  auto second = static_cast<int64_t>(Now());
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kHead)) {
      second = std::max<int64_t>(second,
                                 1 + std::strtoll(name.c_str() + std::strlen(kHead), nullptr, 10));
    }
  }
  const std::string host = HostName();
  return Join(kHead, second, ".", host.empty() ? "host" : host, ".", getpid(), ".0");
}

// Returns a tag for each output. Elements of one output get different tags, "prob[3]", because
// TensorBoard draws one graph for each tag.
std::vector<std::string> Tags(std::span<const ReportedValue> outputs) {
  std::map<std::string, int> counts, seen;
  for (const ReportedValue& output : outputs) ++counts[output.name];
  std::vector<std::string> tags;
  for (const ReportedValue& output : outputs) {
    const int i = seen[output.name]++;
    tags.push_back(counts[output.name] == 1 ? output.name : Join(output.name, "[", i, "]"));
  }
  return tags;
}

// Writes the events of one start to a new event file. Without OnEnd, the destructor marks the run
// as failed.
class EventsObserver final : public TrainingObserver {
 public:
  EventsObserver(const std::string& folder, const RunFacts& facts)
      : folder_(folder), file_(JoinPath(folder, FileName(folder))), facts_(facts) {}

  ~EventsObserver() override {
    if (!ended_) AddSessionEnd(false);
  }

  // Writes everything that does not change during the run: graph, settings, texts.
  void OnStart(const RunStart& start) override {
    started_ = true;
    records_ = start.records;
    iter_ = start.first_iter;
    const EventTime now = {Now(), start.first_iter};
    file_.Add(VersionEvent({now.seconds, 0}));
    file_.Add(StartEvent(now));
    file_.Add(GraphEvent(now, facts_.layers));
    SummaryEvent settings;
    settings.Text("solver", "```\n" + facts_.solver + "```");
    settings.Text("net", "```\n" + facts_.net + "```");
    std::vector<std::string> metrics = facts_.metrics;
    metrics.insert(metrics.begin(), "train/loss");
    settings.Experiment(facts_.settings, metrics);
    settings.SessionStart(facts_.settings, now.seconds);
    Add(settings, start.first_iter);
    file_.Flush();
  }

  // Writes the loss, the outputs and the speed. The pass after the last update has no speed and no
  // learning rate.
  void OnIteration(const IterationReport& report) override {
    iter_ = report.iter;
    SummaryEvent summary;
    summary.Scalar("train/loss", report.loss);
    const std::vector<std::string> tags = Tags(report.outputs);
    for (size_t i = 0; i < tags.size(); ++i) {
      summary.Scalar("train/output/" + tags[i], report.outputs[i].value);
    }
    if (!report.after_last) summary.Scalar("train/rate", report.rate);
    if (report.loss_scale > 0) {
      summary.Scalar("train/loss_scale", report.loss_scale);
      summary.Scalar("train/skipped_steps", static_cast<float>(report.skipped_steps));
    }
    if (!report.after_last && report.iterations > 0 && report.seconds > 0) {
      const double speed = report.iterations / report.seconds;
      summary.Scalar("speed/iterations_per_second", static_cast<float>(speed));
      if (records_ > 0) {
        summary.Scalar("speed/images_per_second",
                       static_cast<float>(speed * static_cast<double>(records_)));
      }
      summary.Scalar("speed/data_wait", static_cast<float>(std::clamp(
                                            report.data_seconds / report.seconds, 0.0, 1.0)));
    }
    Add(summary, report.iter);
  }

  void OnRanks(const RanksReport& report) override {
    SummaryEvent summary;
    summary.Scalar("ranks/computing", static_cast<float>(report.computing));
    summary.Scalar("ranks/exchange", static_cast<float>(report.exchange));
    summary.Scalar("ranks/data", static_cast<float>(report.data));
    Add(summary, iter_);
  }

  void OnGpu(const GpuReport& report) override {
    SummaryEvent summary;
    for (const ReportedValue& number : report.numbers) {
      summary.Scalar("gpu/" + number.name, number.value);
    }
    Add(summary, report.iter);
  }

  // Writes the means of a complete test. The file is flushed, so that TensorBoard shows it at once.
  void OnTest(const TestReport& report) override {
    if (report.interrupted) return;
    iter_ = report.iter;
    SummaryEvent summary;
    const std::string head = Join("test", report.net, "/");
    if (report.has_loss) summary.Scalar(head + "total_loss", report.loss);
    const std::vector<std::string> tags = Tags(report.outputs);
    for (size_t i = 0; i < tags.size(); ++i)
      summary.Scalar(head + tags[i], report.outputs[i].value);
    Add(summary, report.iter);
    file_.Flush();
  }

  // Writes histograms. The first parameter with four axes and a kernel larger than 1x1 is also
  // shown as a picture of its filters.
  void OnParam(const ParamReport& report) override {
    if (report.weights.empty()) return;
    SummaryEvent summary;
    Histogram weights;
    weights.Add(report.weights);
    summary.Histogram("weights/" + report.name, weights);
    if (!report.gradients.empty()) {
      Histogram gradients;
      gradients.Add(report.gradients, report.gradient_scale);
      summary.Histogram("gradients/" + report.name, gradients);
    }
    if (filters_.empty() && report.shape.size() == 4 && report.shape[2] > 1 &&
        report.shape[3] > 1) {
      filters_ = report.name;
    }
    if (report.name == filters_) {
      AddPicture("filters/" + report.name, MakeImageGrid(report.weights, report.shape),
                 kFiltersName, &summary);
    }
    Add(summary, report.iter);
  }

  // Writes the first images of the batch each as its own picture, and all of them to images.png.
  void OnBatch(const BatchReport& report) override {
    const int64_t count = std::min<int64_t>(report.shape[0], kMostImages);
    const auto each = static_cast<size_t>(report.shape[1] * report.shape[2] * report.shape[3]);
    SummaryEvent summary;
    const std::array<int64_t, 4> one = {1, report.shape[1], report.shape[2], report.shape[3]};
    for (int64_t i = 0; i < count; ++i) {
      AddPicture(Join("images/", report.blob, "/", i),
                 MakeImageGrid(report.numbers.subspan(static_cast<size_t>(i) * each, each), one),
                 "", &summary);
    }
    SummaryEvent ignored;  // all of them, for the folder alone
    AddPicture("", MakeImageGrid(report.numbers, report.shape), kImagesName, &ignored);
    Add(summary, report.iter);
  }

  void OnStep(int iter) override { iter_ = iter; }

  // Leaves the session open if the run was stopped, because it will be resumed.
  void OnEnd(const RunEnd& end) override {
    if (end.stopped_early) ended_ = true;
    if (!end.stopped_early) AddSessionEnd(true);
    file_.Flush();
  }

 private:
  // Adds the event that marks the session as succeeded or failed, if it was started. The caller
  // flushes; a run that was stopped early has no such event.
  void AddSessionEnd(bool success) {
    ended_ = true;
    if (!started_) return;
    SummaryEvent summary;
    summary.SessionEnd(success, Now());
    Add(summary, iter_);
  }

  // Appends the values as one record of the file.
  void Add(const SummaryEvent& summary, int iter) { file_.Add(summary.Event({Now(), iter})); }

  // Adds a picture to the summary and, if `name` is not "", also writes it as a file of the folder,
  // which readers never see incomplete. A failure is a warning.
  void AddPicture(const std::string& tag, const Image& image, const std::string& name,
                  SummaryEvent* summary) {
    try {
      const std::string png = EncodeImage(image, "png");
      summary->Image(tag, image.height, image.width, image.channels, png);
      if (!name.empty()) WriteWhole(JoinPath(folder_, name), png);
    } catch (const Error& e) {
      WarnOfRunFolder(e.what());
    }
  }

  std::string folder_;
  AppendFile file_;
  RunFacts facts_;
  std::string filters_;  // the first parameter that looks like filters
  int64_t records_ = 0;
  int iter_ = 0;
  bool started_ = false, ended_ = false;
};

}  // namespace

std::unique_ptr<TrainingObserver> MakeEventsObserver(const std::string& folder,
                                                     const RunFacts& facts) {
  return std::make_unique<EventsObserver>(folder, facts);
}

}  // namespace trainer
