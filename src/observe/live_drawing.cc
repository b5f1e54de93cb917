#include "live_drawing.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "trainer/base/log.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr int kUsualWidth = 80;

int WidthOf(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

}  // namespace

LiveView::Drawing::Drawing(const TerminalSettings& settings) : settings_(settings) {
  state_.doing = "preparing";
  HideLog();
  google::AddLogSink(this);
  thread_ = std::thread([this] { Run(); });
}

LiveView::Drawing::~Drawing() {
  google::RemoveLogSink(this);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ShowLog();
}

void LiveView::Drawing::Say(Line line) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    constexpr size_t kMost = 10000;  // of a terminal that takes none
    if (lines_.size() < kMost) lines_.push_back(std::move(line));
  }
  changed_.notify_all();
}

void LiveView::Drawing::Begin(int iter) {
  SetIter(iter);
  const std::lock_guard<std::mutex> lock(mutex_);
  begin_ = Clock::now();
  begun_ = true;
}

double LiveView::Drawing::Seconds() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void LiveView::Drawing::Finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  finished_ = true;
}

void LiveView::Drawing::send(google::LogSeverity severity, const char*, const char*, int,
                             const google::LogMessageTime&, const char* message, size_t length) {
  const std::string text(message, length);
  if (severity >= google::ERROR) {
    Say({Line::Kind::kError, "error: " + text});
  } else if (severity == google::WARNING) {
    Say({Line::Kind::kWarning, "warning: " + text});
  } else if (settings_.log_lines) {
    Say({Line::Kind::kPlain, text});
  }
}

void LiveView::Drawing::Run() {
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

void LiveView::Drawing::Draw(const std::vector<Line>& lines, const LiveState& state, bool live) {
  const int width = settings_.width ? settings_.width() : WidthOf(settings_.fd);
  // A line that fills the last column would wrap.
  const std::string text = live && settings_.redraws ? LiveLine(state, std::max(width - 1, 1)) : "";
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
std::string LiveView::Drawing::Erased(int width) const {
  if (shown_.empty()) return "";
  if (!settings_.escapes) {
    if (static_cast<int>(shown_.size()) >= width) return "\n";
    return "\r" + std::string(shown_.size(), ' ') + "\r";
  }
  const auto rows = (static_cast<int>(shown_.size()) - 1) / std::max(width, 1);
  return "\r" + (rows > 0 ? Join("\033[", rows, "A") : std::string()) + "\033[J";
}

std::string LiveView::Drawing::Colored(const Line& line) const {
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

void LiveView::Drawing::Write(const std::string& text) const {
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = write(settings_.fd, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // a terminal that is gone
    at += static_cast<size_t>(wrote);
  }
}

}  // namespace trainer
