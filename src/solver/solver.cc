#include "trainer/solver/solver.h"

#include <glog/logging.h>

#include <optional>
#include <random>
#include <utility>

#include "deadline_reserve.h"
#include "early_stopping.h"
#include "lap_clock.h"
#include "rank_times.h"
#include "snapshot_retention.h"
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
      partition_(strategy_->partition()),
      spec_(partition_ == nullptr ? spec : partition_->Partition(spec, device, RankOf(options))),
      proto_(spec_.proto),
      device_(device),
      observer_(observer),
      signals_(options.signals),
      group_(options.group),
      on_snapshot_(options.on_snapshot),
      rank_(RankOf(options)),
      virtual_ranks_(std::make_unique<VirtualRanks>(VirtualRanksOf(spec_, DataGroup()))),
      params_(device, GradientMemory(options, device, partition_ == nullptr),
              strategy_->WeightMemory(device, options.window)),
      optimizer_(strategy_->MakeOptimizer(spec_, device)),
      test_at_end_(options.test_at_end),
      shows_numbers_(options.shows_numbers),
      rescue_(options.rescue),
      clock_(std::make_unique<Clock>()) {
  const int workers = strategy_->Workers(rank_.size);
  if (workers < rank_.size) virtual_ranks_->first = {std::min(rank_.rank, workers - 1), workers};
  std::optional<LoadedState> loaded;
  if (!options.snapshot.empty()) loaded = ReadState(options.snapshot, options.allow_outside);
  seed_ = SeedOf(proto_, loaded ? &*loaded : nullptr, group_);
  BuildTrainNet(options);
  const bool measures = group_ != nullptr && group_->stats();
  if (measures && strategy_->IsSynchronous() && partition_ == nullptr)
    times_ = std::make_unique<RankTimes>(*group_, *train_net_);
  objective_ = MakeObjective(*train_net_, params_, proto_, DataGroup(), *strategy_);
  objective_->OnFirstVirtualRank([this] {
    if (IsDisplayed()) first_outputs_ = ReadOutputs(*train_net_, kTrainNet);
  });
  if (!objective_->PassesAreOneBatch()) WarnOfLabelCounts(*train_net_, proto_.iter_size());
  optimizer_->Prepare(*objective_, [this](const std::string& line) {
    if (!line.empty()) observer_.OnNote(line);
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
  if (group_ != nullptr) BeginStrategy(options, loaded ? &*loaded : nullptr);
  budget_ = std::make_unique<DeadlineReserve>(rank_.rank == 0 ? options.end : std::nullopt,
                                              SnapshotBytes());
  if (!SavesSnapshots(proto_) || rank_.rank != 0) return;
  CheckSnapshotForm();
  if (!options.saves) return;
  CheckSnapshotFolder();
  folder_was_writable_ = true;
}

Solver::~Solver() = default;

void Solver::PrepareAverage() {
  if (proto_.ema_decay() <= 0) return;
  ema_ = std::make_unique<EmaWeights>(proto_.ema_decay(), device_, *train_net_);
  update_averages_ =
      objective_->UpdatesMayWriteAll() && optimizer_->FuseEma(ema_->PerParam(), proto_.ema_decay());
}

// Returns the communicator of the ranks that divide each batch; null if one rank reads the data for
// all.
Communicator* Solver::DataGroup() const { return partition_ == nullptr ? group_ : nullptr; }

NetOptions Solver::CommonOptions(const SolverOptions& options, int net) const {
  NetOptions net_options;
  if (partition_ != nullptr) partition_->SetOptions(net, &net_options);
  net_options.seed = seed_;
  net_options.memory = options.memory;
  if (options.saves && (rank_.rank == 0 || partition_ != nullptr)) {
    net_options.output_files =
        options.snapshot.empty() ? OutputFiles::kCreate : OutputFiles::kResume;
    net_options.snapshot_folder = FolderOf(proto_.snapshot_prefix());
  }
  return net_options;
}

void Solver::BuildTrainNet(const SolverOptions& options) {
  NetOptions net_options = CommonOptions(options, kTrainNet);
  net_options.state = spec_.train.state;
  net_options.training = true;
  net_options.activation_budget_bytes = options.activation_budget_bytes;
  net_options.rank = virtual_ranks_->first;
  net_options.virtual_ranks = virtual_ranks_->count;
  net_options.allow_reevaluation = optimizer_->Reevaluates();
  net_options.capture = true;
  optimizer_->ConfigureCompile(net_options);
  net_options.states_per_weight = optimizer_->StatesPerWeight() + optimizer_->ExtraArrays() +
                                  (proto_.ema_decay() > 0 ? 1 : 0) +
                                  ExtraGradients(virtual_ranks_->count, proto_.iter_size());
  LOG(INFO) << "Creating training net from " << EscapeControl(spec_.train.description);
  train_net_ = std::make_unique<Net>(*spec_.train.net, net_options, device_, params_);
  if (partition_ == nullptr) RequireLoss();
  if (proto_.virtual_ranks() > 1) {
    LOG(INFO) << "virtual_ranks " << proto_.virtual_ranks() << ": each rank computes "
              << virtual_ranks_->count << (virtual_ranks_->count == 1 ? " part" : " parts")
              << " of every batch, one after the other, and needs "
              << ExtraVirtualRankBytes(train_net_->graph(), virtual_ranks_->count,
                                       proto_.iter_size()) /
                     1024
              << " KiB more for their sums";
    return;  // no JoinReplicas: each virtual rank counts the labels of its own part alone
  }
  if (DataGroup() == nullptr || !strategy_->IsSynchronous()) return;
  const auto sum = [this](std::span<float> values) { group_->AllReduce(values); };
  JoinReplicas(*train_net_, {rank_.size, sum});
  const std::vector<std::string> drawing = DrawingLayers(*train_net_);
  if (rank_.size == 1 || drawing.empty()) return;
  LOG(INFO) << "Each rank draws different random numbers in " << JoinList(drawing)
            << ": so this run differs from a run of one rank with the same batch by more than "
               "rounding; virtual_ranks makes the result independent of the number of ranks";
}

// Throws kConfig if the net has no loss: every gradient would be zero, and the run would succeed
// with untrained weights.
void Solver::RequireLoss() const {
  if (HasLoss(*train_net_)) return;
  const NetSpec& spec = *spec_.train.net;
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
  observer_.OnStart({train_net_->graph().name, proto_.lr_policy(), state_.iter, proto_.max_iter(),
                     RecordsPerIteration()});
  clock_->Restart(state_.iter);
  data_waited_ = SecondsWaitedForData(*train_net_);
  last_snapshot_ = std::chrono::steady_clock::now();
  if (signals_ != nullptr) signals_->BeginRun();
  bool stopped = false, no_better = false;
  double unmet = 0;  // seconds since the last synchronisation point
  if (times_) times_->Restart();
  const bool serves = rank_.rank >= strategy_->Workers(rank_.size);
  if (serves) strategy_->RunServer([this] { return LocalRequest(false) == Request::kStop; });
  while (!serves && state_.iter < proto_.max_iter()) {
    const bool tests = TestIsDue() && (state_.iter > 0 || proto_.test_initialization());
    stopped = tests && !TestAll();
    no_better = tests && !stopped && PatienceIsOver();
    if (stopped || no_better) break;
    if (ShouldStop()) break;
    const auto start = std::chrono::steady_clock::now();
    if (input_error_.empty()) {
      StepAsync();
    } else {
      FinishIteration();  // makes no step, but reaches the next point where all ranks can stop
    }
    observer_.OnStep(state_.iter);
    NoteWritten();
    const bool meets = strategy_->IsSyncPoint(state_.iter);
    const bool goes_on = state_.iter < proto_.max_iter() && !StopWasAsked();
    if (goes_on && input_error_.empty()) WaitForInput(*train_net_, proto_.iter_size());
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    unmet += passed.count();
    Request request = Request::kNone;
    if (meets) {
      budget_->NoteIteration(std::exchange(unmet, 0));
      request = Agree(LocalRequest(false));
    }
    stopped = request == Request::kStop;
    if (stopped) break;
    const bool scheduled = IsDue(proto_.snapshot()) && TestsAndSaves();
    if (scheduled || request == Request::kSnapshot) StartSnapshot();
  }
  Synchronize();
  stopped = stopped || ShouldStop();
  strategy_->Finish(stopped);
  const std::string exchanged = rank_.rank == 0 ? strategy_->Describe() : "";
  if (!exchanged.empty()) observer_.OnNote(exchanged);
  SaveLast(stopped);
  if (!stopped && !no_better && !serves && input_error_.empty()) Finish();
  strategy_->Release();
  if (!StopWasAsked()) ThrowInputError();
  observer_.OnEnd(stopped);
  return stopped ? SolveResult::kStopped : SolveResult::kFinished;
}

// Returns whether the batches of the next `passes` passes can be read. If they cannot, this rank
// will request a stop now, because all ranks can save between two steps but not within one.
bool Solver::WaitForInput(Net& net, int passes) {
  try {
    WaitForBatches(net, passes);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) return true;  // the next pass throws it
    input_error_ = error.what();
    if (!StopWasAsked()) observer_.OnNote(Join("The data can no longer be read: ", input_error_));
    return false;
  }
}

void Solver::ThrowInputError() const {
  if (input_error_.empty()) return;
  throw Error(
      ErrorCode::kIo,
      Join(input_error_, saved_iter_ < 0 ? std::string()
                                         : Join(". A snapshot was saved at iteration ", saved_iter_,
                                                "; resume from it with --resume=auto")));
}

// Returns whether a single rank should stop at once. Several ranks stop only after a step in which
// they have agreed on it (Agree).
bool Solver::ShouldStop() const { return group_ == nullptr && StopWasAsked(); }

bool Solver::StopWasAsked() const {
  return time_was_up_ || (signals_ != nullptr && signals_->StopRequested());
}

// Returns the strongest request of all ranks; `own` is this rank's.
Request Solver::Agree(Request own) {
  Requests requests = {own == Request::kStop, own == Request::kSnapshot};
  if (group_ == nullptr) {
    requests = strategy_->Agree(requests);
  } else {
    float sums[] = {requests.stop ? 1.0f : 0.0f, requests.snapshot ? 1.0f : 0.0f};
    group_->AllReduce(sums);
    requests = {sums[0] > 0, sums[1] > 0};
  }
  if (requests.stop) return Request::kStop;
  if (!requests.snapshot) return Request::kNone;
  if (signals_ != nullptr && rank_.size > 1) signals_->NoteSnapshot();
  return Request::kSnapshot;
}

// Returns rank 0's value.
bool Solver::BroadcastBool(bool value) {
  return group_ == nullptr ? value : group_->BroadcastBool(value);
}

// Does what Caffe does after the last update: one more forward pass and one more test, if they are
// due. The pass changes the running averages of BatchNorm layers. They are restored after it, so
// that the test uses the ones that the last snapshot has.
void Solver::Finish() {
  if (IsDisplayed()) {
    const std::span<float> averages = params_.RunningStats();
    std::vector<float> saved(averages.size());
    device_.CopyToHost(saved.data(), averages.data(), averages.size_bytes());
    const float loss = objective_->Loss(Pass::Batch::kNext);
    device_.CopyToDevice(averages.data(), saved.data(), averages.size_bytes());
    if (!std::isfinite(loss)) Diverge(state_.iter, loss, WhatIsNotFinite());
    IterationReport report;
    report.iter = state_.iter;
    report.loss = state_.losses.Add(loss);
    report.after_last = true;
    AddLossScale(*optimizer_, &report);
    observer_.OnIteration(report);
  }
  const bool wants_test = test_at_end_ && proto_.test_interval() > 0 && !spec_.tests.empty();
  if (TestIsDue() || (wants_test && TestsAndSaves())) TestAll();
}

// Returns whether an event with this interval is due now. A rank of an asynchronous strategy can
// make several steps in one iteration; only the first of them counts.
bool Solver::IsDue(int interval) const {
  return interval > 0 && state_.iter % interval == 0 && state_.iter != last_iter_;
}

bool Solver::IsDisplayed() const { return IsDue(proto_.display()); }

void Solver::Report(float rate) {
  IterationReport report;
  report.iter = state_.iter;
  report.loss = state_.losses.mean();
  report.rate = rate;
  report.seconds = clock_->Lap();
  report.iterations = clock_->IterationsSince(state_.iter);
  report.epoch = EpochOf(*train_net_);
  const double waited = SecondsWaitedForData(*train_net_);
  report.data_seconds = waited - std::exchange(data_waited_, waited);
  const std::vector<ReportedValue> outputs =
      virtual_ranks_->count > 1 ? std::move(first_outputs_) : ReadOutputs(*train_net_, kTrainNet);
  report.outputs = outputs;
  AddLossScale(*optimizer_, &report);
  observer_.OnIteration(report);
  const std::string note = clock_->cores().Note(report.seconds);
  const std::string data = clock_->input().Note(*train_net_, report.seconds);
  if (times_ && report.iterations > 0) observer_.OnRanks(times_->Report());
  for (const std::string& text : {note, data}) {
    if (!text.empty()) observer_.OnNote(text);
  }
}

// Returns every element of every output, in Caffe's numbering. If this rank has only one stage,
// returns the outputs of all stages, and all ranks must call it.
std::vector<ReportedValue> Solver::ReadOutputs(const Net& net, int number) const {
  if (partition_ != nullptr) return SumOutputs(LayOutOutputs(net, number));
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
