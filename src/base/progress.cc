#include "trainer/base/progress.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr double kTerminalPause = 0.2;                    // seconds
constexpr double kLogPause = 10, kLongestLogPause = 120;  // twice as long after each line

// A rate with three digits or, where it has more before the point, all of those.
std::string Rate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.2f", value);
  return text;
}

std::string TimeText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 100) return Join(whole, " s");
  if (whole < 6000) return Join((whole + 30) / 60, " min");
  return Join((whole + 1800) / 3600, " h");
}

}  // namespace

std::string ProgressText(const std::string& unit, const ProgressState& state) {
  std::string text = Join(state.done, state.total > 0 ? Join(" of ", state.total) : "", " ", unit);
  if (state.seconds <= 0 || state.done <= 0) return text;
  const double rate = static_cast<double>(state.done) / state.seconds;
  text += Join(", ", Rate(rate), " ", unit, "/s");
  if (state.bytes > 0) {
    text += Join(", ", Rate(static_cast<double>(state.bytes) / state.seconds / 1e6), " MB/s");
  }
  if (state.total > state.done) {
    text += Join(", ", TimeText(static_cast<double>(state.total - state.done) / rate), " left");
  }
  return text;
}

Progress::Progress(std::string doing, std::string unit, int64_t total)
    : doing_(std::move(doing)),
      unit_(std::move(unit)),
      terminal_(isatty(STDERR_FILENO) == 1),
      next_(terminal_ ? kTerminalPause : kLogPause),
      pause_(next_) {
  state_.total = total;
}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\r\x1b[K", stderr);
}

void Progress::Add(int64_t count, uint64_t bytes) {
  state_.done += count;
  state_.bytes += bytes;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (seconds < next_) return;
  Show(seconds);
  if (!terminal_) pause_ = std::min(2 * pause_, kLongestLogPause);
  next_ = seconds + pause_;
}

void Progress::Show(double seconds) {
  state_.seconds = seconds;
  const std::string line = EscapeControl(Join(doing_, ": ", ProgressText(unit_, state_)));
  shown_ = true;
  if (!terminal_) {
    LOG(INFO) << line;
    return;
  }
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
}

}  // namespace trainer
