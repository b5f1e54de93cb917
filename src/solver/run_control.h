#pragma once
// Decides when a run stops or saves: by signals, by its deadline, by snapshot_every, and because
// data can no longer be read.

#include <chrono>
#include <optional>
#include <string>

#include "deadline_reserve.h"
#include "solver_context.h"
#include "trainer/checkpoint/snapshot_writer.h"
#include "trainer/net/net.h"
#include "trainer/solver/solver.h"

namespace trainer {

// Used by the training thread. Ranks that synchronise agree on what any of them requests.
class RunControl {
 public:
  // `run` must outlive the object.
  RunControl(const SolverContext& run, const SolverOptions& options);

  // Called once, when the size of a snapshot is known. `writer` is the writer for which the run
  // must leave time, null on ranks other than 0; it must outlive the object.
  void PlanSnapshots(uint64_t bytes, const SnapshotWriter* writer);
  // Called when iterations begin.
  void Begin();

  // Returns this rank's request: from signals and lost input, and on rank 0 also from the deadline
  // and snapshot_every.
  Request Local(bool in_test);
  // Returns the strongest request of all ranks; `own` is this rank's. Collective.
  Request Agree(Request own);
  // Called after each step with the time since the step before. Returns what the ranks request if
  // they synchronise now, else kNone.
  Request AfterStep(double seconds);

  // Returns whether this rank was asked to stop, or has no time left.
  bool StopWasAsked() const;
  // Returns whether a single rank should stop at once. Several ranks stop only after a step in
  // which they have agreed on it.
  bool ShouldStop() const { return run_.group == nullptr && StopWasAsked(); }
  bool TimeWasUp() const { return time_was_up_; }

  // Returns whether the batches of the next `passes` passes can be read. If they cannot, this rank
  // requests a stop from now on, because all ranks can save between two steps but not within one.
  bool WaitForInput(const Net& net, int passes);
  bool HasLostInput() const { return !input_error_.empty(); }
  // Throws kIo if data could not be read and nothing else stopped the run. `saved_iter` is the
  // iteration of the last snapshot, or -1.
  void ThrowInputError(int saved_iter) const;

  // Called when a snapshot begins: snapshot_every counts from now on.
  void NoteSnapshot() { last_snapshot_ = std::chrono::steady_clock::now(); }
  DeadlineReserve& reserve() { return reserve_; }
  // Returns when this process got SIGTERM.
  std::optional<std::chrono::steady_clock::time_point> TermTime() const;

 private:
  bool IsSnapshotDue() const;

  const SolverContext& run_;
  SignalWatch* const signals_;
  const std::optional<std::chrono::steady_clock::time_point> end_;  // on rank 0
  DeadlineReserve reserve_{end_, 0};
  const SnapshotWriter* writer_ = nullptr;
  std::optional<std::chrono::seconds> snapshot_every_;   // on rank 0
  std::chrono::steady_clock::time_point last_snapshot_;  // or the start
  double unmet_seconds_ = 0;                             // since the last synchronisation point
  bool time_was_up_ = false;
  std::string input_error_;
};

}  // namespace trainer
