#pragma once
// A one-way channel for messages of one size between two ranks.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "message.h"
#include "trainer/base/ranks/shared_window.h"

namespace trainer {

// Holds up to `slots` messages that were sent and not yet received, in the memory of the receiver's
// node. A sender on another node sends by remote calls. Used by one thread on each side.
class StageChannel {
 public:
  // Returns the bytes of shared memory that a channel needs; the memory must be zero at first.
  static size_t Bytes(size_t message, int slots);

  // A remote sender calls this method with the channel's number; the receiver's handler calls
  // Deliver.
  struct Address {
    int kind = 0;
    int64_t channel = 0;
  };

  // `memory` is the same block on both sides; other ranks do not touch it. All arguments must
  // outlive the object.
  StageChannel(std::byte* memory, size_t message, int slots, int from, int to, SharedWindow& window,
               const Address& address);

  size_t message() const { return message_; }

  // Waits for a free slot; then write(place) writes `message` bytes to it.
  template <class Write>
  void Send(const Write& write) {
    if (!window_->IsSameNode(to_)) return SendRemote(write);
    const uint32_t number = counters_->sent.load(std::memory_order_relaxed);
    window_->WaitFor(to_, [&] { return number - counters_->taken.load() < slots_; });
    write(Slot(number));
    counters_->sent.store(number + 1);
    window_->Notify(to_);
  }
  // Waits for the next message; then read(place) reads it.
  template <class Read>
  void Receive(const Read& read) const {
    const uint32_t number = counters_->taken.load(std::memory_order_relaxed);
    window_->WaitFor(from_, [&] { return counters_->sent.load() != number; });
    read(static_cast<const std::byte*>(Slot(number)));
    counters_->taken.store(number + 1);
    if (window_->IsSameNode(from_)) window_->Notify(from_);
  }
  // Called at the receiver: stores message number `remote_number` from a sender on another node.
  // Returns false while the message has no slot or an earlier one has not arrived; the call is then
  // retried, perhaps in another order.
  bool Deliver(int64_t remote_number, std::span<const std::byte> message) const;

 private:
  struct Counters {
    alignas(64) std::atomic<uint32_t> sent;
    alignas(64) std::atomic<uint32_t> taken;
  };
  // Sends by a remote call. Waits for the oldest call first if as many as `slots` are unanswered.
  template <class Write>
  void SendRemote(const Write& write) {
    if (calls_.size() == slots_) {
      window_->rpc()->Wait(calls_.front());
      calls_.pop_front();
    }
    MessageWriter message;
    message.Put(address_.channel);
    message.Put(remote_sent_++);
    write(message.Room(message_));
    calls_.push_back(window_->rpc()->CallAsync(to_, address_.kind, message.Take()));
  }
  std::byte* Slot(uint32_t number) const { return state_slots_ + number % slots_ * stride_; }

  SharedWindow* window_;
  int from_, to_;
  uint32_t slots_;
  size_t message_, stride_;
  Counters* counters_;
  std::byte* state_slots_;
  Address address_;
  int64_t remote_sent_ = 0;     // the number of the next message to another node
  std::deque<uint64_t> calls_;  // calls of such messages that may be unanswered
};

}  // namespace trainer
