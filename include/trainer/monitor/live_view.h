#pragma once
// A run as a terminal shows it: one line that is always up to date, and above it what happened.

#include <memory>
#include <string>

#include "trainer/base/log/status_line.h"
#include "trainer/base/log/terminal.h"
#include "trainer/monitor/observer.h"

namespace trainer {

// The view of a run on a terminal: one line that is always up to date, and above it the events.
// While the object exists, it shows the warnings and errors of the log, and no other lines of it.
// Its own thread draws, so that a stopped or slow terminal does not delay the run. The destructor
// draws for the last time and ends the live line.
class LiveView {
 public:
  explicit LiveView(const TerminalSettings& settings);
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // Makes the observer that passes the events of the run to this view. The view must outlive it.
  std::unique_ptr<TrainingObserver> MakeObserver();
  // Prints a line above the live one.
  void Say(const std::string& text, Color color = Color::kPlain);

 private:
  class Drawing;
  class ProgressObserver;
  std::unique_ptr<Drawing> drawing_;
};

// The values of the live line.
struct LiveState {
  int iter = 0, first_iter = 0, max_iter = 0;
  int64_t epoch = -1;
  bool has_loss = false;
  float loss = 0, rate = 0;
  double images_per_second = 0, iterations_per_second = 0;  // 0: unknown
  double seconds = 0;                                       // since the first iteration began
  double gpu_busy = -1;                                     // share of the time; -1: unknown
  std::string doing;                                        // "testing", "preparing", or ""
};

// Returns the line in at most `width` columns. If it is too long, all fields are shortened, then
// the least important ones are left out.
std::string LiveLine(const LiveState& state, int width);
// Returns "0:01:23" or "2d 3:04:05".
std::string ClockText(double seconds);

}  // namespace trainer
