#include "trainer/monitor/live_view.h"

#include <utility>

#include "live_view_drawing.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int kLineWidth = 79;  // of a line in a file

}  // namespace

// Writes the events of the run as lines and as numbers of the live line.
class LiveView::ProgressObserver final : public TrainingObserver {
 public:
  explicit ProgressObserver(Drawing& drawing) : drawing_(drawing) {}

  void OnStart(const RunStart& start) override {
    records_ = start.records;
    first_ = iter_ = start.first_iter;
    drawing_.Begin(start.first_iter);
    drawing_.Change([&](LiveState& state) {
      state.first_iter = start.first_iter;
      state.max_iter = start.max_iter;
      state.doing = "";
    });
    Say(start.first_iter == 0 ? Join("training ", start.net, ": ", start.max_iter, " iterations")
                              : Join("training ", start.net, " from iteration ", start.first_iter,
                                     " to ", start.max_iter));
  }

  void OnStep(int iter) override {
    iter_ = iter;
    drawing_.SetIter(iter);
  }

  // Updates the live line. If the terminal cannot redraw a line, prints it as a line of its own.
  void OnIteration(const IterationReport& report) override {
    drawing_.SetIter(report.iter);
    LiveState shown;
    drawing_.Change([&](LiveState& state) {
      state.has_loss = true;
      state.loss = report.loss;
      if (!report.after_last) state.rate = report.rate;
      if (report.epoch >= 0) state.epoch = report.epoch;
      if (report.iterations > 0 && report.seconds > 0) {
        state.iterations_per_second = report.iterations / report.seconds;
        state.images_per_second = state.iterations_per_second * static_cast<double>(records_);
      }
      shown = state;
    });
    if (drawing_.redraws() || report.after_last) return;
    shown.iter = report.iter;
    shown.seconds = drawing_.Seconds();
    Say(LiveLine(shown, kLineWidth));
  }

  void OnGpu(const GpuReport& report) override {
    drawing_.Change([&](LiveState& state) { state.gpu_busy = report.busy; });
  }

  void OnTestStart(int, int) override { SetDoing("testing"); }

  // Prints up to eight outputs of a complete test, the best test in green.
  void OnTest(const TestReport& report) override {
    SetDoing("");
    if (report.interrupted) return;
    std::string text = Join("iteration ", report.iter, ": test");
    if (report.net > 0) text += Join(" net ", report.net);
    const char* separator = " ";
    if (report.has_loss) {
      text += Join(separator, "total loss ", report.loss);
      separator = ", ";
    }
    constexpr size_t kMost = 8;
    for (size_t i = 0; i < report.outputs.size(); ++i) {
      if (i == kMost) {
        text += Join(", and ", report.outputs.size() - kMost, " more");
        break;
      }
      text += Join(separator, report.outputs[i].name, " ", report.outputs[i].value);
      separator = ", ";
    }
    drawing_.Say(text, report.is_best ? Color::kGreen : Color::kPlain);
  }

  void OnSnapshot(const SnapshotReport& report) override {
    Say(Join("iteration ", report.iter, ": saved ", report.state));
  }

  // Leaves out notes about clipping, because there may be one per iteration; the log has them.
  void OnNote(const std::string& text) override {
    if (!text.starts_with("Gradient clipping")) Say(text);
  }

  // Ends the live line and prints how long the run took.
  void OnEnd(const RunEnd& end) override {
    drawing_.Finish();
    const std::string time = ClockText(drawing_.Seconds());
    const std::string loss = end.loss ? Join(", loss ", *end.loss) : "";
    Say(end.stopped_early ? Join("stopped at iteration ", iter_, " after ", time, loss)
                          : Join("done: ", iter_ - first_, " iterations in ", time, loss));
  }

 private:
  void Say(const std::string& text) { drawing_.Say(text); }
  // Shows what the run does in the live line: "testing", or "" while it trains.
  void SetDoing(const std::string& doing) {
    drawing_.Change([&](LiveState& state) { state.doing = doing; });
  }

  Drawing& drawing_;
  int64_t records_ = 0;
  int first_ = 0, iter_ = 0;
};

LiveView::LiveView(const TerminalSettings& settings)
    : drawing_(std::make_unique<Drawing>(settings)) {
  if (!settings.log_path.empty()) Say("log: " + settings.log_path);
}

LiveView::~LiveView() = default;

std::unique_ptr<TrainingObserver> LiveView::MakeObserver() {
  return std::make_unique<ProgressObserver>(*drawing_);
}

void LiveView::Say(const std::string& text, Color color) { drawing_->Say(text, color); }

}  // namespace trainer
