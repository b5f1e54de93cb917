#pragma once
// How far a long piece of work is, and when it will be done.

#include <chrono>
#include <cstdint>
#include <string>

namespace trainer {

struct ProgressState {
  int64_t done = 0, total = 0;  // total 0: not known
  uint64_t bytes = 0;           // 0: not counted
  double seconds = 0;           // since the start
};

// "1200 of 5000 records, 800 records/s, 12.3 MB/s, 5 s left". `unit` in the plural.
std::string ProgressText(const std::string& unit, const ProgressState& state);

// On a terminal one line that is written over again, elsewhere a line of the log now and then. Work
// that is done within some seconds logs nothing. Used by one thread.
class Progress {
 public:
  // `doing` begins each line: "Writing train_lmdb".
  Progress(std::string doing, std::string unit, int64_t total);
  ~Progress();  // takes the line off the terminal
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(int64_t count, uint64_t bytes = 0);

 private:
  using Clock = std::chrono::steady_clock;

  void Show(double seconds);

  std::string doing_, unit_;
  bool terminal_;
  bool shown_ = false;
  ProgressState state_;
  Clock::time_point start_ = Clock::now();
  double next_;   // seconds after the start, of the next line
  double pause_;  // until the one after that
};

}  // namespace trainer
