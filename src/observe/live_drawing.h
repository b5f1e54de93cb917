#pragma once
// Who draws a live view: a thread that shows lines and, below them, the state of the run.

#include <glog/logging.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/observe/live_view.h"

namespace trainer {

// While it lives the log goes to it: warnings and errors are lines.
class LiveView::Drawing final : public google::LogSink {
 public:
  // A line above the live one.
  struct Line {
    enum class Kind { kPlain, kWarning, kError };
    Kind kind = Kind::kPlain;
    std::string text;
  };

  explicit Drawing(const TerminalSettings& settings);
  ~Drawing() override;

  void Say(Line line);
  void Say(const std::string& text) { Say({Line::Kind::kPlain, text}); }

  // Changes the state that is drawn next.
  template <class F>
  void Change(F&& change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    change(state_);
  }
  // The same for what every iteration tells, without a lock.
  void SetIter(int iter) { iter_.store(iter, std::memory_order_relaxed); }
  // The first iteration begins: time counts from here.
  void Begin(int iter);
  double Seconds();
  // From here on nothing is drawn but lines.
  void Finish();
  bool redraws() const { return settings_.redraws; }

  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message, size_t length) override;

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  void Draw(const std::vector<Line>& lines, const LiveState& state, bool live);
  std::string Erased(int width) const;
  std::string Colored(const Line& line) const;
  void Write(const std::string& text) const;

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

}  // namespace trainer
