#include "trainer/solver/solver.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "initial_weights.h"
#include "snapshot_manager.h"
#include "state_io.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/text.h"
#include "trainer/net/broken_pass.h"
#include "trainer/net/data_layers.h"
#include "trainer/net/debug_info.h"

namespace trainer {
namespace {

// Returns a sentence about the newest snapshot, of iteration `saved` (-1: none), for an error about
// the loss of iteration `iter`. If that snapshot is not older than `iter`, the sentence says that
// its weights gave the loss.
std::string SnapshotWords(int saved, int iter) {
  if (saved < 0) return ". There is no snapshot yet";
  if (saved < iter) return Join(". The newest snapshot is from iteration ", saved);
  return Join(". The snapshot of iteration ", saved, " has the weights that gave this loss");
}

// Throws kConfig for a solver whose nets cannot be built again in the middle of a run.
void RequireUnfreezable(const SolverSpec& spec) {
  const caffe::SolverParameter& proto = spec.proto;
  if (proto.unfreeze_at() <= 0) return;
  const std::string is = Join("unfreeze_at is ", proto.unfreeze_at(), ", but ");
  if (proto.strategy() != "synchronous") {
    spec.Fail("unfreeze_at",
              Join(is, "strategy '", proto.strategy(),
                   "' cannot change which layers learn during a run; use strategy \"synchronous\", "
                   "or train twice: first with freeze, then with --weights"));
  }
  if (proto.type() == "LBFGS") {
    spec.Fail("unfreeze_at",
              Join(is,
                   "solver type LBFGS approximates the curvature of the weights that learn, "
                   "which must not change during a run; use another type, or train twice: "
                   "first with freeze, then with --weights"));
  }
}

// Throws kUsage if a run that ends at `until` could not be continued exactly.
void RequireExactPause(int until, const std::string& name, const Strategy::Traits& traits) {
  if (until <= 0 || !traits.asynchronous) return;
  throw Error(ErrorCode::kUsage,
              Join("--until: strategy '", name,
                   "' depends on the timing of the ranks, so a run could not be continued exactly "
                   "from an iteration; leave out --until, or use strategy \"synchronous\""));
}

std::string FirstNonFiniteParam(const Net& net) {
  std::vector<float> host;
  for (const Param* param : net.params()) {
    host.resize(static_cast<size_t>(param->count()));
    net.device().CopyToHost(host.data(), param->weight, host.size() * sizeof(float));
    for (const float weight : host) {
      if (!std::isfinite(weight)) {
        return Join("layer '", param->layer, "' (parameter ", param->index, ")");
      }
    }
  }
  return "";
}

// A finite loss does not imply finite weights: oneDNN's ReLU after a convolution turns NaN into 0.
bool WeightsAreFinite(const TrainingModel& model) {
  return std::isfinite(model.objective->Norm(model.params.Weights())) ||
         FirstNonFiniteParam(*model.net).empty();
}

// Looks in the weights first, which the previous update may have spoilt, then in the batch. A rank
// that has one stage of the net or several virtual ranks cannot compute the batch again.
std::string WhatIsNotFinite(const SolverContext& run, Net& net) {
  const std::string param = FirstNonFiniteParam(net);
  if (!param.empty()) return "; the weights of " + param + " are not finite";
  const std::string pass = run.pipeline == nullptr ? DescribeBrokenPass(net) : "";
  return pass.empty() ? "" : "; " + pass;
}

}  // namespace

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
    : options_(options),
      strategy_(MakeStrategy(spec, RankOf(options).size)),
      run_(MakeContext(spec, options, device, observer, *strategy_)),
      control_(std::make_unique<RunControl>(*run_, options)),
      model_(std::make_unique<TrainingModel>(*run_, options)) {
  RequireUnfreezable(spec);
  RequireExactPause(options.until, spec.proto.strategy(), strategy_->traits());
  std::optional<LoadedState> loaded;
  if (!options.snapshot.empty()) loaded = ReadState(options.snapshot, options.allow_outside);
  run_->ChooseSeed(loaded ? &*loaded : nullptr);
  if (loaded) run_->iter = loaded->state.iter();
  model_->Build(*run_, options);
  tester_ = std::make_unique<Tester>(*run_, *model_, *control_, options);
  reporter_ = std::make_unique<Reporter>(*run_, *model_, *tester_, options.shows_numbers);
  LOG(INFO) << "Solver scaffolding done.";
  snapshots_ =
      std::make_unique<SnapshotManager>(*run_, *model_, *tester_, *control_, *reporter_, options);
  if (loaded) {
    LOG(INFO) << "Resuming from " << EscapeControl(options.snapshot);
    snapshots_->Restore(*loaded, options.snapshot);
  } else {
    LoadWeights(*run_, *model_, *tester_, options.weights, options.reset);
  }
  if (run_->group != nullptr) BeginStrategy(options, loaded ? &*loaded : nullptr);
  snapshots_->Prepare(options);
}

// Builds the nets again so that frozen layers learn from here on. The run goes on exactly as one
// that resumes from a snapshot of this iteration.
void Solver::Unfreeze() {
  Synchronize();
  if (options_.on_snapshot) options_.on_snapshot();
  const std::vector<std::string> layers = model_->frozen;
  SnapshotContent content = CopyRun(*run_, *model_, *tester_);
  tester_->FreeNets();
  model_->Rebuild(*run_, options_);
  tester_->BuildNets(options_);
  RestoreState(content, *run_, *model_, *tester_);
  reporter_->Attach();
  if (strategy_context_) {
    run_->group->ForgetSlices();
    strategy_context_.emplace(StrategyContext{run_->device, *model_->objective, *model_->optimizer,
                                              *run_->group, options_.window, run_->seed});
    strategy_->Prepare(*strategy_context_);
  }
  run_->observer.OnNote(
      EscapeControl(Join("Iteration ", run_->iter,
                         " (unfreeze_at): frozen layers begin to learn: ", FirstNames(layers))));
}

// Prepares the strategy and loads its state. All ranks call this together. Afterwards, ranks of an
// asynchronous strategy run their iterations without collective calls.
void Solver::BeginStrategy(const SolverOptions& options, const LoadedState* loaded) {
  if (run_->pipeline == nullptr) BroadcastWeights(*run_, *model_, *tester_);
  strategy_context_.emplace(StrategyContext{run_->device, *model_->objective, *model_->optimizer,
                                            *run_->group, options.window, run_->seed});
  if (options.window != nullptr) rpc_.reset(options.window->rpc());
  strategy_->Prepare(*strategy_context_);
  if (loaded != nullptr) LoadRank(loaded->state);
  if (loaded != nullptr && strategy_->traits().asynchronous && run_->rank.rank == 0) {
    LOG(INFO) << "Strategy " << run_->proto.strategy()
              << " depends on the timing of the ranks, so this run resumes from the snapshot, but "
                 "two such runs do not give bit-identical results";
  }
  strategy_->Begin(run_->iter);
  if (strategy_->traits().asynchronous) run_->group = nullptr;
}

// Restores this rank's own state. If the snapshot was made with another number of ranks or another
// strategy, only the weights that its ranks had in common are used.
void Solver::LoadRank(const caffe::SolverState& state) {
  const bool same = state.strategy() == run_->proto.strategy() &&
                    VirtualRanksIn(state) == model_->virtual_ranks.first.size;
  if (same && state.strategy_state_size() == run_->rank.size) {
    strategy_->LoadRank(state.strategy_state(run_->rank.rank));
  } else if (!same && state.strategy_state_size() > 0 && run_->rank.rank == 0) {
    LOG(WARNING) << EscapeControl(
        Join("The snapshot was made with ", state.replicas(), " ranks and strategy '",
             state.strategy(), "', but this run has ", run_->rank.size, " and strategy '",
             run_->proto.strategy(), "': all ranks start from the common weights of the snapshot"));
  }
}

Solver::~Solver() = default;

SolveResult Solver::Solve() {
  reporter_->Begin();
  control_->Begin();
  bool stopped = false, no_better = false;
  const int last = LastIter();
  const bool serves = run_->rank.rank >= strategy_->Workers(run_->rank.size);
  if (serves) strategy_->RunServer([this] { return control_->Local(false) == Request::kStop; });
  while (!serves && run_->iter < last) {
    const bool tests = tester_->IsDue();
    stopped = tests && !Test();
    no_better = tests && !stopped && tester_->PatienceIsOver();
    if (stopped || no_better) break;
    if (control_->ShouldStop()) break;
    const auto start = std::chrono::steady_clock::now();
    if (control_->HasLostInput()) {
      FinishIteration();  // makes no step, but reaches the next point where all ranks can stop
    } else {
      RunStep(/*async=*/true);
    }
    run_->observer.OnStep(run_->iter);
    snapshots_->NoteWritten();
    if (options_.ends && EndsEarly()) break;
    const bool goes_on = run_->iter < last && !control_->StopWasAsked();
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
  const bool ended = stopped || no_better;
  const bool paused = !ended && run_->iter >= last && last < run_->proto.max_iter();
  if (snapshots_->NeedsLast(stopped || paused)) StartSnapshot();
  snapshots_->AwaitLast();
  if (!stopped && !no_better && !serves && !control_->HasLostInput()) Finish();
  strategy_->Release();
  control_->ThrowInputError(snapshots_->saved_iter());
  RunEnd end{stopped || paused, std::nullopt};
  if (!run_->losses.empty()) end.loss = run_->losses.mean();
  run_->observer.OnEnd(end);
  if (stopped) return SolveResult::kStopped;
  return paused ? SolveResult::kPaused : SolveResult::kFinished;
}

// Returns the iteration at which Solve ends: max_iter, or SolverOptions::until before it.
int Solver::LastIter() const {
  const int all = run_->proto.max_iter();
  return options_.until > 0 ? std::min(options_.until, all) : all;
}

float Solver::Step() {
  RunStep(false);
  return run_->losses.last();
}

// One iteration, in this order: gradients and loss at the present weights, the report about them,
// the update. With `async` the device computes this step while the host takes the loss of the step
// before, so at most two updates follow a loss that ends the run.
void Solver::RunStep(bool async) {
  if (!model_->frozen.empty() && IsUnfrozen(run_->proto, run_->iter)) Unfreeze();
  model_->objective->ReduceOver(strategy_->ReducesGradients(run_->iter) ? run_->group : nullptr);
  async = async && !reporter_->IsDue() && !model_->optimizer->Reevaluates() &&
          model_->objective->IsAsync() && !run_->schedule.FollowsLoss();
  if (reporter_->ShowsDebugInfo()) {
    model_->net->AddHook(DebugInfoHook());
  } else {
    model_->net->RemoveHook(DebugInfoHook());
  }
  Hyperparams hyper = run_->schedule.At(run_->iter);
  model_->optimizer->ComputeGradients(hyper, /*fused=*/async && run_->rank.size == 1);
  Synchronize();
  if (async) {
    pending_iter_ = run_->iter;
  } else {
    const float loss = model_->optimizer->TakeLoss();
    if (!std::isfinite(loss) || (run_->IsDisplayed() && !WeightsAreFinite(*model_))) {
      Diverge(run_->iter, loss, WhatIsNotFinite(*run_, *model_->net));
    }
    run_->losses.Add(loss);
  }
  if (run_->schedule.Advance(run_->iter, run_->losses.mean())) {
    run_->observer.OnNote(run_->schedule.NoteOf(run_->iter));
    if (run_->schedule.FollowsLoss()) hyper = run_->schedule.At(run_->iter);
  }
  reporter_->Report(hyper.lr);
  strategy_->BeforeUpdate(hyper);
  model_->optimizer->Update(hyper);
  model_->optimizer->EmitNotes(/*wait=*/false);
  ReduceBadRecords(*model_->net,
                   ReduceOver(strategy_->traits().synchronous ? run_->DataGroup() : nullptr));
  FinishIteration();
  if (model_->ema && !model_->fuses_ema) model_->ema->Add(run_->iter);
}

void Solver::FinishIteration() {
  run_->last_iter = run_->iter;
  if (run_->world != nullptr) run_->world->Heartbeat(run_->iter + 1);
  run_->iter = strategy_->AfterStep(run_->iter);
}

void Solver::Synchronize() {
  if (pending_iter_) {
    const int iter = *std::exchange(pending_iter_, std::nullopt);
    const float loss = model_->optimizer->TakeLoss();
    if (!std::isfinite(loss)) Diverge(iter, loss, "");  // the update has since spoilt all weights
    run_->losses.Add(loss);
  }
  model_->optimizer->EmitNotes(/*wait=*/true);
}

// `cause`: what WhatIsNotFinite returned, or "" where that would not be the cause.
void Solver::Diverge(int iter, float loss, const std::string& cause) {
  snapshots_->Settle();
  throw Error(
      ErrorCode::kDiverged,
      Join("iteration ", iter, ": the loss is ", loss, cause,
           SnapshotWords(snapshots_->saved_iter(), iter), ". ", run_->schedule.PlaceOf(iter), ". ",
           DivergenceAdvice(run_->proto), ", and check the scale of the data"));
}

// Does what Caffe does after the last update: one more forward pass and one more test, if they are
// due. The pass changes the running averages of BatchNorm layers. They are restored after it, so
// that the test uses the ones that the last snapshot has.
void Solver::Finish() {
  if (run_->IsDisplayed()) {
    const std::span<float> averages = model_->params.RunningStats();
    std::vector<float> saved(averages.size());
    run_->device.CopyToHost(saved.data(), averages.data(), averages.size_bytes());
    const float loss = model_->objective->Loss(Pass::Batch::kNext);
    run_->device.CopyToDevice(averages.data(), saved.data(), averages.size_bytes());
    if (!std::isfinite(loss)) Diverge(run_->iter, loss, WhatIsNotFinite(*run_, *model_->net));
    reporter_->ReportAfterLast(run_->losses.Add(loss));
  }
  if (tester_->IsDueAtEnd()) Test();
}

// Asks SolverOptions::ends, which is set.
bool Solver::EndsEarly() {
  Synchronize();
  return options_.ends(run_->iter, run_->losses.mean());
}

// Runs all tests. Returns false if the run was asked to stop during a test.
bool Solver::Test() {
  Synchronize();
  const RankTimes::Pause pause(reporter_->times());
  return tester_->Run(*snapshots_);
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

std::vector<const Net*> Solver::TestNets() const {
  std::vector<const Net*> nets;
  for (const SolverTest& test : tester_->tests()) {
    for (const Net* net : {test.net.get(), test.nets->rest()}) {
      if (net != nullptr) nets.push_back(net);
    }
  }
  return nets;
}

Net& Solver::test_net(int i) { return *tester_->tests()[static_cast<size_t>(i)].net; }

}  // namespace trainer
