#pragma once
// Chooses the number of decoding threads if the user did not: as many as make batches come faster.

#include <array>
#include <cstddef>

namespace trainer {

// While the consumer waits and decoding is slower than reading, adds a thread after each window of
// batches, and removes one that did not help, for good. The content of batches never depends on it.
class ThreadTuner {
 public:
  // Starts with `first` threads. `most`: the cores that this process may use.
  ThreadTuner(int first, int most) : most_(most), threads_(first) {}

  int threads() const { return threads_; }

  // A batch is taken, `period` seconds after the previous one, after a wait of `waited` seconds;
  // `ready` others were made by fewer threads. `decoding_is_slower` than reading, over all threads.
  void Note(double period, double waited, bool decoding_is_slower, size_t ready);

 private:
  // Judged after kLeast batches in kSeconds, but a thread is removed, for good, only after kMost.
  static constexpr size_t kLeast = 4, kMost = 24;
  static constexpr double kSeconds = 0.3;

  void EndWindow(bool decoding_is_slower, size_t ready);

  int most_, threads_;
  bool added_ = false;        // the last window ended with one thread more
  double period_before_ = 0;  // of a batch, with one thread fewer
  size_t settling_ = 1;       // batches that do not count yet; the first is slower than others
  size_t seen_ = 0;           // in the window, as are
  double all_ = 0, waited_ = 0;
  std::array<double, kMost> periods_{};
};

}  // namespace trainer
