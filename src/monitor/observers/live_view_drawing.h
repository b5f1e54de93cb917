#pragma once
// The state of a run that its live view shows, and the line of the terminal that shows it.

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "trainer/base/log/status_line.h"
#include "trainer/monitor/live_view.h"

namespace trainer {

// The thread of `line_` calls Line to draw. All functions may be called from the training thread
// meanwhile.
class LiveView::Drawing {
 public:
  explicit Drawing(const TerminalSettings& settings)
      : redraws_(settings.redraws),
        line_(settings, [this](int columns) { return Line(columns); }) {}

  // Prints a line above the live one.
  void Say(const std::string& text, Color color = Color::kPlain) { line_.Say(text, color); }

  // Changes the state that is drawn next.
  template <class F>
  void Change(F&& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change(state_);
  }
  // Sets the iteration without a lock, because every iteration calls it.
  void SetIter(int iter) { iter_.store(iter, std::memory_order_relaxed); }
  // Called when the first iteration begins. The time counts from here.
  void Begin(int iter);
  // Returns the seconds since Begin; before it, since this object was made.
  double Seconds();
  // Ends the live line. From here on only the lines of Say are printed.
  void Finish();
  bool redraws() const { return redraws_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Returns the live line in at most `columns` columns; "" after Finish. Called by the thread of
  // `line_`.
  std::string Line(int columns);

  const bool redraws_;
  std::atomic<int> iter_{0};
  std::mutex mutex_;
  LiveState state_ = {.doing = "preparing"};
  Clock::time_point begin_ = Clock::now();
  bool begun_ = false, finished_ = false;
  StatusLine line_;  // the last one: its thread reads all others
};

}  // namespace trainer
