#include "trainer/run/training_run.h"

#include <glog/logging.h>

#include <utility>

#include "batch_size.h"
#include "card_recorder.h"
#include "class_weights.h"
#include "epochs.h"
#include "jobs/job_liveness.h"
#include "local_data.h"
#include "monitoring.h"
#include "overfit.h"
#include "own_kernels.h"
#include "preflight/lints.h"
#include "quick_files.h"
#include "ranks/batch_scaling.h"
#include "ranks/gpu_communicator.h"
#include "rescue.h"
#include "resolved_file.h"
#include "trainer/analysis/memory/memory_fit.h"
#include "trainer/analysis/memory/memory_room.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/memory_file.h"
#include "trainer/base/log/log.h"
#include "trainer/base/process/own_process.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/config/epochs.h"
#include "trainer/parallel/launch.h"
#include "trainer/run/jobs/time_limit.h"
#include "trainer/run/ranks/compression.h"
#include "trainer/run/ranks/strategy.h"
#include "trainer/run/search/batch_search.h"
#include "trainer/run/until.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

// --overfit ends a run by its loss, so all ranks need the same one after every step.
void RequireCommonLoss(const SolverSpec& spec, const Rank& rank) {
  if (rank.size == 1 || spec.proto.strategy() == "synchronous") return;
  throw Error(ErrorCode::kUsage,
              Join("--overfit and strategy '", spec.proto.strategy(),
                   "': each rank has its own loss; use one rank, or --strategy=synchronous"));
}

}  // namespace

TrainingRun::TrainingRun(TrainRequest request, SignalWatch* signals, TrainingRunDeps deps)
    : request_(std::move(request)), signals_(signals), deps_(std::move(deps)) {}

TrainingRun::~TrainingRun() = default;

void TrainingRun::Enter(Call call, Call before) {
  if (last_call_ != before) {
    throw Error(ErrorCode::kInternal, "a call of TrainingRun is out of order");
  }
  last_call_ = call;
}

int TrainingRun::Run() {
  CopyData();
  Join();
  Configure();
  if (!FindStart()) return Leave(SolveResult::kFinished);
  OpenDevice();
  Connect();
  Build();
  return Leave(Train());
}

void TrainingRun::CopyData() {
  Enter(Call::kCopyData, Call::kNone);
  copies_ = CopyDataLocally(request_.solver, request_.input.local_copy, request_.start.Resumes());
}

void TrainingRun::Join() {
  Enter(Call::kJoin, Call::kCopyData);
  world_ = deps_.join(request_.ranks, request_.stop.lock_wait);
  if (world_ != nullptr) rank_ = world_->group().rank();
  liveness_ = std::make_unique<JobLiveness>(
      std::chrono::seconds(is_rank_0() ? request_.stop.job_check : 0), deps_.scheduler);
}

void TrainingRun::Configure() {
  Enter(Call::kConfigure, Call::kJoin);
  spec_ = ReadSolver(request_.solver);
  compression_ = ApplyCompression(request_.ranks, &spec_);
  choice_ = ChooseDevice(request_.device, spec_, LocalRankOf(world_, request_.ranks.share_gpu));
  if (world_ != nullptr) {
    options_.group = &world_->group();
    options_.window = world_->window();
  }
  ApplyStrategy(request_.ranks, rank_, &spec_);
  LogToRankFile(request_.ranks, rank_, spec_);
  ApplyBatchSize(request_.batch, rank_, &spec_);
  ApplyLimit(request_.look.limit, &spec_);
  FindLength();
  ScaleForRanks(request_.ranks, rank_, &spec_);
  ApplyLook();
}

void TrainingRun::FindLength() {
  written_ = spec_.proto;
  epochs_ = ApplyEpochs(request_.ranks, rank_, options_.group, &spec_);
  options_.until = UntilIter(request_.stop.until, spec_.proto.max_iter());
}

void TrainingRun::ApplyLook() {
  if (!request_.look.IsLook()) return;
  // Epochs are iterations by now, so --batch=auto must not restore them over the look's length.
  written_ = spec_.proto;
  if (request_.look.quick) return ApplyQuick(&spec_);
  RequireCommonLoss(spec_, rank_);
  ApplyOverfit(request_.look.overfit, BatchParts(spec_, rank_), &spec_);
  overfit_ = std::make_unique<OverfitVerdict>(request_.look.overfit, spec_.proto.base_lr());
}

