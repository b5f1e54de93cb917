#pragma once
// Decides when a run writes its snapshots, and checks early what could prevent it.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "reporter.h"
#include "snapshot_retention.h"
#include "trainer/checkpoint/snapshot_writer.h"

namespace trainer {

// Returns the names of the files of the snapshot of iteration `iter`.
SnapshotNames SnapshotNamesAt(const caffe::SolverParameter& solver, int iter);

// Used by the training thread. Ranks that synchronise call Start, NeedsLast and AwaitLast together.
class SnapshotManager {
 public:
  // The arguments other than `options` must outlive the object. Throws kConfig if best_output does
  // not fit keep_best.
  SnapshotManager(SolverContext& run, TrainingModel& model, Tester& tester, RunControl& control,
                  Reporter& reporter, const SolverOptions& options);

  // Restores the run from a snapshot. `file` is its name in messages.
  void Restore(const LoadedState& loaded, const std::string& file);
  // Plans the time for snapshots and checks that the run can write them, if it will save any.
  // Called once, when the strategy is prepared.
  void Prepare(const SolverOptions& options);

  // Returns whether this rank takes part in a snapshot at this iteration.
  bool IsDue() const { return run_.IsDue(run_.proto.snapshot()) && run_.TestsAndSaves(); }
  // Copies a snapshot, which the writer then writes. Waits for the snapshot before. The loss of the
  // last step must be taken. Returns the model's path, or "" on ranks other than 0 and in a run
  // that writes no files.
  std::string Start();
  // Reports a snapshot that was written since the last call. Throws a failure whose cause is not
  // the disk.
  void NoteWritten();
  // Returns when every snapshot that was begun is on the disk; throws if that fails.
  void Await();
  // Called before another error ends the run: waits until a snapshot that is being written is on
  // the disk and reports it. Does not throw the writer's own failure.
  void Settle();

  // Returns whether the run must Start a snapshot before it ends.
  bool NeedsLast(bool stopped) const;
  // Returns when every snapshot of the run is on the disk. The last one has no successor, so it is
  // retried and finally written to another folder.
  void AwaitLast();

  // Null on ranks other than 0.
  SnapshotRetention* retention() { return retention_.get(); }
  // Returns the iteration of the last snapshot on the disk, or -1.
  int saved_iter() const { return saved_iter_; }
  // Returns the bytes of a snapshot's numbers, with the strategy's state of each rank.
  uint64_t Bytes() const;
  // Returns a sentence about the best test and its snapshot; "" if there is none.
  std::string DescribeBest() const;

 private:
  void CheckForm() const;
  void CopyTo(SnapshotContent* content);
  void ReportWritten();
  void LimitLast();

  SolverContext& run_;
  TrainingModel& model_;
  Tester& tester_;
  RunControl& control_;
  Reporter& reporter_;
  const std::function<void()> on_snapshot_;
  const SolverOptions::Rescue rescue_;
  bool saves_ = true;                                 // the run writes files
  int saved_iter_ = -1;                               // of the last snapshot on the disk
  int started_iter_ = -1;                             // of the last one begun or restored
  SnapshotReport started_;                            // the last snapshot that was begun
  double copy_seconds_ = 0;                           // for copying that snapshot
  int noted_ = 0;                                     // snapshots that were written and reported
  bool folder_was_writable_ = false;                  // when the run began
  std::optional<SolverOptions::KillWait> kill_wait_;  // set once rescue_.kill_wait was called
  std::chrono::steady_clock::time_point last_begun_;  // when LimitLast was first called
  std::unique_ptr<SnapshotRetention> retention_;
  std::unique_ptr<SnapshotWriter> writer_;  // on rank 0; calls retention_ after a write
};

}  // namespace trainer
