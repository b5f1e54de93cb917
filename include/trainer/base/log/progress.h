#pragma once
// How far a long piece of work is, and when it will be done.

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

// "1200 of 5000 records, 800 records/s, 12.3 MB/s, 5 s left". `unit` in the plural.
std::string ProgressText(const std::string& unit, const ProgressState& state);
// "Writing train_lmdb: " and the text, in at most so many columns: without the speeds, then with a
// shorter beginning.
std::string ProgressLine(const std::string& doing, const std::string& unit,
                         const ProgressState& state, int columns);

// On a terminal one line that is drawn again, above which warnings stand and in place of the log's
// other lines; elsewhere a line of the log now and then. Work that is done within some seconds logs
// nothing. Used by one thread. Where another one shows its line, this one shows nothing.
class Progress {
 public:
  // kNothing: of work whose own lines tell the log how far it is.
  enum class InLog { kNowAndThen, kNothing };

  // `doing` begins each line: "Writing train_lmdb".
  Progress(std::string doing, std::string unit, int64_t total, InLog log = InLog::kNowAndThen);
  // The same on a given terminal.
  Progress(std::string doing, std::string unit, int64_t total, const TerminalSettings& terminal);
  ~Progress();  // takes the line off the terminal
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(int64_t count, uint64_t bytes = 0);
  // Counts what an earlier start has done.
  void Skip(int64_t count);
  // What is done now: "Testing batches, 64 records".
  void SetDoing(std::string doing);
  // The work ends after so many seconds at the latest.
  void EndWithin(double seconds);
  // A line that stays: above the line of a terminal, else of the log.
  void Say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  std::string Line(int columns);
  void WriteLog(double seconds);

  std::mutex mutex_;  // of what the terminal's thread reads
  std::string doing_;
  const std::string unit_;
  ProgressState state_;
  const Clock::time_point start_ = Clock::now();
  const bool logs_;
  double next_, pause_;  // seconds from the start to the next line of the log, and to the one after
  std::unique_ptr<StatusLine> line_;  // the last one: its thread reads all others
};

}  // namespace trainer
