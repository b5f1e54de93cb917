#pragma once
// A bounded blocking queue between two threads. It carries values one way and an exception too.

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace trainer {

// Thrown out of a wait that a stop request ended.
struct QueueStopped {};

// The order in which values leave a queue: as they were pushed, or the last one first. Use kLifo
// for memory that is reused, because the caches still hold the last block.
enum class QueueOrder { kFifo, kLifo };

// All members may be called from any thread. Nothing is allocated after construction. It must
// outlive the calls of all threads, also those that have done their part.
template <class T>
class BlockingQueue {
 public:
  // `capacity` values at most, at least 1.
  explicit BlockingQueue(size_t capacity, QueueOrder order = QueueOrder::kFifo)
      : order_(order), ring_(capacity) {}

  // Waits for room. Throws QueueStopped when `stop` is requested.
  void Push(T value, const std::stop_token& stop = {}) {
    {
      std::unique_lock lock(mutex_);
      Wait(room_, lock, stop, [&] { return count_ < ring_.size(); });
      ring_[At(count_++)] = std::move(value);
    }
    filled_.notify_one();
  }

  // Waits for a value; throws the exception given to Fail once the values before it are taken.
  // Throws QueueStopped when `stop` is requested.
  T Pop(const std::stop_token& stop = {}) {
    std::unique_lock lock(mutex_);
    Wait(filled_, lock, stop, [&] { return count_ > 0 || failure_; });
    if (count_ == 0) std::rethrow_exception(failure_);
    std::optional<T>& from = ring_[order_ == QueueOrder::kFifo ? first_ : At(count_ - 1)];
    T value = std::move(*from);
    from.reset();
    if (order_ == QueueOrder::kFifo) first_ = At(1);
    --count_;
    lock.unlock();
    room_.notify_one();
    return value;
  }

  // Waits until there are `count` values, at most the capacity. Throws the exception given to Fail
  // where they will not be.
  void Await(size_t count) {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return count_ >= count || failure_; });
    if (count_ < count) std::rethrow_exception(failure_);
  }

  // Ends the stream: Pop throws `failure` once the values before it are taken.
  void Fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    filled_.notify_all();
  }

  // Returns whether Pop would wait now.
  bool WouldWait() const {
    const std::lock_guard lock(mutex_);
    return count_ == 0 && !failure_;
  }

  // Returns how many values Pop would give now without waiting.
  size_t Count() const { return count_; }

 private:
  // Returns the index in ring_ of the i-th value after the oldest.
  size_t At(size_t i) const { return (first_ + i) % ring_.size(); }

  // Waits until is_over() is true, and throws QueueStopped if `stop` is requested first. If it is
  // true already, does not touch the stop token, which all threads share.
  template <class IsFinished>
  static void Wait(std::condition_variable_any& what, std::unique_lock<std::mutex>& lock,
                   const std::stop_token& stop, const IsFinished& is_over) {
    if (!is_over() && !what.wait(lock, stop, is_over)) throw QueueStopped{};
  }

  const QueueOrder order_;
  mutable std::mutex mutex_;  // guards what follows; count_ may be read without it
  std::condition_variable_any filled_, room_;
  std::vector<std::optional<T>> ring_;
  size_t first_ = 0;
  std::atomic<size_t> count_ = 0;
  std::exception_ptr failure_;
};

}  // namespace trainer
