#pragma once
// The training loop: nets, schedules, tests, snapshots. What a step does is its step rule's
// (trainer/steps).

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
#include "trainer/net/test_nets.h"
#include "trainer/solver/signals.h"
#include "trainer/solver/weight_average.h"
#include "trainer/steps/step_rule.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

struct BatchParts;
struct SnapshotContent;
class ReplicaTimes;

// How long the batch system lets a process live after a SIGTERM; 0 s where that is not known.
struct KillWait {
  std::chrono::seconds time{0};
  std::string reason;  // "Slurm kills the job 30 s after SIGTERM (KillWait)"
};

// What is done where the folder of snapshots refuses the last one.
struct RescueOptions {
  std::vector<std::string> folders;  // where it is written instead: the first that can be
  // The command that resumes from a state.
  std::function<std::string(const std::string& state)> resume_command = [](const auto& state) {
    return "--snapshot=" + state;
  };
  std::function<KillWait()> kill_wait;  // asked once, after a SIGTERM; null: not known
  // How long it is tried before, where nobody knows when the run must be over.
  std::chrono::milliseconds patience = std::chrono::minutes(1);
};

struct TrainOptions {
  std::string snapshot;              // a .solverstate to go on from, or ""
  bool allow_outside = false;        // take the snapshot's weights from another folder
  std::vector<std::string> weights;  // .caffemodel files to start from, in this order
  BufferReuse memory = BufferReuse::kShared;
  size_t activation_budget_bytes = 0;  // of the training net: see NetOptions
  SignalWatch* signals = nullptr;      // null: signals are not looked at
  // When the run must be over: it saves and stops in time, as for a signal. Rank 0's counts.
  std::optional<std::chrono::steady_clock::time_point> end;
  // Before a snapshot that could not be written is tried again, at first and at most.
  std::chrono::milliseconds first_retry = std::chrono::seconds(10);
  std::chrono::milliseconds longest_retry = std::chrono::minutes(5);
  RescueOptions rescue;
  // false: the run writes no file: no snapshot, whose folder is left alone, and nothing of layers.
  bool saves = true;
  // The run tests its final weights even if max_iter is not a multiple of test_interval.
  bool test_at_end = true;
  // Weights, gradients and images are shown to the observers (OnParam, OnBatch), which costs copies
  // of them whenever a test is due. The same for all replicas.
  bool shows_numbers = false;
  // How this replica reaches those that train the same model; null: the run is alone. Each replica
  // makes a solver with the same files and options, and calls it alike. Gradients are those of the
  // solver's device: for one that IsAsync, the group takes them from its memory (gpu_group.h).
  Communicator* group = nullptr;
  // What the replicas share beside it, for strategies that need it; null: nothing.
  SharedWindow* peers = nullptr;
  // Called by each replica before a snapshot, while no sum is under way: what a resumed run would
  // not have, this one must not have from here on either.
  std::function<void()> before_snapshot;
};

// The rank and number of replicas that the options tell.
Rank ReplicaOf(const TrainOptions& options);

// Whether a run of this solver writes snapshots of itself, without a signal that asks for one.
bool SavesSnapshots(const caffe::SolverParameter& solver);

// Throws kCannotCreate when the files of the last snapshot would have longer names than their
// folder takes.
void CheckSnapshotPaths(const caffe::SolverParameter& solver);

enum class SolveResult { kFinished, kStopped };

class KeptSnapshots;
class Patience;
class SnapshotWriter;
class TimeBudget;

// Used by one thread. Everything is allocated by the constructor; an iteration allocates nothing.
//
// With several ranks, only rank 0 writes files and reports more than errors; see
// src/parallel/README.md.
class Solver {
 public:
  // Builds the training net and the test nets; restores the snapshot or copies the weights; checks
  // that snapshots can be written. `spec`, `device` and `observer` must outlive the solver.
  // Throws kConfig, kData, kBadSnapshot, kCannotCreate, ... naming the file or the line.
  Solver(const SolverSpec& spec, const TrainOptions& options, const Device& device,
         TrainingObserver& observer);
  ~Solver();

  // Runs from the current iteration to max_iter, or to a test after which `patience` ends the run,
  // with tests, reports and snapshots on the way, which are written beside the training. Where the
  // data of the next step or test cannot be read any more (kIo), all replicas save and stop, and
  // that error is thrown unless a stop was asked for meanwhile. A snapshot that cannot be written
  // is a warning and tried again; the last one, which is tried while there is time and then goes
  // to a folder of RescueOptions, is thrown as an error that says where it is. Throws kDiverged
  // before the update when the loss is not finite or, in iterations that are reported, a weight;
  // where the loss is taken late, before the next update and before any test or snapshot.
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

