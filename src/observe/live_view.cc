#include "trainer/observe/live_view.h"

#include <glog/logging.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/base/log.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUsualWidth = 80;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int WidthOf(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

// A line above the live one.
struct Line {
  enum class Kind { kPlain, kWarning, kError };
  Kind kind = Kind::kPlain;
  std::string text;
};

}  // namespace

TerminalSettings TerminalOf(int fd) {
  TerminalSettings settings;
  settings.fd = fd;
  const std::string term = Variable("TERM");
  settings.redraws = !term.empty() && term != "dumb";
  settings.escapes = settings.redraws && Variable("NO_COLOR").empty();
  return settings;
}

// What is shown, by whom it is drawn, and the log's warnings.
class LiveView::Drawing final : public google::LogSink {
 public:
  explicit Drawing(const TerminalSettings& settings) : settings_(settings) {
    state_.doing = "preparing";
    HideLog();
    google::AddLogSink(this);
    thread_ = std::thread([this] { Run(); });
  }

  ~Drawing() override {
    google::RemoveLogSink(this);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
    ShowLog();
  }

  void Say(Line line) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      constexpr size_t kMost = 10000;  // of a terminal that takes none
      if (lines_.size() < kMost) lines_.push_back(std::move(line));
    }
    changed_.notify_all();
  }

  // Changes the state that is drawn next.
  template <class F>
  void Change(F&& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change(state_);
  }
  // The same for what every iteration tells, without a lock.
  void SetIter(int iter) { iter_.store(iter, std::memory_order_relaxed); }
  void Begin(int iter) {
    SetIter(iter);
    const std::lock_guard<std::mutex> lock(mutex_);
    begin_ = Clock::now();
    begun_ = true;
  }
  double Seconds() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  // From here on nothing is drawn but lines.
  void Finish() {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
  }
  bool redraws() const { return settings_.redraws; }

  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message, size_t length) override {
    const std::string text(message, length);
    if (severity >= google::ERROR) {
      Say({Line::Kind::kError, "error: " + text});
    } else if (severity == google::WARNING) {
      Say({Line::Kind::kWarning, "warning: " + text});
    } else if (settings_.log_lines) {
      Say({Line::Kind::kPlain, text});
    }
  }

 private:
  void Run() {
    constexpr auto kPause = std::chrono::milliseconds(200);
    std::unique_lock<std::mutex> lock(mutex_);
    for (bool last = false; !last;) {
      changed_.wait_for(lock, kPause, [this] { return ending_ || !lines_.empty(); });
      last = ending_;
      const std::vector<Line> lines = std::exchange(lines_, {});
      LiveState state = state_;
      state.iter = iter_.load(std::memory_order_relaxed);
      if (begun_) state.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
      const bool live = !last && !finished_;
      lock.unlock();
      Draw(lines, state, live);
      lock.lock();
    }
  }

  void Draw(const std::vector<Line>& lines, const LiveState& state, bool live) {
    const int width = settings_.width ? settings_.width() : WidthOf(settings_.fd);
    // A line that fills the last column would wrap.
    const std::string text =
        live && settings_.redraws ? LiveLine(state, std::max(width - 1, 1)) : "";
    if (lines.empty() && text == shown_ && width == shown_width_) return;
    std::string out = Erased(width);
    for (const Line& line : lines) out += Colored(line) + "\n";
    out += text;
    shown_ = text;
    shown_width_ = width;
    Write(out);
  }

  // What takes the live line back. One that was drawn on a wider terminal may fill several rows by
  // now.
  std::string Erased(int width) const {
    if (shown_.empty()) return "";
    if (!settings_.escapes) {
      if (static_cast<int>(shown_.size()) >= width) return "\n";
      return "\r" + std::string(shown_.size(), ' ') + "\r";
    }
    const auto rows = (static_cast<int>(shown_.size()) - 1) / std::max(width, 1);
    return "\r" + (rows > 0 ? Join("\033[", rows, "A") : std::string()) + "\033[J";
  }

  std::string Colored(const Line& line) const {
    // A message may have several lines, each of which may hold anything.
    std::string text;
    for (size_t at = 0; at <= line.text.size();) {
      const size_t end = std::min(line.text.find('\n', at), line.text.size());
      text += (at == 0 ? "" : "\n") + EscapeControl(line.text.substr(at, end - at));
      at = end + 1;
    }
    if (!settings_.escapes || line.kind == Line::Kind::kPlain) return text;
    const char* const color = line.kind == Line::Kind::kError ? "\033[31m" : "\033[33m";
    return color + text + "\033[0m";
  }

  void Write(const std::string& text) const {
    for (size_t at = 0; at < text.size();) {
      const ssize_t wrote = write(settings_.fd, text.data() + at, text.size() - at);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return;  // a terminal that is gone
      at += static_cast<size_t>(wrote);
    }
  }

  const TerminalSettings settings_;
  std::atomic<int> iter_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Line> lines_;  // not drawn yet
  LiveState state_;
  Clock::time_point begin_ = Clock::now();
  bool begun_ = false, finished_ = false, ending_ = false;
  // Of the thread that draws:
  std::string shown_;
  int shown_width_ = 0;
  std::thread thread_;
};

// What the run tells, as lines and as numbers of the live line.
class LiveView::Teller final : public Observer {
 public:
  explicit Teller(Drawing& drawing) : drawing_(drawing) {}

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

  void OnIteration(const IterationReport& report) override {
    loss_ = report.loss;
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
    Say(LiveLine(shown, kUsualWidth - 1));
  }

  void OnTestStart(int, int) override { SetDoing("testing"); }

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
    Say(text);
  }

  void OnSnapshot(const SnapshotReport& report) override {
    saved_ = report.state;
    Say(Join("iteration ", report.iter, ": saved ", report.state));
  }

  // Clipping may be told in every iteration; the log has it.
  void OnNote(const std::string& text) override {
    if (!text.starts_with("Gradient clipping")) Say(text);
  }

  void OnEnd(bool stopped_early) override {
    drawing_.Finish();
    const std::string time = ClockText(drawing_.Seconds());
    const std::string loss = Join("loss ", loss_);
    if (stopped_early) {
      Say(Join("stopped at iteration ", iter_, " after ", time, ", ", loss,
               saved_.empty() ? "" : "; --resume=auto or --snapshot=" + saved_ + " goes on"));
    } else {
      Say(Join("done: ", iter_ - first_, " iterations in ", time, ", ", loss));
    }
  }

 private:
  void Say(const std::string& text) { drawing_.Say({Line::Kind::kPlain, text}); }
  void SetDoing(const std::string& doing) {
    drawing_.Change([&](LiveState& state) { state.doing = doing; });
  }

  Drawing& drawing_;
  int64_t records_ = 0;
  int first_ = 0, iter_ = 0;
  float loss_ = 0;
  std::string saved_;
};

LiveView::LiveView(const TerminalSettings& settings)
    : drawing_(std::make_unique<Drawing>(settings)) {
  if (!settings.log_path.empty()) Say("log: " + settings.log_path);
}

LiveView::~LiveView() = default;

std::unique_ptr<Observer> LiveView::MakeObserver() { return std::make_unique<Teller>(*drawing_); }

void LiveView::Say(const std::string& text) { drawing_->Say({Line::Kind::kPlain, text}); }

}  // namespace trainer
