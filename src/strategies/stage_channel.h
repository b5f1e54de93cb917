#pragma once
// Messages of one size that go one way from one rank to another.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "packet.h"
#include "trainer/base/ranks/shared_window.h"

namespace trainer {

// Holds `slots` messages that were sent and not taken yet, in the memory of the receiver's machine.
// A sender of another machine posts them. Used by one thread on each side.
class StageChannel {
 public:
  // Bytes of that memory that one takes, zeros at first.
  static size_t Bytes(size_t message, int slots);

  // Who posts, says the channel's number in a question of this kind, and the receiver answers it by
  // Deliver.
  struct Address {
    int kind = 0;
    int64_t channel = 0;
  };

  // `memory` is the same block on both sides; elsewhere it is not touched. All must outlive the
  // object.
  StageChannel(std::byte* memory, size_t message, int slots, int from, int to, SharedWindow& peers,
               const Address& address);

  size_t message() const { return message_; }

  // Waits for a free slot; write(place) puts `message` bytes there.
  template <class Write>
  void Send(const Write& write) {
    if (!peers_->IsNear(to_)) return Post(write);
    const uint32_t number = board_->sent.load(std::memory_order_relaxed);
    peers_->Await(to_, [&] { return number - board_->taken.load() < slots_; });
    write(Place(number));
    board_->sent.store(number + 1);
    peers_->Ring(to_);
  }
  // Waits for the next message; read(place) takes it from there.
  template <class Read>
  void Receive(const Read& read) const {
    const uint32_t number = board_->taken.load(std::memory_order_relaxed);
    peers_->Await(from_, [&] { return board_->sent.load() != number; });
    read(static_cast<const std::byte*>(Place(number)));
    board_->taken.store(number + 1);
    if (peers_->IsNear(from_)) peers_->Ring(from_);
  }
  // Called at the receiver for message number `posted`. Returns false, to be asked again, while the
  // message has no slot or one before it has not come: questions may be retried in any order.
  bool Deliver(int64_t posted, std::span<const std::byte> message) const;

 private:
  struct Board {
    alignas(64) std::atomic<uint32_t> sent;
    alignas(64) std::atomic<uint32_t> taken;
  };
  template <class Write>
  void Post(const Write& write) {
    if (tickets_.size() == slots_) {
      peers_->post()->Await(tickets_.front());
      tickets_.pop_front();
    }
    Packet packet;
    packet.Put(address_.channel);
    packet.Put(posted_++);
    write(packet.Room(message_));
    tickets_.push_back(peers_->post()->Begin(to_, address_.kind, packet.Take()));
  }
  std::byte* Place(uint32_t number) const { return places_ + number % slots_ * stride_; }

  SharedWindow* peers_;
  int from_, to_;
  uint32_t slots_;
  size_t message_, stride_;
  Board* board_;
  std::byte* places_;
  Address address_;
  int64_t posted_ = 0;            // The number of the next message to post.
  std::deque<uint64_t> tickets_;  // of messages that were posted
};

}  // namespace trainer
