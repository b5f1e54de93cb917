#pragma once
// How many threads decode, where nobody said: as many as make batches come faster.

#include <array>
#include <cstddef>

namespace trainer {

// Begins with one thread. While the consumer waits for batches and decoding is the slower stage,
// it adds one after each window of batches; one that did not make batches come faster goes again,
// and that was the last change. Only speed depends on it, never what batches hold.
class DecodeTuner {
 public:
  // At most so many threads: the cores that this process may use.
  explicit DecodeTuner(int most) : most_(most) {}

  int threads() const { return threads_; }

  // A batch was taken, `period` seconds after the one before; `waited` of them the consumer had to
  // wait for it. `decoding_is_slower`: than reading, for all threads together.
  void Note(double period, double waited, bool decoding_is_slower);

 private:
  static constexpr size_t kWindow = 24, kSettling = 8;  // batches; the first ones do not count

  void EndWindow(bool decoding_is_slower);

  int most_, threads_ = 1;
  bool added_ = false;        // the last window ended with one thread more
  double period_before_ = 0;  // of a batch, with one thread fewer
  size_t seen_ = 0;
  double all_ = 0, waited_ = 0;
  std::array<double, kWindow> periods_{};
};

}  // namespace trainer
