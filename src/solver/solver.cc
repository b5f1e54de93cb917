#include "trainer/solver/solver.h"

#include <glog/logging.h>

#include <optional>
#include <random>
#include <utility>

#include "early_stopping.h"
#include "lap_clock.h"
#include "rank_times.h"
#include "run_control.h"
#include "snapshot_retention.h"
#include "solver_context.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_writer.h"
#include "trainer/net/data_layers.h"
#include "trainer/net/join_replicas.h"
#include "trainer/net/label_counts.h"
#include "trainer/net/learning.h"
#include "trainer/net/passes_identical.h"
#include "virtual_ranks.h"

namespace trainer {
namespace {

// Draws a seed. All ranks get rank 0's, which travels as four parts of 16 bits because floats hold
// those exactly.
uint64_t FreshSeed(Communicator* group) {
  std::random_device device;
  constexpr uint64_t kLargest = INT64_MAX;  // the largest value of the field random_seed
  const uint64_t own = ((uint64_t{device()} << 32) | device()) & kLargest;
  if (group == nullptr) return own;
  float parts[4] = {};
  for (int i = 0; i < 4 && group->rank().rank == 0; ++i) {
    parts[i] = static_cast<float>(own >> (16 * i) & 0xffff);
  }
  group->AllReduce(parts);
  uint64_t seed = 0;
  for (int i = 0; i < 4; ++i) seed |= static_cast<uint64_t>(parts[i]) << (16 * i);
  return seed;
}

// Returns the solver's random_seed or the snapshot's. If neither has one, draws a seed and logs it,
// so that the run can be repeated.
uint64_t SeedOf(const caffe::SolverParameter& solver, const LoadedState* loaded,
                Communicator* group) {
  if (solver.random_seed() >= 0) return static_cast<uint64_t>(solver.random_seed());
  if (loaded != nullptr && loaded->state.has_random_seed()) return loaded->state.random_seed();
  const uint64_t seed = FreshSeed(group);
  LOG(INFO) << "Drew the random_seed " << seed
            << "; to repeat this run: --set random_seed=" << seed;
  return seed;
}

// Returns the communicator's memory for gradients, or null for the device's own. Only a synchronous
// device may use it: it has written its results when a call returns, so other ranks read final
// gradients.
std::pmr::memory_resource* GradientMemory(const SolverOptions& options, const Device& device,
                                          bool sums) {
  if (options.group == nullptr || device.IsAsync() || !sums) return nullptr;
  return options.group->gradient_memory();
}

std::unique_ptr<Objective> MakeObjective(Net& net, ParamStore& params,
                                         const caffe::SolverParameter& solver, Communicator* group,
                                         const Strategy& strategy) {
  auto objective =
      std::make_unique<Objective>(net.device(), net, params, solver.iter_size(), group);
  objective->SetOnlyOwnUpdates(strategy.OnlyOwnUpdates());
  return objective;
}

// Cuts the nets into stages if each rank trains only one.
std::unique_ptr<SolverContext> MakeContext(const SolverSpec& spec, const SolverOptions& options,
                                           const Device& device, TrainingObserver& observer,
                                           Strategy& strategy) {
  const Rank rank = RankOf(options);
  ModelPartition* const partition = strategy.partition();
  const SolverSpec& own = partition == nullptr ? spec : partition->Partition(spec, device, rank);
  return std::make_unique<SolverContext>(SolverContext{.spec = own,
                                                       .proto = own.proto,
                                                       .device = device,
                                                       .observer = observer,
                                                       .strategy = strategy,
                                                       .partition = partition,
                                                       .rank = rank,
                                                       .group = options.group});
}

void AddLossScale(Optimizer& rule, IterationReport* report) {
  if (const std::optional<LossScaleState> scale = rule.LossScale()) {
    report->loss_scale = scale->factor;
    report->skipped_steps = static_cast<int64_t>(scale->skipped);
  }
}

}  // namespace

Rank RankOf(const SolverOptions& options) {
  return options.group == nullptr ? Rank{} : options.group->rank();
}

Solver::Solver(const SolverSpec& spec, const SolverOptions& options, const Device& device,
               TrainingObserver& observer)
    : strategy_(MakeStrategy(spec, RankOf(options).size)),
      run_(MakeContext(spec, options, device, observer, *strategy_)),
      control_(std::make_unique<RunControl>(*run_, options)),
      on_snapshot_(options.on_snapshot),
      virtual_ranks_(std::make_unique<VirtualRanks>(VirtualRanksOf(run_->spec, run_->DataGroup()))),
      params_(device, GradientMemory(options, device, run_->partition == nullptr),
              strategy_->WeightMemory(device, options.window)),
      optimizer_(strategy_->MakeOptimizer(run_->spec, device)),
      test_at_end_(options.test_at_end),
      shows_numbers_(options.shows_numbers),
      rescue_(options.rescue),
      clock_(std::make_unique<Clock>()) {
  const int workers = strategy_->Workers(run_->rank.size);
  if (workers < run_->rank.size)
    virtual_ranks_->first = {std::min(run_->rank.rank, workers - 1), workers};
  std::optional<LoadedState> loaded;
  if (!options.snapshot.empty()) loaded = ReadState(options.snapshot, options.allow_outside);
  run_->seed = SeedOf(run_->proto, loaded ? &*loaded : nullptr, run_->group);
  BuildTrainNet(options);
  const bool measures = run_->group != nullptr && run_->group->stats();
  if (measures && strategy_->IsSynchronous() && run_->partition == nullptr)
    times_ = std::make_unique<RankTimes>(*run_->group, *train_net_);
  objective_ = MakeObjective(*train_net_, params_, run_->proto, run_->DataGroup(), *strategy_);
  objective_->OnFirstVirtualRank([this] {
    if (run_->IsDisplayed()) first_outputs_ = ReadOutputs(*train_net_, kTrainNet);
  });
  if (!objective_->PassesAreOneBatch()) WarnOfLabelCounts(*train_net_, run_->proto.iter_size());
  optimizer_->Prepare(*objective_, [this](const std::string& line) {
    if (!line.empty()) run_->observer.OnNote(line);
  });
  BuildTestNets(options);
  LOG(INFO) << "Solver scaffolding done.";
  PrepareAverage();
  PrepareSnapshots(options);
  if (loaded) {
    LOG(INFO) << "Resuming from " << EscapeControl(options.snapshot);
    Restore(*loaded, options.snapshot);
  } else {
    LoadWeights(options.weights);
  }
  if (run_->group != nullptr) BeginStrategy(options, loaded ? &*loaded : nullptr);
  control_->PlanSnapshots(SnapshotBytes(), writer_.get());
  if (!SavesSnapshots(run_->proto) || run_->rank.rank != 0) return;
  CheckSnapshotForm();
  if (!options.saves) return;
  CheckSnapshotFolder();
  folder_was_writable_ = true;
}

Solver::~Solver() = default;

void Solver::PrepareAverage() {
  if (run_->proto.ema_decay() <= 0) return;
  ema_ = std::make_unique<EmaWeights>(run_->proto.ema_decay(), run_->device, *train_net_);
  update_averages_ = objective_->UpdatesMayWriteAll() &&
                     optimizer_->FuseEma(ema_->PerParam(), run_->proto.ema_decay());
}

NetOptions Solver::CommonOptions(const SolverOptions& options, int net) const {
  NetOptions net_options;
  if (run_->partition != nullptr) run_->partition->SetOptions(net, &net_options);
  net_options.seed = run_->seed;
  net_options.memory = options.memory;
  if (options.saves && (run_->rank.rank == 0 || run_->partition != nullptr)) {
    net_options.output_files =
        options.snapshot.empty() ? OutputFiles::kCreate : OutputFiles::kResume;
    net_options.snapshot_folder = FolderOf(run_->proto.snapshot_prefix());
  }
  return net_options;
}

void Solver::BuildTrainNet(const SolverOptions& options) {
  NetOptions net_options = CommonOptions(options, kTrainNet);
  net_options.state = run_->spec.train.state;
  net_options.training = true;
  net_options.activation_budget_bytes = options.activation_budget_bytes;
  net_options.rank = virtual_ranks_->first;
  net_options.virtual_ranks = virtual_ranks_->count;
  net_options.allow_reevaluation = optimizer_->Reevaluates();
  net_options.capture = true;
  optimizer_->ConfigureCompile(net_options);
  net_options.states_per_weight = optimizer_->StatesPerWeight() + optimizer_->ExtraArrays() +
                                  (run_->proto.ema_decay() > 0 ? 1 : 0) +
                                  ExtraGradients(virtual_ranks_->count, run_->proto.iter_size());
  LOG(INFO) << "Creating training net from " << EscapeControl(run_->spec.train.description);
  train_net_ = std::make_unique<Net>(*run_->spec.train.net, net_options, run_->device, params_);
  if (run_->partition == nullptr) RequireLoss();
  if (run_->proto.virtual_ranks() > 1) {
    LOG(INFO) << "virtual_ranks " << run_->proto.virtual_ranks() << ": each rank computes "
              << virtual_ranks_->count << (virtual_ranks_->count == 1 ? " part" : " parts")
              << " of every batch, one after the other, and needs "
              << ExtraVirtualRankBytes(train_net_->graph(), virtual_ranks_->count,
                                       run_->proto.iter_size()) /
                     1024
              << " KiB more for their sums";
    return;  // no JoinReplicas: each virtual rank counts the labels of its own part alone
  }
  if (run_->DataGroup() == nullptr || !strategy_->IsSynchronous()) return;
  const auto sum = [this](std::span<float> values) { run_->group->AllReduce(values); };
  JoinReplicas(*train_net_, {run_->rank.size, sum});
  const std::vector<std::string> drawing = DrawingLayers(*train_net_);
  if (run_->rank.size == 1 || drawing.empty()) return;
  LOG(INFO) << "Each rank draws different random numbers in " << JoinList(drawing)
            << ": so this run differs from a run of one rank with the same batch by more than "
               "rounding; virtual_ranks makes the result independent of the number of ranks";
}

// Throws kConfig if the net has no loss: every gradient would be zero, and the run would succeed
// with untrained weights.
void Solver::RequireLoss() const {
  if (HasLoss(*train_net_)) return;
  const NetSpec& spec = *run_->spec.train.net;
  const auto is_loss = [](const LayerSpec& layer) { return layer.type().ends_with("Loss"); };
  const auto unused = std::ranges::find_if(spec.layers, is_loss);
  const std::string what =
      unused == spec.layers.end()
          ? "add a loss layer, such as SoftmaxWithLoss with the scores and the labels as bottoms, "
            "or give an output a loss_weight"
          : Join("layer '", unused->name(), "' (", unused->type(), ", ", unused->Where().ToString(),
                 ") is excluded by its include and exclude rules, or has loss_weight 0");
  throw Error(ErrorCode::kConfig, {spec.file},
              Join("the training net has no loss, so it would learn nothing: no layer in phase "
                   "TRAIN is a loss layer or has a loss_weight; ",
                   what));
}

SolveResult Solver::Solve() {
  run_->observer.OnStart({train_net_->name(), run_->proto.lr_policy(), run_->iter,
                          run_->proto.max_iter(), RecordsPerIteration()});
  clock_->Restart(run_->iter);
  data_waited_ = SecondsWaitedForData(*train_net_);
  control_->Begin();
  bool stopped = false, no_better = false;
  if (times_) times_->Restart();
  const bool serves = run_->rank.rank >= strategy_->Workers(run_->rank.size);
  if (serves) strategy_->RunServer([this] { return control_->Local(false) == Request::kStop; });
  while (!serves && run_->iter < run_->proto.max_iter()) {
    const bool tests = TestIsDue() && (run_->iter > 0 || run_->proto.test_initialization());
    stopped = tests && !TestAll();
    no_better = tests && !stopped && PatienceIsOver();
    if (stopped || no_better) break;
    if (control_->ShouldStop()) break;
    const auto start = std::chrono::steady_clock::now();
    if (control_->HasLostInput()) {
      FinishIteration();  // makes no step, but reaches the next point where all ranks can stop
    } else {
      StepAsync();
    }
    run_->observer.OnStep(run_->iter);
    NoteWritten();
    const bool goes_on = run_->iter < run_->proto.max_iter() && !control_->StopWasAsked();
    if (goes_on && !control_->HasLostInput()) {
      control_->WaitForInput(*train_net_, run_->proto.iter_size());
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    const Request request = control_->AfterStep(passed.count());
    stopped = request == Request::kStop;
    if (stopped) break;
    const bool scheduled = run_->IsDue(run_->proto.snapshot()) && run_->TestsAndSaves();
    if (scheduled || request == Request::kSnapshot) StartSnapshot();
  }
  Synchronize();
  stopped = stopped || control_->ShouldStop();
  strategy_->Finish(stopped);
  const std::string exchanged = run_->rank.rank == 0 ? strategy_->Describe() : "";
  if (!exchanged.empty()) run_->observer.OnNote(exchanged);
  SaveLast(stopped);
  if (!stopped && !no_better && !serves && !control_->HasLostInput()) Finish();
  strategy_->Release();
  control_->ThrowInputError(saved_iter_);
  run_->observer.OnEnd(stopped);
  return stopped ? SolveResult::kStopped : SolveResult::kFinished;
}

bool Solver::TimeWasUp() const { return control_->TimeWasUp(); }

int Solver::iter() const { return run_->iter; }

// Does what Caffe does after the last update: one more forward pass and one more test, if they are
// due. The pass changes the running averages of BatchNorm layers. They are restored after it, so
// that the test uses the ones that the last snapshot has.
void Solver::Finish() {
  if (run_->IsDisplayed()) {
    const std::span<float> averages = params_.RunningStats();
    std::vector<float> saved(averages.size());
    run_->device.CopyToHost(saved.data(), averages.data(), averages.size_bytes());
    const float loss = objective_->Loss(NetBatch::kNext);
    run_->device.CopyToDevice(averages.data(), saved.data(), averages.size_bytes());
    if (!std::isfinite(loss)) Diverge(run_->iter, loss, WhatIsNotFinite());
    IterationReport report;
    report.iter = run_->iter;
    report.loss = run_->losses.Add(loss);
    report.after_last = true;
    AddLossScale(*optimizer_, &report);
    run_->observer.OnIteration(report);
  }
  const bool wants_test =
      test_at_end_ && run_->proto.test_interval() > 0 && !run_->spec.tests.empty();
  if (TestIsDue() || (wants_test && run_->TestsAndSaves())) TestAll();
}

void Solver::Report(float rate) {
  IterationReport report;
  report.iter = run_->iter;
  report.loss = run_->losses.mean();
  report.rate = rate;
  report.seconds = clock_->Lap();
  report.iterations = clock_->IterationsSince(run_->iter);
  report.epoch = EpochOf(*train_net_);
  const double waited = SecondsWaitedForData(*train_net_);
  report.data_seconds = waited - std::exchange(data_waited_, waited);
  const std::vector<ReportedValue> outputs =
      virtual_ranks_->count > 1 ? std::move(first_outputs_) : ReadOutputs(*train_net_, kTrainNet);
  report.outputs = outputs;
  AddLossScale(*optimizer_, &report);
  run_->observer.OnIteration(report);
  const std::string note = clock_->cores().Note(report.seconds);
  const std::string data = clock_->input().Note(*train_net_, report.seconds);
  if (times_ && report.iterations > 0) run_->observer.OnRanks(times_->Report());
  for (const std::string& text : {note, data}) {
    if (!text.empty()) run_->observer.OnNote(text);
  }
}

// Returns every element of every output, in Caffe's numbering. If this rank has only one stage,
// returns the outputs of all stages, and all ranks must call it.
std::vector<ReportedValue> Solver::ReadOutputs(const Net& net, int number) const {
  if (run_->partition != nullptr) return SumOutputs(LayOutOutputs(net, number));
  std::vector<ReportedValue> values;
  std::vector<float> host;
  for (const NetOutput& output : net.outputs()) {
    host.resize(static_cast<size_t>(output.value.Count()));
    net.ReadNchw(output.value, host);
    for (const float value : host) values.push_back({output.name, value, output.loss_weight});
  }
  return values;
}

}  // namespace trainer
