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

// Items are read one after the other, worked on by several threads at once, and taken in the order
// in which they were read. An item is memory that is used again and again.
//
// `read` fills the next item, or returns false at the end; it runs on one thread at a time, `work`
// on all. What either throws, Next throws in that item's place.
template <class Item>
class OrderedWork {
 public:
  using Read = std::function<bool(Item*)>;
  using Work = std::function<void(Item*)>;

  OrderedWork(int threads, Read read, Work work)
      : read_(std::move(read)), work_(std::move(work)), slots_(4 * static_cast<size_t>(threads)) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
    }
  }
  // All are told to stop before one is waited for: they wait for each other.
  ~OrderedWork() {
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  // The next item, valid until the next call; null after the last. After an error nothing more may
  // be asked for.
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