  // Catches up, writes a snapshot of the current iteration, waits until it is on the disk and
  // returns the model's path; on other ranks than 0 hands rank 0 what it needs and returns "".
  // Throws kIo and leaves older snapshots as they are; throws kDiverged rather than save weights
  // that are not finite.
  std::string Snapshot();
  // The same without waiting for the disk: returns when a copy is made. The snapshot before must be
  // on the disk for that.
  std::string StartSnapshot();

  // A sentence about the best test so far and the file of its weights; "" where there is none, and
  // on other ranks than 0.
  std::string DescribeBest() const;

  // Whether the run stopped because TrainOptions::end came near.
  bool TimeWasUp() const { return time_was_up_; }

  int iter() const { return state_.iter; }
  // The least that the update moves between memory and the processor.
  size_t UpdateBytes() const { return rule_->Bytes(); }
  Net& train_net() { return *train_net_; }
  // Of several replicas only rank 0 has those that are not shared.
  bool HasTestNet(int i) const { return test_nets_[static_cast<size_t>(i)] != nullptr; }
  Net& test_net(int i) { return *test_nets_[static_cast<size_t>(i)]; }
  // The net of the last, smaller batch of a test that is one exact pass, or null.
  const Net* LastBatchNet(int i) const { return tests_[static_cast<size_t>(i)]->rest(); }
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
  static constexpr int kTrainNet = 0;  // as NetDivision counts nets; test net i is i + 1
  class Clock;
  class Frame;
  class TestRun;

  NetOptions CommonOptions(const TrainOptions& options, int net) const;
  void BuildTrainNet(const TrainOptions& options);
  void BuildTestNets(const TrainOptions& options);
  void BuildTestNet(size_t i, const TrainOptions& options);
  int BatchesOfStages(size_t test, const Net& net) const;
  void NoteTestData(size_t test, const TestNets& nets) const;
  void LoadWeights(const std::vector<std::string>& files);
  void ShareWeights();
  void BeginStrategy(const TrainOptions& options, const LoadedState* loaded);
  void RestoreRank(const caffe::SolverState& state);
  void RankStatesTo(caffe::SolverState* state) const;
  bool IsAttended() const;
  void Advance();
  std::vector<Param*> ParamsOfTests() const;
  void RequireEqualWeights(uint32_t own_hash);
  void Restore(const LoadedState& loaded, const std::string& file);
  std::vector<std::string> StateDifferences(const caffe::SolverState& state) const;
  void CopyAll(const std::string& weights, const std::string& file,
               std::vector<std::string> differences);
  void RestoreHistory(const caffe::SolverState& state, const std::string& file);
  void RestoreProgress(const caffe::SolverState& state);
  void StateTo(caffe::SolverState* proto) const;
  void HistoryTo(caffe::SolverState* state) const;
  void GivePart();
  void CollectParts(SnapshotContent* content);
  caffe::NetParameter OwnPart(caffe::NetParameter model) const;
  int HistoryIndex(size_t kind, size_t param) const;
  size_t WholeParams() const;
  uint64_t WholeWeightBytes() const;
  std::vector<std::string> OutputNames(int net) const;
  Communicator* DataGroup() const;
  void SaveNet(const std::string& name, Net& net, caffe::SolverState& state) const;
  void RestoreNet(const caffe::SolverState& state, const std::string& name, Net& net) const;
  void RestoreRest(const caffe::SolverState& state, const std::string& name, Net& rest) const;
  void CheckSnapshotForm() const;
  void CheckSnapshotFolder() const;

