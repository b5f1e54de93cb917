#pragma once
// A thread that fills batches ahead of the thread that uses them.

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "trainer/base/channel.h"
#include "trainer/base/error.h"

namespace trainer {

// How often the consumer found no batch ready, and for how long it then waited. The first batch
// after the start is apart: there the queue is only filling.
struct WaitCounters {
  uint64_t waits = 0;
  double wait_seconds = 0;
  double first_wait_seconds = 0;
};

// Whether the n-th wait, counted from 1, is worth a line in the log: the first of each thousand.
constexpr bool LogsWait(uint64_t n) { return n % 1000 == 1; }

// Counts a wait that begins now and logs "Waiting for data" where that is due.
void NoteWait(WaitCounters* counters);

// The members are for one thread, the consumer; the reading thread starts with the first Next and
// ends with the object, so the object must be the last member of what `fill` uses. Nothing is
// allocated once all buffers went round. Errors of `fill` come out of Next, after the batches
// before them.
template <class Batch>
class ReadAhead {
 public:
  // `depth` batches are kept ready. `make` gives an empty batch with its buffers, `fill` fills one
  // on the reading thread.
  ReadAhead(int64_t depth, std::function<Batch()> make, std::function<void(Batch&)> fill)
      : depth_(depth),
        make_(std::move(make)),
        fill_(std::move(fill)),
        free_(static_cast<size_t>(depth) + 1),
        full_(static_cast<size_t>(depth) + 1) {}

  bool started() const { return thread_.joinable(); }
  const WaitCounters& counters() const { return counters_; }

  // Ends the reading thread, and with it what Next gives. The last batch stays.
  void Stop() {
    stopped_ = true;
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }

  // The next batch; the former one is taken back.
  const Batch& Next() {
    if (stopped_) throw Error(ErrorCode::kInternal, "a data source that was stopped is read");
    const bool first = !started();
    if (first) {
      for (int64_t i = 0; i <= depth_; ++i) free_.Push(make_());
      thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
    }
    if (has_current_) free_.Push(std::move(current_));
    has_current_ = false;
    current_ = Wait(first);
    has_current_ = true;
    return current_;
  }

 private:
  Batch Wait(bool first) {
    if (!full_.WouldWait()) return full_.Pop();
    if (!first) NoteWait(&counters_);
    const auto begin = std::chrono::steady_clock::now();
    Batch batch = full_.Pop();
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    (first ? counters_.first_wait_seconds : counters_.wait_seconds) += waited.count();
    return batch;
  }

  void Run(const std::stop_token& stop) try {
    for (;;) {
      Batch batch = free_.Pop(stop);
      fill_(batch);
      full_.Push(std::move(batch), stop);
    }
  } catch (const Closed&) {
  } catch (...) {
    full_.Fail(std::current_exception());
  }

  int64_t depth_;
  std::function<Batch()> make_;
  std::function<void(Batch&)> fill_;
  Batch current_;
  bool has_current_ = false, stopped_ = false;
  WaitCounters counters_;
  Channel<Batch> free_, full_;
  std::jthread thread_;  // last: it stops before what it uses goes away
};

}  // namespace trainer
