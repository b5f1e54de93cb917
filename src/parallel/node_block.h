#pragma once
// What the ranks of one machine tell each other: one block of shared memory.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared_memory.h"

namespace trainer {

enum class RankState : uint32_t { kStarting, kJoined, kFinished };

// One rank's part. It alone writes, but for the bell; each line of the cache has one kind of
// reader.
struct RankSlot {
  // How many stages of sums the rank has gone through. All ranks go through the same ones, so that
  // a number tells where a rank is; it wraps around.
  alignas(64) std::atomic<uint32_t> posted;
  std::atomic<uint32_t> sleeping;  // on its bell
  alignas(64) std::atomic<uint32_t> bell;
  alignas(64) std::atomic<RankState> state;
  std::atomic<int32_t> process;
  std::atomic<uint32_t> apart;         // the others go on when it dies
  std::atomic<int32_t> rank;           // of all machines
  std::atomic<int32_t> iterations;     // done
  std::atomic<uint32_t> progress;      // changes while the rank does anything
  std::atomic<int64_t> waiting_since;  // MonotonicNs(); 0: it does not wait for this machine
  std::atomic<int64_t> link_since;     // the same for another machine's rank, which is link_rank
  std::atomic<int32_t> link_rank;
  std::atomic<uint32_t> reported;  // posted + 1 when its silence was last reported
  std::atomic<int32_t> memory_fd;  // of the block of gradients that is being allocated
  std::atomic<uint64_t> memory_bytes;
  std::atomic<uint64_t> cores[16];  // the CPUs that it may run on
};

// Who was the first to fail.
struct Failure {
  int code = 0;  // the exit code of all; 0: nobody failed
  int rank = 0;
};

// The block. Ranks are counted here from 0 to locals - 1.
class NodeBlock {
 public:
  static constexpr size_t kMailbox = 8192;  // floats
  static size_t Bytes(int locals);

  NodeBlock(SharedMemory memory, int locals);

  int locals() const { return locals_; }
  RankSlot& slot(int local) const { return slots_[local]; }
  // Small sums go through these, by turns through the first and the second of a rank. That of
  // number `locals` has results.
  float* mailbox(int local, int turn) const {
    return mailboxes_ + static_cast<size_t>(local * 2 + turn) * kMailbox;
  }
  int fd() const { return memory_.fd(); }
  void CloseDescriptor() { memory_.CloseDescriptor(); }

  Failure failure() const;
  // Whether this was the first failure; wakes all ranks up.
  bool Claim(const Failure& failure) const;
  std::atomic<uint32_t>& failure_word() const { return *failure_; }
  // Wakes a rank that sleeps.
  void Ring(int local) const;

 private:
  SharedMemory memory_;
  int locals_;
  std::atomic<uint32_t>* failure_;
  RankSlot* slots_;
  float* mailboxes_;
};

}  // namespace trainer
