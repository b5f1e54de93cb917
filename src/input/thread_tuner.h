#pragma once
// Chooses the number of decoding threads if the user did not: as many as make batches come faster.

#include <array>
#include <cstddef>

namespace trainer {

// While the consumer waits for batches and decoding is slower than reading, adds a thread after
// each window of batches. A thread that did not make batches come faster is removed, which is the
// last change. Only the speed depends on it, never the content of batches.
class ThreadTuner {
 public:
  // Starts with `first` threads. `most` is the limit: the number of cores that this process may
  // use.
  ThreadTuner(int first, int most) : most_(most), threads_(first) {}

  int threads() const { return threads_; }

  // Call it when a batch is taken, `period` seconds after the previous one, of which the consumer
  // waited `waited` seconds. `decoding_is_slower`: than reading, summed over all threads. `ready`:
  // number of batches that are ready, which fewer threads made.
  void Note(double period, double waited, bool decoding_is_slower, size_t ready);

 private:
  // A window can be judged after kLeast batches in kSeconds seconds, or after kMost batches. A
  // thread is removed only after kMost, because removing is final.
  static constexpr size_t kLeast = 4, kMost = 24;
  static constexpr double kSeconds = 0.3;

  void EndWindow(bool decoding_is_slower, size_t ready);
  bool MadeFaster(double period) const;

  int most_, threads_;
  bool added_ = false;        // the last window ended with one thread more
  double period_before_ = 0;  // of a batch, with one thread fewer
  size_t settling_ = 1;       // batches that do not count yet; the first is slower than others
  size_t seen_ = 0;           // in the window, as are
  double all_ = 0, waited_ = 0;
  std::array<double, kMost> periods_{};
};

}  // namespace trainer
