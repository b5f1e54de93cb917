#include "trainer/base/log/progress.h"

#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr double kTerminalPause = 0.2;                    // seconds
constexpr double kLogPause = 10, kLongestLogPause = 120;  // twice as long after each line

// Formats a rate with three digits, or with all digits before the point if there are more.
std::string Rate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : "%.2f", value);
  return text;
}

// Rounds to whole seconds below 100 s, to minutes below 100 min, else to hours.
std::string TimeText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 100) return Join(whole, " s");
  if (whole < 6000) return Join((whole + 30) / 60, " min");
  return Join((whole + 1800) / 3600, " h");
}

// Returns "12 of 50 batches, 3.2 batches/s, 12 s left", or the same without the speeds. The time
// left counts from now, not from the last item. If it is not known, the time is the most that may
// be left (EndWithin) or, before the first item, the time so far.
std::string FieldsText(const std::string& unit, const ProgressState& state, bool speeds) {
  std::string text = Join(state.done, state.total > 0 ? Join(" of ", state.total) : "", " ", unit);
  const auto worked = static_cast<double>(state.done - state.skipped);
  const double all = state.seconds + state.waiting;
  if (state.seconds > 0 && worked > 0) {
    constexpr double kLeastRate = 0.01;
    const double rate = worked / state.seconds;
    if (speeds && rate >= kLeastRate) text += Join(", ", Rate(rate), " ", unit, "/s");
    if (speeds && state.bytes > 0) {
      text += Join(", ", Rate(static_cast<double>(state.bytes) / state.seconds / 1e6), " MB/s");
    }
    if (state.total > state.done) {
      const double left = static_cast<double>(state.total - state.done) / rate - state.waiting;
      return text + Join(", ", TimeText(std::max(left, 0.0)), " left");
    }
  }
  if (state.most_seconds > 0) {
    return text + Join(", at most ", TimeText(std::max(state.most_seconds - all, 0.0)), " left");
  }
  if (worked <= 0 && state.waiting > 0) text += Join(", ", TimeText(all), " so far");
  return text;
}

}  // namespace

std::string ProgressText(const std::string& unit, const ProgressState& state) {
  return FieldsText(unit, state, true);
}

std::string ProgressLine(const std::string& doing, const std::string& unit,
                         const ProgressState& state, int columns) {
  const auto room = static_cast<size_t>(std::max(columns, 1));
  std::string text = ": " + FieldsText(unit, state, true);
  if (doing.size() + text.size() > room) text = ": " + FieldsText(unit, state, false);
  if (doing.size() + text.size() <= room) return doing + text;
  constexpr std::string_view kGap = "...";
  if (text.size() + kGap.size() >= room) return text.substr(2, room);
  return doing.substr(0, room - text.size() - kGap.size()).append(kGap) + text;
}

Progress::Progress(std::string doing, std::string unit, int64_t total, InLog log)
    : doing_(std::move(doing)),
      unit_(std::move(unit)),
      logs_(log == InLog::kNowAndThen && !StatusLine::IsShown()),
      next_(kLogPause),
      pause_(kLogPause) {
  state_.total = total;
  if (isatty(STDERR_FILENO) != 1 || StatusLine::IsShown()) return;
  const TerminalSettings terminal = TerminalOf(STDERR_FILENO);
  if (!terminal.redraws) return;
  line_ = std::make_unique<StatusLine>(terminal, [this](int columns) { return Line(columns); });
}

Progress::Progress(std::string doing, std::string unit, int64_t total,
                   const TerminalSettings& terminal)
    : doing_(std::move(doing)), unit_(std::move(unit)), logs_(false), next_(0), pause_(0) {
  state_.total = total;
  line_ = std::make_unique<StatusLine>(terminal, [this](int columns) { return Line(columns); });
}

Progress::~Progress() = default;

void Progress::Add(int64_t count, uint64_t bytes) {
  const double seconds = Seconds();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    state_.done += count;
    state_.bytes += bytes;
    state_.seconds = seconds;
  }
  if (line_ == nullptr && logs_ && seconds >= next_) WriteLog(seconds);
}

void Progress::Skip(int64_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.done += count;
  state_.skipped += count;
}

void Progress::SetDoing(std::string doing) {
  const std::lock_guard<std::mutex> lock(mutex_);
  doing_ = std::move(doing);
}

void Progress::EndWithin(double seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.most_seconds = Seconds() + seconds;
}

void Progress::Say(const std::string& text) {
  if (line_ != nullptr) return line_->Say(text);
  LOG(INFO) << EscapeControl(text);
}

std::string Progress::Line(int columns) {
  ProgressState state;
  std::string doing;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    state = state_;
    doing = doing_;
  }
  const double seconds = Seconds();
  if (seconds < kTerminalPause) return "";
  state.waiting = seconds - state.seconds;
  return ProgressLine(EscapeControl(doing), unit_, state, columns);
}

void Progress::WriteLog(double seconds) {
  LOG(INFO) << EscapeControl(Join(doing_, ": ", ProgressText(unit_, state_)));
  pause_ = std::min(2 * pause_, kLongestLogPause);
  next_ = seconds + pause_;
}

}  // namespace trainer
