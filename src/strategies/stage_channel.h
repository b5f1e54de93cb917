#pragma once
// Messages of one size that go one way from one rank to another, through memory that both share.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trainer/base/peer_memory.h"

namespace trainer {

// Holds `slots` messages that were sent and not taken yet. Used by one thread on each side.
class StageChannel {
 public:
  // Bytes of shared memory that one takes, zeros at first.
  static size_t Bytes(size_t message, int slots);

  // `memory` is the same block on both sides; all must outlive the object.
  StageChannel(std::byte* memory, size_t message, int slots, int from, int to, PeerMemory& peers);

  size_t message() const { return message_; }

  // Waits for a free slot; write(place) puts `message` bytes there.
  template <class Write>
  void Send(const Write& write) const {
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
    peers_->Ring(from_);
  }

 private:
  struct Board {
    alignas(64) std::atomic<uint32_t> sent;
    alignas(64) std::atomic<uint32_t> taken;
  };
  std::byte* Place(uint32_t number) const { return places_ + number % slots_ * stride_; }

  PeerMemory* peers_;
  int from_, to_;
  uint32_t slots_;
  size_t message_, stride_;
  Board* board_;
  std::byte* places_;
};

}  // namespace trainer
