#pragma once
// The control block of a node: shared memory with the status of each of its ranks, their eager
// buffers and the first failure.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "node/shared_segment.h"
#include "trainer/parallel/failure.h"

namespace trainer {

enum class RankState : uint32_t { kStarting, kJoined, kFinished };

// The status of one rank. Only that rank writes it, except the doorbell, `reported` and, before it
// joins, `process` and `rank`. Each cache line has one kind of reader.
struct RankStatus {
  // The number of all-reduce phases that the rank has completed; wraps around. All ranks run the
  // same phases, so the number says where a rank is.
  alignas(64) std::atomic<uint32_t> phase;
  std::atomic<uint32_t> sleeping;  // whether the rank sleeps on its doorbell
  alignas(64) std::atomic<uint32_t> doorbell;
  alignas(64) std::atomic<RankState> state;
  std::atomic<int32_t> process;
  std::atomic<uint32_t> is_async;          // whether the other ranks continue if this one dies
  std::atomic<int32_t> rank;               // among all ranks of the run
  std::atomic<int32_t> iterations;         // completed iterations
  std::atomic<uint32_t> progress;          // changes as long as the rank makes any progress
  std::atomic<int64_t> waiting_since;      // MonotonicNs(); 0: it waits for no rank of this node
  std::atomic<int64_t> remote_wait_since;  // the same, for remote_wait_rank on another node
  std::atomic<int32_t> remote_wait_rank;
  std::atomic<uint32_t> reported;  // phase + 1 when a silence of this rank was last reported
  std::atomic<int32_t> memory_fd;  // of the shared memory that is being allocated
  std::atomic<uint64_t> memory_bytes;
  std::atomic<uint64_t> cores[16];  // one bit per CPU on which the rank may run
};

// The first failure of a rank.
struct Failure {
  int code = 0;  // the exit code of all ranks; 0: no failure
  int rank = 0;
};

// Ranks are numbered by local rank, from 0 to local_size() - 1.
class ControlBlock {
 public:
  static constexpr size_t kEagerBuffer = 8192;  // floats
  // Returns the size of the shared memory for a number of ranks.
  static size_t Bytes(int local_size);

  // Uses `memory` of Bytes(local_size) bytes, which the first of the ranks gets as zeros.
  ControlBlock(SharedSegment memory, int local_size);

  int local_size() const { return local_size_; }
  RankStatus& status(int local) const { return statuses_[local]; }
  // The eager buffers of small all-reduces. Each rank has two and uses them in turn. The pair of
  // index local_size() holds results.
  float* eager_buffer(int local, int turn) const {
    return eager_buffers_ + static_cast<size_t>(local * 2 + turn) * kEagerBuffer;
  }
  // Returns the descriptor by which other processes map the memory; -1 after CloseDescriptor.
  int fd() const { return memory_.fd(); }
  // Closes it. Called when all ranks of the node have mapped the memory.
  void CloseDescriptor() { memory_.CloseDescriptor(); }

  // Returns the first failure; its code is 0 if there is none.
  Failure failure() const;
  bool HasFailed() const { return failure_->load(std::memory_order_relaxed) != 0; }
  // Throws PeerFailed if a rank has reported a failure.
  void ThrowIfFailed() const {
    if (HasFailed()) throw PeerFailed(failure().code);
  }
  // Records a failure unless there is one already, and wakes all ranks. Returns whether it is the
  // first one.
  bool ReportFailure(const Failure& failure) const;
  // Returns the word that is 0 until a failure is recorded; threads sleep on it with FutexWait.
  std::atomic<uint32_t>& failure_word() const { return *failure_; }
  // Rings the doorbell of a rank, which wakes it if it sleeps.
  void Notify(int local) const;

 private:
  SharedSegment memory_;
  int local_size_;
  std::atomic<uint32_t>* failure_;
  RankStatus* statuses_;
  float* eager_buffers_;
};

}  // namespace trainer