bool TrainingRun::FindStart() {
  Enter(Call::kFindStart, Call::kConfigure);
  std::string finished;
  if (is_rank_0()) {
    if (SavesSnapshots(spec_.proto) || options_.until > 0) {
      LockTimes times;
      times.wait = std::chrono::seconds(request_.stop.lock_wait);
      lock_ = std::make_unique<SnapshotLock>(spec_.proto.snapshot_prefix(), times);
    }
    const ResumePoint point = FindResumePoint(
        request_.start, spec_, RescueFolders(request_.stop.rescue_dir, deps_.scheduler));
    start_state_ = point.state;
    // With --batch=auto, the number of iterations of an epoch is not known yet.
    const bool knows_length = request_.batch != kBestBatch || epochs_.empty();
    if (request_.start.Resumes() && knows_length) finished = WhyFinished(point.iter);
  }
  if (world_ != nullptr) {
    start_state_ = world_->group().BroadcastString(start_state_);
    finished = world_->group().BroadcastString(finished);
  }
  if (finished.empty()) return true;
  LOG(INFO) << finished;
  last_call_ = Call::kFinished;
  return false;
}

// A run that resumes exactly at --until continues: it may have been killed before its test.
std::string TrainingRun::WhyFinished(int iter) const {
  if (iter >= spec_.proto.max_iter()) {
    return trainer::Join("Already at iteration ", iter, " of ", spec_.proto.max_iter(),
                         ": the run is finished, nothing to do");
  }
  if (options_.until == 0 || iter <= options_.until) return "";
  return trainer::Join("Already at iteration ", iter, ", after --until=", request_.stop.until,
                       ": nothing to do");
}

void TrainingRun::OpenDevice() {
  Enter(Call::kOpenDevice, Call::kFindStart);
  view_ = StartMonitoring(request_.monitor, spec_, rank_);
  counted_classes_ = ResolveClassWeights(options_.group, &spec_);
  if (view_ != nullptr && !epochs_.empty()) view_->Say(epochs_);
  device_ = deps_.make_device(choice_);
  LOG(INFO) << DescribeThreads();
  if (request_.batch == kBestBatch) {
    RestoreEpochs(written_, &spec_);
    ApplyBestBatch(MakeBatchSearchOptions(request_.memory, request_.memory_mode, *device_),
                   *device_, !start_state_.empty(), &spec_);
    FindLength();
  }
  LOG_IF(INFO, LogsDetails()) << "Initializing solver from parameters: \n"
                              << spec_.proto.DebugString();
}

void TrainingRun::Connect() {
  Enter(Call::kConnect, Call::kOpenDevice);
  if (world_ == nullptr) return;
  gpu_communicator_ =
      ConnectRanks(request_.ranks, *world_, spec_, *device_, choice_, compression_, &options_);
}

void TrainingRun::WarnOfOlderSnapshots() const {
  const std::string& prefix = spec_.proto.snapshot_prefix();
  const std::vector<SnapshotNames> older = FindSnapshots(prefix);
  if (older.empty()) return;
  LOG(WARNING) << EscapeControl(
      trainer::Join("'", prefix, "' already has snapshots (newest: iteration ", older.front().iter,
                    "): this run starts from the beginning and will replace those with the same "
                    "iteration numbers; to resume from the newest instead, use --resume=auto"));
}

void TrainingRun::SetTrainOptions() {
  if (is_rank_0()) {
    options_.end =
        RunDeadline(request_.stop.max_wall, request_.stop.stop_exit_code, deps_.scheduler);
  }
  options_.rescue = MakeRescueOptions(request_.stop.rescue_dir, deps_.scheduler);
  options_.snapshot = start_state_;
  options_.allow_outside = request_.start.allow_outside;
  if (options_.snapshot.empty()) {
    options_.weights = WeightFiles(request_.start, spec_);
    options_.reset = ResetLayers(request_.start, options_.weights);
    RequireFiles(options_.weights);
    if (is_rank_0() && !request_.look.IsLook()) WarnOfOlderSnapshots();
  }
  options_.memory = request_.memory_mode;
  const std::optional<size_t> limit = ParseMemoryLimit(request_.memory, *device_);
  if (limit) options_.activation_budget_bytes = ActivationBudget(*limit, spec_, *device_, rank_);
  options_.signals = signals_;
  options_.test_at_end = request_.test_at_end || request_.look.IsLook();
  options_.saves = overfit_ == nullptr;
  options_.layer_files = !request_.look.quick;
  if (overfit_ != nullptr) {
    options_.ends = [this](int iter, float loss) { return overfit_->Note(iter, loss); };
  }
  if (!request_.look.quick) return;
  spec_.proto.set_snapshot_after_train(true);  // only now, so that nothing else is written
  if (!is_rank_0()) return;
  quick_files_ = std::make_unique<QuickFiles>(spec_.proto);
  spec_.proto.set_snapshot_prefix(quick_files_->prefix());
}

