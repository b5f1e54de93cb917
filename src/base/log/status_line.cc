#include "trainer/base/log/status_line.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "thread/signals_blocked.h"
#include "trainer/base/log/log.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::atomic<bool> g_line_is_shown{false};

struct LineAbove {
  Color color = Color::kPlain;
  std::string text;
};

// Escapes each line of a message by itself, so that its newlines stay.
std::string EscapedLines(const std::string& message) {
  std::string text;
  for (size_t at = 0; at <= message.size();) {
    const size_t end = std::min(message.find('\n', at), message.size());
    text += (at == 0 ? "" : "\n") + EscapeControl(message.substr(at, end - at));
    at = end + 1;
  }
  return text;
}

}  // namespace

TerminalSettings TerminalOf(int fd) {
  TerminalSettings settings;
  settings.fd = fd;
  const std::string term = EnvironmentVariable("TERM");
  settings.redraws = settings.escapes = !term.empty() && term != "dumb";
  settings.colors = UsesColor(fd);
  settings.log_lines = ShowsLogLines();
  return settings;
}

// Owns the drawing thread, and receives lines of the log from glog as a sink.
class StatusLine::Drawing final : public google::LogSink {
 public:
  Drawing(const TerminalSettings& settings, Text text)
      : settings_(settings), text_(std::move(text)) {
    g_line_is_shown = true;
    HideLog();
    google::AddLogSink(this);
    const SignalsBlocked blocked;
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
    g_line_is_shown = false;
  }

  // Appends a line for the drawing thread, unless 10,000 are pending, and wakes it.
  void Say(LineAbove line) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      constexpr size_t kMost = 10000;  // limits the pending lines if the terminal accepts none
      if (lines_.size() < kMost) lines_.push_back(std::move(line));
    }
    changed_.notify_all();
  }

  // Shows errors in red and warnings in yellow, and other lines only with `log_lines`.
  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message, size_t length) override {
    const std::string text(message, length);
    if (severity >= google::ERROR) {
      Say({Color::kRed, "error: " + text});
    } else if (severity == google::WARNING) {
      Say({Color::kYellow, "warning: " + text});
    } else if (settings_.log_lines) {
      Say({Color::kPlain, text});
    }
  }

 private:
  // Runs in the drawing thread: draws every 200 ms and whenever a line arrives, and at the end once
  // without the status line.
  void Run() {
    constexpr auto kPause = std::chrono::milliseconds(200);
    std::unique_lock<std::mutex> lock(mutex_);
    for (bool last = false; !last;) {
      changed_.wait_for(lock, kPause, [this] { return ending_ || !lines_.empty(); });
      last = ending_;
      const std::vector<LineAbove> lines = std::exchange(lines_, {});
      lock.unlock();
      Draw(lines, !last);
      lock.lock();
    }
  }

  // Returns the terminal's width, 80 if it is not known.
  int Columns() const {
    if (settings_.width) return settings_.width();
    const int columns = TerminalColumns(settings_.fd);
    constexpr int kUsual = 80;
    return columns > 0 ? columns : kUsual;
  }

  // Erases the status line, prints `lines` and draws the new status line, or none if not `live`.
  // Writes nothing if nothing has changed.
  void Draw(const std::vector<LineAbove>& lines, bool live) {
    const int width = Columns();
    // A line that fills the last column would wrap.
    const std::string text = live && settings_.redraws ? text_(std::max(width - 1, 1)) : "";
    if (lines.empty() && text == shown_ && width == shown_width_) return;
    std::string out = Erased(width);
    for (const LineAbove& line : lines) {
      const std::string escaped = EscapedLines(line.text);
      out += (settings_.colors ? Painted(line.color, escaped) : escaped) + "\n";
    }
    out += text;
    shown_ = text;
    shown_width_ = width;
    Write(out);
  }

  // Returns the characters that erase the line. If the terminal was wider when the line was drawn,
  // it may fill several rows by now.
  std::string Erased(int width) const {
    if (shown_.empty()) return "";
    if (!settings_.escapes) {
      if (static_cast<int>(shown_.size()) >= width) return "\n";
      return "\r" + std::string(shown_.size(), ' ') + "\r";
    }
    const auto rows = (static_cast<int>(shown_.size()) - 1) / std::max(width, 1);
    return "\r" + (rows > 0 ? Join("\033[", rows, "A") : std::string()) + "\033[J";
  }

  // Writes all of `text`, or gives up silently if the terminal is closed.
  void Write(const std::string& text) const {
    for (size_t at = 0; at < text.size();) {
      const ssize_t wrote = write(settings_.fd, text.data() + at, text.size() - at);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return;  // the terminal is closed
      at += static_cast<size_t>(wrote);
    }
  }

  const TerminalSettings settings_;
  const Text text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<LineAbove> lines_;  // not drawn yet
  bool ending_ = false;
  // The drawing thread owns the members from here on.
  std::string shown_;
  int shown_width_ = 0;
  std::thread thread_;
};

StatusLine::StatusLine(const TerminalSettings& settings, Text text)
    : drawing_(std::make_unique<Drawing>(settings, std::move(text))) {}

StatusLine::~StatusLine() = default;

void StatusLine::Say(const std::string& text, Color color) { drawing_->Say({color, text}); }

bool StatusLine::IsShown() { return g_line_is_shown; }

}  // namespace trainer
