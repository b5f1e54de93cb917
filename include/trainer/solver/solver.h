#pragma once
// The training loop: nets, schedules, tests, snapshots. What a step does is its step rule's
// (trainer/steps).

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/solver_state.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"
#include "trainer/observe/observer.h"
#include "trainer/solver/signals.h"
#include "trainer/solver/weight_average.h"
#include "trainer/steps/step_rule.h"

namespace trainer {

struct TrainOptions {
  std::string snapshot;              // a .solverstate to go on from, or ""
  bool allow_outside = false;        // take the snapshot's weights from another folder
  std::vector<std::string> weights;  // .caffemodel files to start from, in this order
  MemoryMode memory = MemoryMode::kShared;
  SignalWatch* signals = nullptr;  // null: signals are not looked at
  // false: the run writes no file: no snapshot, whose folder is left alone, and nothing of layers.
  bool saves = true;
  // How this replica reaches those that train the same model; null: the run is alone. Each replica
  // makes a solver with the same files and options, and calls it alike. Gradients are those of the
  // solver's device: for one that RunsLater, the group takes them from its memory (gpu_group.h).
  ReplicaGroup* group = nullptr;
  // Called by each replica before a snapshot, while no sum is under way: what a resumed run would
  // not have, this one must not have from here on either.
  std::function<void()> before_snapshot;
};

// The rank and number of replicas that the options tell.
Replica ReplicaOf(const TrainOptions& options);

// Whether a run of this solver writes snapshots of itself, without a signal that asks for one.
bool SavesSnapshots(const caffe::SolverParameter& solver);

// Throws kCannotCreate when the files of the last snapshot would have longer names than their
// folder takes.
void CheckSnapshotPaths(const caffe::SolverParameter& solver);

enum class SolveResult { kFinished, kStopped };

// Used by one thread. Everything is allocated by the constructor; an iteration allocates nothing.
//
// Of several replicas rank 0 alone has test nets and averaged weights, writes files and reports
// more than errors; see src/README.md, "Replicas".
class Solver {
 public:
  // Builds the training net and the test nets; restores the snapshot or copies the weights; checks
  // that snapshots can be written. `spec`, `device` and `observer` must outlive the solver.
  // Throws kConfig, kData, kBadSnapshot, kCannotCreate, ... naming the file or the line.
  Solver(const SolverSpec& spec, const TrainOptions& options, const Device& device,
         Observer& observer);
  ~Solver();

  // Runs from the current iteration to max_iter, with tests, reports and snapshots on the way. A
  // snapshot on the way that cannot be written is a warning, the last one's error is thrown; throws
  // kDiverged before the update when the loss is not finite or, in iterations that are
  // reported, a weight; where the loss is taken late, before the next update and before any test or
  // snapshot.
  SolveResult Solve();

  // One iteration: a step of the step rule. Returns the loss that it started from.
  float Step();
  // The same as Solve does it. Where the device runs later and nobody asks for the loss now (it is
  // not reported, no other replica needs it, the step rule does not), nothing waits for it: it is
  // taken, checked and averaged in the next iteration, before that one's update, or by CatchUp.
  void StepAhead();
  // Takes the loss of the last iteration where that was not done yet. Throws what the iteration
  // would have thrown.
  void CatchUp();

  // Catches up, writes a snapshot of the current iteration and returns the model's path; on other
  // ranks than 0 hands rank 0 what it needs and returns "". Throws kIo and leaves older snapshots
  // as they are; throws kDiverged rather than save weights that are not finite.
  std::string Snapshot();

  int iter() const { return state_.iter; }
  // The least that the update moves between memory and the processor.
  size_t UpdateBytes() const { return rule_->Bytes(); }
  Net& train_net() { return *train_net_; }
  Net& test_net(int i) { return *test_nets_[static_cast<size_t>(i)]; }
  // Of a snapshot's numbers: weights, averaged weights and the rule's state.
  uint64_t SnapshotBytes() const;
  int NumTestNets() const { return static_cast<int>(test_nets_.size()); }

 private:
  // What changes from iteration to iteration and is neither weights nor rule state.
  struct Progress {
    int iter = 0;
    int current_step = 0;
    float smoothed_loss = 0;
    std::vector<float> recent_losses;  // the window of average_loss
    size_t loss_position = 0;
  };
  class Clock;
  class Frame;

  NetOptions CommonOptions(const TrainOptions& options) const;
  void BuildTrainNet(const TrainOptions& options);
  void BuildTestNets(const TrainOptions& options);
  void LoadWeights(const std::vector<std::string>& files);
  void ShareWeights();
  void RequireEqualWeights(uint32_t own_hash);
  void Restore(const LoadedState& loaded, const std::string& file);
  std::vector<std::string> StateDifferences(const caffe::SolverState& state) const;
  void CopyAll(const std::string& weights, const std::string& file,
               std::vector<std::string> differences);
  void RestoreHistory(const caffe::SolverState& state, const std::string& file);
  void RestoreProgress(const caffe::SolverState& state);
  caffe::SolverState StateProto() const;
  void SaveNet(const std::string& name, const Net& net, caffe::SolverState& state) const;
  void RestoreNet(const caffe::SolverState& state, const std::string& name, Net& net) const;
  void CheckSnapshotForm() const;
  void CheckSnapshotFolder() const;

  void RunStep(bool ahead);
  UpdateRates BeginStep(float loss);
  UpdateRates BeginStartedStep();
  UpdateRates NextRates();
  void AddLoss(float loss);
  float SmoothLoss(float loss);
  void Report(float rate);
  [[noreturn]] void Diverge(int iter, float loss, const std::string& where);
  bool TestAll();
  bool RunTest(int index);
  std::vector<ReportedValue> ReadOutputs(const Net& net) const;
  bool WeightsAreFinite();
  std::string FirstNonFiniteParam() const;
  bool TestIsDue() const;
  void TrySnapshot();
  void Finish();
  bool IsDisplayed() const;
  bool StopsNow() const;
  Request PollAll();
  bool OfRank0(bool value);

  const SolverSpec& spec_;
  const caffe::SolverParameter& proto_;
  const Device& device_;
  Observer& observer_;
  SignalWatch* signals_;
  ReplicaGroup* group_;  // null for a run alone
  std::function<void()> before_snapshot_;
  Replica replica_;
  ParamStore params_;
  std::unique_ptr<Net> train_net_;
  std::vector<std::unique_ptr<Net>> test_nets_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<StepRule> rule_;
  std::unique_ptr<WeightAverage> average_;  // null without ema_decay
  uint64_t seed_ = 0;
  Progress state_;
  bool ahead_ = false;              // whether this step may leave its loss for later
  std::optional<int> unread_iter_;  // the iteration whose loss is started and not taken
  float last_loss_ = 0;             // that was taken
  int saved_iter_ = -1;             // of the last snapshot written or restored
  std::unique_ptr<Clock> clock_;
};

}  // namespace trainer
