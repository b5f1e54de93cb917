#include "trainer/solver/solver.h"

#include <glog/logging.h>

#include <optional>
#include <utility>

#include "initial_weights.h"
#include "snapshot_manager.h"
#include "trainer/base/text/text.h"

namespace trainer {
Rank RankOf(const SolverOptions& options) {
  return options.group == nullptr ? Rank{} : options.group->rank();
}

bool SavesSnapshots(const caffe::SolverParameter& solver) {
  return solver.snapshot() > 0 || solver.has_snapshot_every() || solver.snapshot_after_train();
}

void CheckSnapshotPaths(const caffe::SolverParameter& solver) {
  const SnapshotNames longest = SnapshotNamesAt(solver, solver.max_iter());
  CheckNameLength(solver.ema_decay() > 0 ? longest.averaged : longest.model);
}

Solver::Solver(const SolverSpec& spec, const SolverOptions& options, const Device& device,
               TrainingObserver& observer)
    : strategy_(MakeStrategy(spec, RankOf(options).size)),
      run_(MakeContext(spec, options, device, observer, *strategy_)),
      control_(std::make_unique<RunControl>(*run_, options)),
      model_(std::make_unique<TrainingModel>(*run_, options)) {
  std::optional<LoadedState> loaded;
  if (!options.snapshot.empty()) loaded = ReadState(options.snapshot, options.allow_outside);
  run_->ChooseSeed(loaded ? &*loaded : nullptr);
  model_->Build(*run_, options);
  tester_ = std::make_unique<Tester>(*run_, *model_, *control_, options);
  reporter_ = std::make_unique<Reporter>(*run_, *model_, *tester_, options.shows_numbers);
  LOG(INFO) << "Solver scaffolding done.";
  model_->PrepareEma(*run_);
  snapshots_ =
      std::make_unique<SnapshotManager>(*run_, *model_, *tester_, *control_, *reporter_, options);
  if (loaded) {
    LOG(INFO) << "Resuming from " << EscapeControl(options.snapshot);
    snapshots_->Restore(*loaded, options.snapshot);
  } else {
    LoadWeights(*run_, *model_, *tester_, options.weights);
  }
  if (run_->group != nullptr) BeginStrategy(options, loaded ? &*loaded : nullptr);
  snapshots_->Prepare(options.saves);
}

Solver::~Solver() = default;

SolveResult Solver::Solve() {
  reporter_->Begin();
  control_->Begin();
  bool stopped = false, no_better = false;
  const bool serves = run_->rank.rank >= strategy_->Workers(run_->rank.size);
  if (serves) strategy_->RunServer([this] { return control_->Local(false) == Request::kStop; });
  while (!serves && run_->iter < run_->proto.max_iter()) {
    const bool tests = tester_->IsDue();
    stopped = tests && !Test();
    no_better = tests && !stopped && tester_->PatienceIsOver();
    if (stopped || no_better) break;
    if (control_->ShouldStop()) break;
    const auto start = std::chrono::steady_clock::now();
    if (control_->HasLostInput()) {
      FinishIteration();  // makes no step, but reaches the next point where all ranks can stop
    } else {
      StepAsync();
    }
    run_->observer.OnStep(run_->iter);
    snapshots_->NoteWritten();
    const bool goes_on = run_->iter < run_->proto.max_iter() && !control_->StopWasAsked();
    if (goes_on && !control_->HasLostInput()) {
      control_->WaitForInput(*model_->net, run_->proto.iter_size());
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const Request request = control_->AfterStep(passed.count());
    stopped = request == Request::kStop;
    if (stopped) break;
    if (request == Request::kSnapshot || snapshots_->IsDue()) StartSnapshot();
  }
  Synchronize();
  stopped = stopped || control_->ShouldStop();
  strategy_->Finish(stopped);
  const std::string exchanged = run_->rank.rank == 0 ? strategy_->Describe() : "";
  if (!exchanged.empty()) run_->observer.OnNote(exchanged);
  if (snapshots_->NeedsLast(stopped)) StartSnapshot();
  snapshots_->AwaitLast();
  if (!stopped && !no_better && !serves && !control_->HasLostInput()) Finish();
  strategy_->Release();
  control_->ThrowInputError(snapshots_->saved_iter());
  run_->observer.OnEnd(stopped);
  return stopped ? SolveResult::kStopped : SolveResult::kFinished;
}

std::string Solver::Snapshot() {
  std::string model = StartSnapshot();
  snapshots_->Await();
  return model;
}

std::string Solver::StartSnapshot() {
  Synchronize();
  return snapshots_->Start();
}

uint64_t Solver::SnapshotBytes() const { return snapshots_->Bytes(); }

std::string Solver::DescribeBest() const { return snapshots_->DescribeBest(); }

bool Solver::TimeWasUp() const { return control_->TimeWasUp(); }

int Solver::iter() const { return run_->iter; }

size_t Solver::UpdateBytes() const { return model_->optimizer->Bytes(); }

Net& Solver::train_net() { return *model_->net; }

int Solver::NumTestNets() const { return static_cast<int>(tester_->tests().size()); }

bool Solver::HasTestNet(int i) const {
  return tester_->tests()[static_cast<size_t>(i)].net != nullptr;
}

Net& Solver::test_net(int i) { return *tester_->tests()[static_cast<size_t>(i)].net; }

const Net* Solver::LastBatchNet(int i) const {
  return tester_->tests()[static_cast<size_t>(i)].nets->rest();
}

// Does what Caffe does after the last update: one more forward pass and one more test, if they are
// due. The pass changes the running averages of BatchNorm layers. They are restored after it, so
// that the test uses the ones that the last snapshot has.
void Solver::Finish() {
  if (run_->IsDisplayed()) {
    const std::span<float> averages = model_->params.RunningStats();
    std::vector<float> saved(averages.size());
    run_->device.CopyToHost(saved.data(), averages.data(), averages.size_bytes());
    const float loss = model_->objective->Loss(NetBatch::kNext);
    run_->device.CopyToDevice(averages.data(), saved.data(), averages.size_bytes());
    if (!std::isfinite(loss)) Diverge(run_->iter, loss, WhatIsNotFinite());
    reporter_->ReportAfterLast(run_->losses.Add(loss));
  }
  if (tester_->IsDueAtEnd()) Test();
}

// Runs all tests. Returns false if the run was asked to stop during a test.
bool Solver::Test() {
  Synchronize();
  const RankTimes::Pause pause(reporter_->times());
  return tester_->Run(*snapshots_);
}

}  // namespace trainer
