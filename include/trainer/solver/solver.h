#pragma once
// The training loop with its nets, schedules, tests and snapshots. The optimizer (trainer/optim)
// defines what a step does.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/solver_state.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/observer.h"
#include "trainer/net/net.h"
#include "trainer/solver/signals.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

struct SolverContext;
struct TrainingModel;

struct SolverOptions {
  // How long the batch system lets a process live after SIGTERM; 0 s if unknown.
  struct KillWait {
    std::chrono::seconds time{0};
    std::string reason;  // "Slurm kills the job 30 s after SIGTERM (KillWait)"
  };

  // Says what to do if the last snapshot cannot be written to its folder.
  struct Rescue {
    std::vector<std::string> folders;  // the snapshot is written to the first that is writable
    // Returns the command that resumes from `state`.
    std::function<std::string(const std::string& state)> resume_command = [](const auto& state) {
      return "--snapshot=" + state;
    };
    std::function<KillWait()> kill_wait;  // called once, after SIGTERM; null: unknown
    // How long to retry the usual folder first, if the time at which the run must end is unknown.
    std::chrono::milliseconds patience = std::chrono::minutes(1);
  };

  std::string snapshot;              // a .solverstate to resume from, or ""
  bool allow_outside = false;        // the snapshot's weights may be in another folder
  std::vector<std::string> weights;  // .caffemodel files to start from, in this order
  std::vector<std::string> reset;    // layers that do not start from them: names or NamePatterns
  BufferReuse memory = BufferReuse::kShared;
  size_t activation_budget_bytes = 0;  // for the training net: see NetOptions
  SignalWatch* signals = nullptr;      // null: signals are ignored
  // When the run must end. It saves and stops in time, as after a signal. Rank 0's value is used.
  std::optional<std::chrono::steady_clock::time_point> end;
  // The first and the longest pause before the run retries a snapshot that could not be written.
  std::chrono::milliseconds first_retry = std::chrono::seconds(10);
  std::chrono::milliseconds longest_retry = std::chrono::minutes(5);
  Rescue rescue;
  // If false, the run writes no files: no snapshots and no files of layers.
  bool saves = true;
  // If false, layers write no files of their own.
  bool layer_files = true;
  // Called after each step with the iteration and the loss averaged over average_loss iterations.
  // If it returns true, the run ends as if that was the last iteration. Must return the same on all
  // ranks. Null: only max_iter ends the run.
  std::function<bool(int iter, float loss)> ends;
  // If above 0: Solve ends at this iteration with a snapshot, and with a test as at the end of a
  // run. Schedules still end at max_iter. A run that resumes from the snapshot is bit for bit the
  // run that did not end there.
  int until = 0;
  // Test the final weights even if max_iter is not a multiple of test_interval.
  bool test_at_end = true;
  // Show weights, gradients and images to the observers (OnParam, OnBatch); copies them whenever a
  // test is due. Must be the same on all ranks.
  bool shows_numbers = false;
  // The communicator of the ranks that train the same model; null with one rank. Each rank makes a
  // solver with the same files and options and makes the same calls. Gradients are in the memory of
  // the solver's device, so a GPU needs its own communicator (gpu_communicator.h).
  Communicator* group = nullptr;
  // The memory that the ranks share, for strategies that need it; null if there is none.
  SharedWindow* window = nullptr;
  // Called by each rank before a snapshot, while no all-reduce is in progress. Resets the state
  // that a resumed run would not have, so that the run and a resumed one continue alike.
  std::function<void()> on_snapshot;
};

// Returns this rank and the number of ranks, from the communicator of the options.
Rank RankOf(const SolverOptions& options);

// Returns whether a run of this solver writes snapshots without a signal that requests one.
bool SavesSnapshots(const caffe::SolverParameter& solver);

// Throws kCannotCreate if the names of the last snapshot's files would be too long for their
// folder.
void CheckSnapshotPaths(const caffe::SolverParameter& solver);

// Whether layers with freeze: true learn in iteration `iter`, because unfreeze_at is reached.
inline bool IsUnfrozen(const caffe::SolverParameter& solver, int iter) {
  return solver.unfreeze_at() > 0 && iter >= solver.unfreeze_at();
}

// kPaused: SolverOptions::until ended the run before its last iteration.
enum class SolveResult { kFinished, kStopped, kPaused };

