#pragma once
// An array of floats that ranks share, such as weights and optimizer state.

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "flat_state.h"
#include "robust_mutex.h"
#include "trainer/base/ranks/rpc.h"
#include "trainer/base/ranks/shared_window.h"

namespace trainer {

// Stored in the memory of one node, in blocks of equal size with a mutex each. Ranks of that node
// use it in memory, ranks of other nodes by remote calls. No call sees a block half changed.
class SharedArray {
 public:
  // Changes the numbers of the array and the values that a rank gave for them.
  using Merger = std::function<void(std::span<float> array, std::span<float> values)>;

  // Stores `size` zeros on the node of rank `owner`. `merge` is what Merge does there. The
  // constructor is collective. `window` must outlive the object.
  SharedArray(SharedWindow& window, int rank, int owner, size_t size, int blocks,
              Merger merge = nullptr);

  // Returns whether the array is on this rank's node.
  bool is_local() const { return is_local_; }
  // Returns the array; on other nodes the copy that Acquire made.
  std::span<float> floats() const { return floats_; }
  RobustMutex& lock(int block) const { return locks_[block]; }

  // Returns the number of updates; on other nodes, as of the last call of Acquire, Commit or Read.
  int64_t version() const { return *version_; }
  // Counts an update that changed the array directly. Only on the array's node.
  void NoteUpdate() { ++*version_; }

  // Copies the first values.size() numbers.
  void Read(std::span<float> values);
  // Copies a rank's state to a block, which is as long.
  void Store(int block, const FlatState& state);
  // Calls the constructor's `merge` for the ranges of all blocks, on the array's node.
  void Merge(std::span<float> values);

  // Locks all blocks until Commit or Release and copies them to `state`. Works block by block, so
  // another rank can acquire the first block while the last one is being committed.
  void Acquire(const FlatState& state);
  // Copies `state` to the array, unlocks it and returns the new version.
  int64_t Commit(const FlatState& state);
  // Unlocks all blocks and leaves the array as it was.
  void Release();

 private:
  enum class Action : int32_t { kRead, kStore, kAcquire, kCommit, kRelease, kMerge };
  // Precedes each message: a range of the array. The block's first message locks it and its last
  // one unlocks it, as `action` says.
  struct Part {
    Action action;
    int32_t block, is_first, is_last;
    int64_t begin, end;
  };

  // Returns the index of a block's first number.
  size_t BeginOf(int block) const {
    return size_ * static_cast<size_t>(block) / static_cast<size_t>(blocks_);
  }
  // Calls use(block, begin, end) for the range of each block.
  template <class Use>
  void VisitBlocks(const Use& use) const;
  // Calls the owner for each part of a block's range that fits into one message. fill(message,
  // begin, count) appends what is sent with it, and use(floats, begin) takes the reply.
  template <class Fill, class Use>
  void Send(Action action, int block, size_t begin, size_t end, const Fill& fill, const Use& use);
  bool Answer(int from, std::span<const std::byte> request, Rpc::Bytes* reply);
  void MergeHere(size_t first, std::span<float> values);

  SharedWindow& window_;
  int rank_, owner_, blocks_;
  size_t size_;
  bool is_local_;
  Merger merge_;
  std::atomic<int64_t> seen_version_{0};  // version_ on other nodes
  std::atomic<int64_t>* version_ = &seen_version_;
  RobustMutex* locks_ = nullptr;  // null on other nodes
  std::span<float> floats_;
  std::vector<float> copy_;
  int method_ = 0;  // the RPC method of all calls
};

}  // namespace trainer