  void RunStep(bool ahead);
  UpdateRates BeginStep(float loss);
  UpdateRates BeginStartedStep();
  UpdateRates NextRates();
  UpdateRates RatesAhead() const;
  void AddLoss(float loss);
  float SmoothLoss(float loss);
  void Report(float rate);
  void Note(const std::string& text);
  [[noreturn]] void Diverge(int iter, float loss, const std::string& cause);
  std::string WhatIsNotFinite();
  void RequireLoss() const;
  void NoteMissingAverages(int index);
  bool TestAll();
  bool RunTest(int index);
  bool PatienceIsOver();
  std::vector<ReportedValue> ReadOutputs(const Net& net, int number) const;
  std::vector<ReportedValue> SumOutputs(std::vector<ReportedValue> values) const;
  std::vector<ReportedValue> LayOutOutputs(const Net& net, int number) const;
  bool WeightsAreFinite();
  std::string FirstNonFiniteParam() const;
  bool TestIsDue() const;
  bool ShowsNumbers() const;
  void ShowNumbers();
  void ShowBatch();
  int64_t RecordsPerIteration() const;
  void PrepareAverage();
  void PrepareSnapshots(const TrainOptions& options);
  void NoteWritten();
  void TakeNoteOfWritten();
  void SettleSnapshot();
  void AwaitSnapshot();
  void AwaitWriter(bool (SnapshotWriter::*wait)(std::chrono::milliseconds time));
  void SaveLast(bool stopped);
  void LimitLast();
  bool SnapshotTimeIsUp() const;
  Request OwnRequest(bool in_test);
  void Finish();
  bool IsDue(int interval) const;
  bool IsDisplayed() const;
  bool StopsNow() const;
  bool StopWasAsked() const;
  bool HasInput(Net& net, int passes);
  void ThrowLostInput() const;
  Request Agree(Request own);
  bool OfRank0(bool value);

  std::unique_ptr<Strategy> strategy_;
  NetDivision* division_;   // of strategy_; null where this rank has whole nets
  const SolverSpec& spec_;  // of this rank's nets
  const caffe::SolverParameter& proto_;
  const Device& device_;
  TrainingObserver& observer_;
  SignalWatch* signals_;
  Communicator* group_;  // null for a run alone, and once ranks go apart
  std::function<void()> before_snapshot_;
  Rank replica_;
  std::optional<StrategySeat> seat_;  // which it refers to, where there are other ranks
  // Before the strategy goes, whose memory answers are about.
  struct ForgetAnswers {
    void operator()(Rpc* post) const { post->Forget(); }
  };
  std::unique_ptr<Rpc, ForgetAnswers> post_;
  std::unique_ptr<BatchParts> parts_;  // of each batch that this replica computes
  ParamStore params_;
  std::unique_ptr<Net> train_net_;
  std::vector<std::unique_ptr<Net>> test_nets_;   // null where rank 0 tests alone, on the others
  std::vector<bool> shared_tests_;                // by test net: its batches are shared
  std::vector<std::unique_ptr<TestNets>> tests_;  // without their nets of whole batches
  std::vector<int> test_batches_;                 // whole ones of a test
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<StepRule> rule_;
  std::unique_ptr<WeightAverage> average_;  // null without ema_decay
  bool update_averages_ = false;            // updates move it
  uint64_t seed_ = 0;
  Progress state_;
  int last_iter_ = -1;                        // of the step before
  std::vector<ReportedValue> first_outputs_;  // of part 0, where this rank computes several
  bool ahead_ = false;                        // whether this step may leave its loss for later
  std::optional<int> unread_iter_;            // the iteration whose loss is started and not taken
  float last_loss_ = 0;                       // that was taken
  int saved_iter_ = -1;    // of the last snapshot that is known to be on the disk
  int started_iter_ = -1;  // of the last snapshot that was begun or restored
  bool time_was_up_ = false;
  std::string lost_input_;  // the error, where data could not be read any more
  bool test_at_end_ = true;
  bool shows_numbers_ = false;
  bool showed_batch_ = false;
  double data_waited_ = 0;  // seconds, until the last report
  std::optional<std::chrono::seconds> snapshot_every_;
  std::chrono::steady_clock::time_point last_snapshot_;  // or the start
  SnapshotReport started_;                               // what was begun last
  double copy_seconds_ = 0;                              // that its copy took
  int noted_ = 0;  // snapshots that the writer wrote and that were reported
  std::unique_ptr<TimeBudget> budget_;
  const RescueOptions rescue_;
  bool folder_was_writable_ = false;                  // that of snapshots, when the run began
  std::optional<KillWait> kill_wait_;                 // where it was asked for
  std::chrono::steady_clock::time_point last_begun_;  // the last snapshot was
  std::unique_ptr<KeptSnapshots> kept_;               // null on other ranks than 0
  std::unique_ptr<Patience> patience_;                // likewise, and without tests
  std::unique_ptr<SnapshotWriter> writer_;            // likewise; writes with kept_
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<ReplicaTimes> times_;  // null for a run alone
};

}  // namespace trainer
