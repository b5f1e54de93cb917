#pragma once
// A bounded blocking queue between two threads. It carries values one way and an exception too.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace trainer {

// Thrown out of a wait that a stop request ended.
struct Closed {};

// All members may be called from any thread. Values come out in the order they went in. Nothing is
// allocated after construction.
template <class T>
class Channel {
 public:
  // `capacity` values at most, at least 1.
  explicit Channel(size_t capacity) : ring_(capacity) {}

  // Waits for room. Throws Closed when `stop` is requested.
  void Push(T value, const std::stop_token& stop = {}) {
    std::unique_lock lock(mutex_);
    if (!room_.wait(lock, stop, [&] { return count_ < ring_.size(); })) throw Closed{};
    ring_[(first_ + count_++) % ring_.size()] = std::move(value);
    filled_.notify_one();
  }

  // Waits for a value; throws the exception given to Fail once the values before it are taken.
  // Throws Closed when `stop` is requested.
  T Pop(const std::stop_token& stop = {}) {
    std::unique_lock lock(mutex_);
    if (!filled_.wait(lock, stop, [&] { return count_ > 0 || failure_; })) throw Closed{};
    if (count_ == 0) std::rethrow_exception(failure_);
    T value = std::move(*ring_[first_]);
    ring_[first_].reset();
    first_ = (first_ + 1) % ring_.size();
    --count_;
    room_.notify_one();
    return value;
  }

  // Waits until there are `count` values, at most the capacity, but no longer than `most`. Returns
  // whether they are there; throws the exception given to Fail where they will not be.
  bool Await(size_t count, std::chrono::nanoseconds most) {
    std::unique_lock lock(mutex_);
    filled_.wait_for(lock, most, [&] { return count_ >= count || failure_; });
    if (count_ < count && failure_) std::rethrow_exception(failure_);
    return count_ >= count;
  }

  // Ends the stream: what the producer threw is thrown again by Pop.
  void Fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    filled_.notify_all();
  }

  // Whether Pop would wait now.
  bool WouldWait() const {
    const std::lock_guard lock(mutex_);
    return count_ == 0 && !failure_;
  }

  // How many values Pop would give now without waiting.
  size_t Count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any filled_, room_;
  std::vector<std::optional<T>> ring_;
  size_t first_ = 0, count_ = 0;
  std::exception_ptr failure_;
};

}  // namespace trainer