class RunControl;
class Tester;
class Reporter;
class SnapshotManager;

// Used by one thread. The constructor allocates everything; an iteration allocates nothing.
//
// With several ranks, only rank 0 writes files and reports more than errors; see
// src/parallel/README.md.
class Solver {
 public:
  // Builds the training net and the test nets; restores the snapshot or copies the weights; checks
  // that snapshots can be written. `spec`, `device` and `observer` must outlive the solver.
  // Throws kConfig, kData, kBadSnapshot, kCannotCreate, ... naming the file or the line.
  Solver(const SolverSpec& spec, const SolverOptions& options, const Device& device,
         TrainingObserver& observer);
  ~Solver();

  // Runs from the current iteration to max_iter, with tests, reports and snapshots; ends earlier
  // after a test if `patience` says so, and at SolverOptions::until. Another thread writes the
  // snapshots.
  //
  // A snapshot that cannot be written causes a warning and is tried again. The last one is tried
  // while there is time, then written to a folder of SolverOptions::Rescue, and an error is thrown
  // that says where it is. If the data of the next step or test cannot be read any more (kIo), all
  // ranks save and stop, and that error is thrown unless a stop was requested meanwhile. Throws
  // kDiverged before the update if the loss is not finite or, in iterations that are reported, a
  // weight. If the loss is taken late, it throws before the next update and before any test or
  // snapshot.
  SolveResult Solve();

  // Runs one iteration, which is one step of the optimizer. Returns the loss at the weights before
  // the step.
  float Step();
  // Runs one iteration. With `async`, as in Solve, returns without waiting for the loss if the
  // device is asynchronous and nothing needs the loss now (no report, no other rank, no optimizer).
  // The next iteration, before its update, or Synchronize then takes, checks and averages it.
  void RunStep(bool async);
  // Takes the loss of the last iteration unless that is already done. Throws what that iteration
  // would have thrown.
  void Synchronize();

  // Synchronizes, writes a snapshot of the current iteration, waits until it is on the disk and
  // returns the model's path. Collective: the other ranks send rank 0 what it needs and return "".
  // Throws kIo, in which case older snapshots are kept, and kDiverged instead of saving weights
  // that are not finite.
  std::string Snapshot();
  // Does the same without waiting for the disk: returns when the snapshot is copied. The copy
  // begins when the snapshot before is on the disk.
  std::string StartSnapshot();

  // Returns a sentence about the best test so far and the file of its weights; "" if there is none,
  // and on ranks other than 0.
  std::string DescribeBest() const;

  // Returns whether the run stopped because SolverOptions::end was near.
  bool TimeWasUp() const;

  int iter() const;
  // Returns the smallest number of bytes that an update moves between memory and the processor.
  size_t UpdateBytes() const;
  Net& train_net();
  // Returns the test nets that this rank has: rank 0 has all, other ranks only those whose batches
  // all ranks share, or their own stage of each. The net for the last, smaller batch of a test that
  // is exactly one pass over the data follows the one for whole batches.
  std::vector<const Net*> TestNets() const;
  Net& test_net(int i);
  // Returns the bytes of a snapshot's numbers: weights, averaged weights and optimizer state.
  uint64_t SnapshotBytes() const;

 private:
  void BeginStrategy(const SolverOptions& options, const LoadedState* loaded);
  void LoadRank(const caffe::SolverState& state);
  void Unfreeze();
  void FinishIteration();
  [[noreturn]] void Diverge(int iter, float loss, const std::string& cause);
  bool Test();
  bool EndsEarly();
  int LastIter() const;
  void Finish();

  const SolverOptions options_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<SolverContext> run_;
  std::unique_ptr<RunControl> control_;
  // Set with several ranks; strategy_ refers to it.
  std::optional<StrategyContext> strategy_context_;
  // Unregisters the handlers before the strategy is destroyed, because they use its memory.
  struct UnregisterHandlers {
    void operator()(Rpc* rpc) const { rpc->Unregister(); }
  };
  std::unique_ptr<Rpc, UnregisterHandlers> rpc_;
  std::unique_ptr<TrainingModel> model_;
  std::unique_ptr<Tester> tester_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<SnapshotManager> snapshots_;
  std::optional<int> pending_iter_;  // the iteration whose loss was not taken yet
};

}  // namespace trainer