void TrainingRun::Build() {
  Enter(Call::kBuild, Call::kConnect);
  const MemoryFilesScope packs;  // the weights are read in here, and a run may take days
  SetTrainOptions();
  observers_.emplace();
  RunInfo info;
  options_.shows_numbers =
      AddObservers(request_.monitor, spec_, *device_, rank_, view_.get(), &*observers_, &info);
  if (options_.shows_numbers) {
    card_ = std::make_unique<CardRecorder>(*device_, choice_, world_, deps_.powercap);
    if (is_rank_0()) {
      card_->AddObserver(RunFolderOf(request_.monitor, spec_), spec_, info, options_, &*observers_);
    }
  }
  const bool is_changed = !request_.solver.set.empty() || !request_.solver.freeze.empty() ||
                          request_.solver.unfreeze_at > 0 || !request_.batch.empty() ||
                          !request_.look.limit.empty() || !epochs_.empty() || counted_classes_;
  if (is_rank_0() && is_changed) observers_->Add(MakeResolvedFileWriter(spec_));
  solver_ = std::make_unique<Solver>(spec_, options_, *device_, *observers_);
  RequireRunFits(spec_, *device_, rank_, *solver_);
  if (overfit_ != nullptr) overfit_->Begin(solver_->train_net());
}

void TrainingRun::WarnOfOwnKernels() const {
  // The ranks of a pipeline have different layers, all other ranks the same.
  if (!is_rank_0() && spec_.proto.strategy() != "pipeline") return;
  const std::string text = DescribeOwnKernels(solver_->train_net(), *device_);
  LOG_IF(WARNING, !text.empty()) << EscapeControl(text);
}

SolveResult TrainingRun::Train() {
  Enter(Call::kTrain, Call::kBuild);
  if (is_rank_0()) WarnBeforeTraining(spec_, solver_->train_net());
  WarnOfOwnKernels();
  LOG(INFO) << "Starting Optimization";
  const SolveResult result = solver_->Solve();
  if (card_ != nullptr && world_ != nullptr) card_->GatherEnergy(spec_, world_->group());
  LogEnd(result);
  if (result == SolveResult::kFinished) ConcludeLook();
  return result;
}

void TrainingRun::Say(const std::string& text, Color color) {
  LOG(INFO) << text;
  if (view_ != nullptr) view_->Say(text, color);
}

void TrainingRun::ConcludeLook() {
  if (overfit_ != nullptr) Say(overfit_->Conclude(solver_->train_net()), Color::kGreen);
  if (quick_files_ == nullptr) return;
  // Other strategies save a consensus of the ranks' weights, or have only a part of the net here.
  const bool compares = world_ == nullptr || spec_.proto.strategy() == "synchronous";
  const uint64_t bytes = quick_files_->ReadBack(solver_->train_net(), compares);
  Say(trainer::Join("quick: one iteration", spec_.tests.empty() ? "" : ", one test batch",
                    " and a snapshot of ", Bytes(bytes),
                    ", which was written, read back and removed: the run works"),
      Color::kGreen);
}

std::string TrainingRun::StopReason() const {
  const std::string signal = signals_ == nullptr ? "" : signals_->StopSignal();
  if (!signal.empty()) return signal;
  return solver_->TimeWasUp() ? "The time limit" : "A signal to another rank";
}

