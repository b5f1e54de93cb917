#pragma once
// How many threads decode, where nobody said: as many as make batches come faster.

#include <array>
#include <cstddef>

namespace trainer {

// While the consumer waits for batches and decoding is the slower stage,
// it adds one after each window of batches; one that did not make batches come faster goes again,
// and that was the last change. Only speed depends on it, never what batches hold.
class DecodeTuner {
 public:
  // Begins with `first` threads. At most so many: the cores that this process may use.
  DecodeTuner(int first, int most) : most_(most), threads_(first) {}

  int threads() const { return threads_; }

  // A batch was taken, `period` seconds after the one before; `waited` of them the consumer had to
  // wait for it. `decoding_is_slower`: than reading, for all threads together. `ready`: the batches
  // that can be taken without waiting, which fewer threads made.
  void Note(double period, double waited, bool decoding_is_slower, size_t ready);

 private:
  // A window is long enough to be judged by with so many batches in so many seconds, or with the
  // most batches. A thread is taken back only after the most: taking it back is final.
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
