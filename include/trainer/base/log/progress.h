#pragma once
// Shows how much of a long task is done, and when it will end.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "trainer/base/log/status_line.h"

namespace trainer {

struct ProgressState {
  int64_t done = 0, total = 0;  // total 0: not known
  uint64_t bytes = 0;           // 0: not counted
  double seconds = 0;           // from the start to the last of `done`
  int64_t skipped = 0;          // of `done`, without any work
  double waiting = 0;           // seconds since then
  double most_seconds = 0;      // after which the work ends in any case; 0: not known
};

// Returns "1200 of 5000 records, 800 records/s, 12.3 MB/s, 5 s left". `unit` is in the plural. The
// speed and the time left leave out skipped items.
std::string ProgressText(const std::string& unit, const ProgressState& state);
// Returns "Writing train_lmdb: " and the text in at most `columns` columns. If it is too long, the
// speeds are left out, and then the beginning is shortened.
std::string ProgressLine(const std::string& doing, const std::string& unit,
                         const ProgressState& state, int columns);

// On a terminal, Progress redraws one line; warnings appear above it, and other lines of the log
// are not shown. Elsewhere it logs a line at growing intervals. A task that takes only some seconds
// logs nothing. Only one thread may use an object. While another object shows its line, this one
// shows nothing.
class Progress {
 public:
  // kNothing is for a task that logs its progress itself.
  enum class InLog { kNowAndThen, kNothing };

  // `doing` begins each line: "Writing train_lmdb".
  Progress(std::string doing, std::string unit, int64_t total, InLog log = InLog::kNowAndThen);
  // Shows the progress on a given terminal.
  Progress(std::string doing, std::string unit, int64_t total, const TerminalSettings& terminal);
  ~Progress();  // takes the line off the terminal
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Counts `count` finished items and `bytes` bytes. Without a terminal, also logs a line if one is
  // due.
  void Add(int64_t count, uint64_t bytes = 0);
  // Counts items that an earlier start has done. They count as done, but not for the speed.
  void Skip(int64_t count);
  // Sets the text that begins each line from now on: "Testing batches, 64 records".
  void SetDoing(std::string doing);
  // States that the task ends after at most `seconds` seconds.
  void EndWithin(double seconds);
  // Prints a line that stays: above the status line on a terminal, else in the log.
  void Say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  // Returns the text of the status line, or "" in the first 0.2 s. The drawing thread calls it.
  std::string Line(int columns);
  // Logs a line at `seconds` after the start. The pause until the next one doubles, up to 2 min.
  void WriteLog(double seconds);

  std::mutex mutex_;  // guards the members that the terminal's thread reads
  std::string doing_;
  const std::string unit_;
  ProgressState state_;
  const Clock::time_point start_ = Clock::now();
  const bool logs_;
  double next_, pause_;  // seconds from the start to the next line of the log, and to the one after
  std::unique_ptr<StatusLine> line_;  // the last member, because its thread reads all others
};

}  // namespace trainer
