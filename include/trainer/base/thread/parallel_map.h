#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace trainer {

// Reads items one after the other, works on them in several threads, and returns them in the order
// in which they were read. The memory of an item is reused.
//
// `read` fills the next item, or returns false at the end; it runs on one thread at a time, `work`
// on all. Next rethrows, in the item's place, what either of them threw.
template <class Item>
class ParallelMap {
 public:
  using Read = std::function<bool(Item*)>;
  using Work = std::function<void(Item*)>;

  ParallelMap(int threads, Read read, Work work)
      : read_(std::move(read)), work_(std::move(work)), slots_(4 * static_cast<size_t>(threads)) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
    }
  }
  // Requests all threads to stop before waiting for one, because they wait for each other.
  ~ParallelMap() {
    for (std::jthread& thread : threads_) thread.request_stop();
  }

  // The next item, valid until the next call; null after the last. Not after an error.
  Item* Next() {
    std::unique_lock lock(mutex_);
    if (lent_) {
      ++taken_;
      room_.notify_all();
    }
    lent_ = false;
    Slot& slot = slots_[taken_ % slots_.size()];
    done_.wait(lock, [&] { return taken_ < begun_ ? slot.done : ended_; });
    if (taken_ == begun_) return nullptr;
    if (slot.failure) std::rethrow_exception(slot.failure);
    lent_ = true;
    return &slot.item;
  }

 private:
  struct Slot {
    Item item{};
    bool done = false;
    std::exception_ptr failure;
  };

  void Run(const std::stop_token& stop) {
    while (Slot* const slot = Begin(stop)) {
      if (!slot->failure) Guard(slot, [&] { work_(&slot->item); });
      const std::lock_guard lock(mutex_);
      slot->done = true;
      done_.notify_all();
    }
  }

  template <class F>
  void Guard(Slot* slot, const F& f) {
    try {
      f();
    } catch (...) {
      slot->failure = std::current_exception();
    }
  }

  // Reads the next item, as soon as there is room; null at the end.
  Slot* Begin(const std::stop_token& stop) {
    const std::lock_guard reading(reading_);
    Slot* slot = nullptr;
    {
      std::unique_lock lock(mutex_);
      const auto ready = [&] { return ended_ || begun_ - taken_ < slots_.size(); };
      if (!room_.wait(lock, stop, ready) || ended_) return nullptr;
      slot = &slots_[begun_ % slots_.size()];
    }
    bool more = true;
    Guard(slot, [&] { more = read_(&slot->item); });
    const std::lock_guard lock(mutex_);
    slot->done = false;
    if (more) ++begun_;
    ended_ = !more || slot->failure;
    if (ended_) done_.notify_all();
    return more ? slot : nullptr;
  }

  Read read_;
  Work work_;
  std::mutex reading_, mutex_;
  std::condition_variable_any room_, done_;
  std::vector<Slot> slots_;
  size_t begun_ = 0, taken_ = 0;  // items read; items that Next is done with
  bool ended_ = false, lent_ = false;
  std::vector<std::jthread> threads_;  // last: they use the members above
};

}  // namespace trainer