void TrainingRun::LogEnd(SolveResult result) {
  // Scripts look for this line of Caffe's in the log of a finished run.
  if (result == SolveResult::kFinished) LOG(INFO) << "Optimization Done.";
  const std::string best = solver_->DescribeBest();
  if (!best.empty() && !request_.look.IsLook()) Say(best, Color::kGreen);
  const std::string sent = world_ == nullptr ? "" : world_->DescribeSent();
  if (!sent.empty()) LOG(INFO) << "Gradients sent to other machines by this rank: " << sent;
  if (result == SolveResult::kPaused) {
    Say(trainer::Join("--until=", request_.stop.until, ": the run ended at iteration ",
                      solver_->iter(), " of ", spec_.proto.max_iter(),
                      "; to continue it exactly, start it again with --resume=auto and without "
                      "--until, or with a later one"));
  }
  if (result != SolveResult::kStopped) return;
  if (request_.look.IsLook()) {
    LOG(INFO) << StopReason() << " stopped the run at iteration " << solver_->iter();
    return;
  }
  const std::string next =
      "to resume it, start it again with --resume=auto: " + AutoResumeCommand(CommandLine());
  LOG(INFO) << StopReason() << " stopped the run at iteration " << solver_->iter() << "; " << next;
  if (view_ != nullptr) view_->Say(next);
}

int TrainingRun::Leave(SolveResult result) {
  Enter(Call::kLeave, last_call_ == Call::kFinished ? Call::kFinished : Call::kTrain);
  solver_.reset();
  quick_files_.reset();
  observers_.reset();
  card_.reset();
  gpu_communicator_.reset();
  device_.reset();
  view_.reset();
  lock_.reset();
  if (world_ != nullptr) world_->Finish();
  if (result != SolveResult::kStopped) return 0;
  if (is_rank_0() && request_.stop.requeue) RequeueJob(deps_.scheduler);
  return request_.stop.stop_exit_code;
}

namespace {

// Throws kUsage for flags that cannot be combined with a quick look.
void RequireFittingLook(const TrainRequest& request) {
  const QuickLook& look = request.look;
  if (!look.IsLook()) return;
  const std::string flag = look.quick ? "--quick" : "--overfit";
  const auto refuse = [&](const std::string& other, const std::string& why) {
    throw Error(ErrorCode::kUsage, Join(flag, " and ", other, " cannot both be given: ", why));
  };
  if (look.quick && look.overfit > 0) refuse("--overfit", "they are two kinds of short runs");
  if (!request.start.snapshot.empty() || !request.start.resume.empty()) {
    refuse(request.start.resume.empty() ? "--snapshot" : "--resume",
           "a short run starts from the beginning, or from --weights");
  }
  if (!request.stop.until.empty()) refuse("--until", "a short run chooses its own end");
  if (look.quick) return;
  if (!look.limit.empty()) refuse("--limit", "--overfit chooses the records itself");
  if (request.batch == kBestBatch) refuse("--batch=auto", "give a number");
}

// Returns the request; for --quick without the options that would leave files.
TrainRequest WithoutRecords(TrainRequest request) {
  if (!request.look.quick) return request;
  request.monitor.run.clear();
  request.ranks.log_all_ranks = false;
  return request;
}

// Parses the effects of the five signals. Throws kUsage for an unknown one.
SignalWatch::Effects EffectsOf(const StopOptions& stop) {
  return {ParseSignalEffect("sigint_effect", stop.sigint_effect),
          ParseSignalEffect("sighup_effect", stop.sighup_effect),
          ParseSignalEffect("sigterm_effect", stop.sigterm_effect),
          ParseSignalEffect("sigusr1_effect", stop.sigusr1_effect),
          ParseSignalEffect("sigusr2_effect", stop.sigusr2_effect),
          stop.stop_exit_code};
}

}  // namespace

int Train(const TrainRequest& request, const TrainingRunDeps& deps) {
  RequireOneStart(request.start);
  RequireFittingLook(request);
  RequireWallTime(request.stop.max_wall);
  static_cast<void>(UntilIter(request.stop.until, 1));  // throws for a text that is no iteration
  ApplyBadRecords(request.input.bad_records);
  SetDbLock(request.input.db_lock);
  if (const int ranks = RanksToStart(request.ranks, request.device)) return LaunchRanks(ranks);
  SignalWatch signals(EffectsOf(request.stop));
  return TrainingRun(WithoutRecords(request), &signals, deps).Run();
}

}  // namespace trainer
