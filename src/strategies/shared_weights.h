#pragma once
// Weights and the rule's state, which ranks take and bring back changed.

#include <atomic>
#include <span>
#include <vector>

#include "rank_numbers.h"
#include "shared_lock.h"
#include "trainer/base/ranks/shared_window.h"

namespace trainer {

// They lie in the memory of one machine, in parts with a lock each. Ranks of other machines have a
// copy of what they have taken.
class SharedWeights {
 public:
  // In the memory of the machine of rank `owner`. All ranks make one at the same point, with equal
  // numbers, which it begins with. The arguments must outlive it.
  SharedWeights(const StrategySeat& seat, const RankNumbers& numbers, int owner, int parts);

  // Whether this is the machine.
  bool is_here() const { return here_; }
  // All numbers: here the shared ones, else what was taken last.
  std::span<float> floats() const { return floats_; }
  SharedLock& lock(int part) const { return locks_[part]; }

  // Updates so far, as known here; elsewhere as of the last call of Take, Store or Look.
  int64_t version() const { return *version_; }
  void NoteUpdate() { ++*version_; }  // here

  // All parts become this rank's until Store or Release, and its own numbers become those. Part by
  // part, so that another rank may take the first while the last is being stored.
  void Take();
  // This rank's own numbers become the shared ones, of a new version, which it returns.
  int64_t Store();
  void Release();
  // What was taken becomes this rank's own again.
  void Reload() { numbers_.Write(floats_); }

  // Elsewhere: brings the version and the first `count` numbers up to date.
  void Look(size_t count);

 private:
  template <class Use>
  void VisitParts(const Use& use) const;
  void ServeOthers();
  void TakeFromThere(int part, size_t begin, size_t end);
  void Give(int part, size_t begin, size_t end, bool stores);

  SharedWindow& peers_;
  const RankNumbers& numbers_;
  int rank_, owner_, parts_;
  bool here_;
  std::atomic<int64_t>* version_;
  SharedLock* locks_;
  std::span<float> floats_;
  std::vector<float> copy_;
  int take_ = 0, give_ = 0, look_ = 0;  // kinds of questions
};

}  // namespace trainer
