#pragma once
// A shared array of weights and optimizer state, which ranks acquire, change and commit.

#include <atomic>
#include <span>
#include <vector>

#include "flat_state.h"
#include "robust_mutex.h"
#include "trainer/base/ranks/shared_window.h"

namespace trainer {

// Stored in the memory of one node, in blocks with a mutex each. A rank of another node has a copy
// of the last values that it acquired or read.
class SharedArray {
 public:
  // Stores the array on the node of rank `owner`. The constructor is collective; the array starts
  // as the ranks' states, which are equal. The arguments must outlive the object.
  SharedArray(const StrategyContext& context, const FlatState& numbers, int owner, int blocks);

  // Returns whether the array is on this rank's node.
  bool is_local() const { return is_local_; }
  // Returns the array, or on other nodes the copy.
  std::span<float> floats() const { return floats_; }
  RobustMutex& lock(int block) const { return locks_[block]; }

  // Returns the number of updates; on other nodes, as of the last call of Acquire, Commit or Read.
  int64_t version() const { return *version_; }
  // Counts an update that changed the array directly. Only on the array's node.
  void NoteUpdate() { ++*version_; }

  // Locks all blocks until Commit or Release and copies them to this rank's own state. Works block
  // by block, so another rank can acquire the first block while the last one is being committed.
  void Acquire();
  // Copies this rank's own state to the array, unlocks it and returns the new version.
  int64_t Commit();
  // Unlocks all blocks and leaves the array as it was.
  void Release();
  // Copies the acquired values to this rank's own state again, which undoes its update.
  void Rollback() { state_.Write(floats_); }

  // Called on other nodes: updates the version and the first `count` numbers of the copy.
  void Read(size_t count);

 private:
  // Calls use(block, begin, end) for the range of each block.
  template <class Use>
  void VisitBlocks(const Use& use) const;
  // Registers the calls by which ranks of other nodes acquire, commit or release, and read blocks.
  void RegisterMethods();
  void AcquireRemote(int block, size_t begin, size_t end);
  // Unlocks a block of another node; if `stores`, first stores this rank's own state in it.
  void SendBlock(int block, size_t begin, size_t end, bool stores);

  SharedWindow& window_;
  const FlatState& state_;
  int rank_, owner_, blocks_;
  bool is_local_;
  std::atomic<int64_t>* version_;
  RobustMutex* locks_;
  std::span<float> floats_;
  std::vector<float> copy_;
  int acquire_method_ = 0, commit_method_ = 0, read_method_ = 0;  // methods of calls
};

}  // namespace trainer
