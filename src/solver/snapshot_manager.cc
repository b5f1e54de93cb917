#include "snapshot_manager.h"

#include <glog/logging.h>

#include <bit>
#include <climits>
#include <utility>

#include "sharded_model.h"
#include "state_io.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/text.h"
#include "trainer/net/layer_state.h"
#include "trainer/net/weights.h"

namespace trainer {
namespace {

SnapshotFormat FormatOf(const caffe::SolverParameter& solver) {
  return solver.snapshot_format() == caffe::SolverParameter::HDF5 ? SnapshotFormat::kHdf5
                                                                  : SnapshotFormat::kBinary;
}

// The exponent bits of infinities and NaNs are all ones.
bool AllFinite(const google::protobuf::RepeatedField<float>& values) {
  bool finite = true;
  for (const float value : values) {
    finite &= (std::bit_cast<uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
  }
  return finite;
}

// Returns the first parameter that is not finite, or "".
std::string BrokenIn(const caffe::NetParameter& model) {
  for (const caffe::LayerParameter& layer : model.layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      if (!AllFinite(layer.blobs(i).data())) {
        return Join("layer '", layer.name(), "' (parameter ", i, ")");
      }
    }
  }
  return "";
}

}  // namespace

SnapshotNames SnapshotNamesAt(const caffe::SolverParameter& solver, int iter) {
  return NamesFor(solver.snapshot_prefix(), iter, FormatOf(solver));
}

SnapshotManager::SnapshotManager(SolverContext& run, TrainingModel& model, Tester& tester,
                                 RunControl& control, Reporter& reporter,
                                 const SolverOptions& options)
    : run_(run),
      model_(model),
      tester_(tester),
      control_(control),
      reporter_(reporter),
      on_snapshot_(options.on_snapshot),
      rescue_(options.rescue) {
  if (run.rank.rank != 0) return;
  retention_ = std::make_unique<SnapshotRetention>(run.spec, tester.OutputNames());
  SnapshotWriter::RetryPolicy pauses;
  pauses.first = options.first_retry;
  pauses.longest = options.longest_retry;
  writer_ = std::make_unique<SnapshotWriter>(
      run.proto.snapshot_prefix(), FormatOf(run.proto), pauses,
      [this](const SnapshotNames& names) { retention_->Written(names); });
}

void SnapshotManager::Restore(const LoadedState& loaded, const std::string& file) {
  RestoreState(loaded, file, run_, model_, tester_);
  saved_iter_ = started_iter_ = run_.iter;
  if (retention_) retention_->Resume(loaded.state);
  if (tester_.early_stopping() != nullptr) tester_.early_stopping()->Resume(loaded.state);
  if (run_.iter >= run_.proto.max_iter()) {
    LOG(INFO) << "The snapshot is from iteration " << run_.iter << " and max_iter is "
              << run_.proto.max_iter() << ": the run is finished, nothing to do";
  }
}

void SnapshotManager::Prepare(const SolverOptions& options) {
  saves_ = options.saves;
  control_.PlanSnapshots(Bytes(), writer_.get());
  const bool saves_any = SavesSnapshots(run_.proto) || options.until > 0;
  if (!saves_any || run_.rank.rank != 0) return;
  CheckForm();
  if (!saves_) return;
  RemoveStrayTemps(run_.proto.snapshot_prefix());
  ProbeWritable(run_.proto.snapshot_prefix(), Bytes());
  CheckSnapshotPaths(run_.proto);
  folder_was_writable_ = true;
}

std::string SnapshotManager::Start() {
  if (!saves_) return "";
  // All ranks wait for the snapshot before. Rank 0 broadcasts once a second that it is not written,
  // because a rank that is silent for long counts as lost.
  while (run_.BroadcastBool(writer_ && !writer_->WaitIdleFor(std::chrono::seconds(1)))) {
  }
  if (on_snapshot_) on_snapshot_();
  const RankTimes::Pause pause(reporter_.times());
  const Strategy::ConsensusScope consensus(run_.strategy);
  // A signal can request a snapshot during a test.
  const EmaWeights::Scope raw(model_.ema.get(), false);
  started_iter_ = run_.iter;
  control_.NoteSnapshot();
  if (run_.rank.rank != 0) {
    saved_iter_ = run_.iter;
    if (run_.pipeline != nullptr) {
      SendStage(run_, model_);
    } else {
      caffe::SolverState own;  // StateTo sends rank 0 what only this rank has
      StateTo(run_, model_, tester_, &own);
    }
    return "";
  }
  SnapshotContent& content = writer_->Next();
  NoteWritten();
  const auto start = std::chrono::steady_clock::now();
  CopyTo(&content);
  const SnapshotNames names = SnapshotNamesAt(run_.proto, run_.iter);
  started_ = {};
  started_.iter = run_.iter;
  started_.model = names.model;
  started_.state = names.state;
  if (model_.ema) started_.averaged = names.averaged;
  run_.observer.OnSnapshotStart(started_);
  writer_->Start();
  try {
    WriteLayerFiles(*model_.net, run_.iter);
  } catch (const Error& error) {
    LOG(WARNING) << error.what() << "; the run tries again with the next snapshot";
  }
  copy_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return names.model;
}

// Copies the run into *content. Throws kDiverged if the weights are not finite.
void SnapshotManager::CopyTo(SnapshotContent* content) {
  content->iter = run_.iter;
  WeightsTo(*model_.net, run_.proto.snapshot_diff(), &content->model);
  StateTo(run_, model_, tester_, &content->state);
  content->has_averaged = model_.ema != nullptr;
  if (model_.ema) model_.ema->ToProto(&content->averaged);
  if (run_.pipeline != nullptr) GatherStages(run_, model_, content);
  const std::string broken = BrokenIn(content->model);
  if (!broken.empty()) {
    throw Error(ErrorCode::kDiverged,
                Join("iteration ", run_.iter, ": the weights of ", broken,
                     " are not finite, so no snapshot is written. ", DivergenceAdvice(run_.proto)));
  }
  if (retention_) retention_->Begin(run_.iter, &content->state);
  if (EarlyStopping* const best = tester_.early_stopping()) best->ToState(&content->state);
}

void SnapshotManager::NoteWritten() {
  if (!writer_) return;
  writer_->ThrowFailure();
  ReportWritten();
}

void SnapshotManager::ReportWritten() {
  if (writer_->count() == noted_) return;
  noted_ = writer_->count();
  saved_iter_ = started_.iter;
  control_.reserve().NoteSnapshot(copy_seconds_ + writer_->busy_seconds());
  VLOG(1) << "The snapshot of iteration " << started_.iter << " took " << copy_seconds_
          << " s to copy and " << writer_->seconds() << " s to write, " << writer_->busy_seconds()
          << " s of them busy";
  run_.observer.OnSnapshot(started_);
}

void SnapshotManager::Await() {
  if (!writer_) return;
  writer_->Wait();
  NoteWritten();
}

void SnapshotManager::Settle() {
  if (!writer_) return;
  writer_->WaitIdle();
  ReportWritten();
}

bool SnapshotManager::NeedsLast(bool stopped) const {
  if (!run_.TestsAndSaves() || !saves_) return false;
  const bool begun = run_.BroadcastBool(started_iter_ == run_.iter);
  return !begun && (stopped || run_.proto.snapshot_after_train());
}

void SnapshotManager::AwaitLast() {
  if (!run_.TestsAndSaves()) return;
  LimitLast();
  // A rank that fails also ends rank 0, so all ranks stay until rank 0 has written.
  while (run_.BroadcastBool(writer_ && !writer_->WaitFor(std::chrono::seconds(1)))) {
    if (writer_ && writer_->refused()) LimitLast();
  }
  Await();
  run_.BroadcastBool(true);
}

// Sets until when the last snapshot is retried. Called repeatedly, because a SIGTERM that comes
// meanwhile may shorten that time.
void SnapshotManager::LimitLast() {
  if (!writer_) return;
  const auto now = std::chrono::steady_clock::now();
  if (last_begun_ == std::chrono::steady_clock::time_point()) last_begun_ = now;
  SnapshotWriter::LastTries last;
  last.rescue_folders = rescue_.folders;
  last.resume_command = rescue_.resume_command;
  last.was_writable = folder_was_writable_;
  const std::optional<std::chrono::steady_clock::time_point> end = control_.reserve().LastTry();
  last.until = end ? *end : last_begun_ + rescue_.patience;
  last.reason = end ? "the run must end after that" : "the end of this job is unknown";
  const auto term = control_.TermTime();
  if (term && writer_->refused()) {
    if (!kill_wait_)
      kill_wait_ = rescue_.kill_wait ? rescue_.kill_wait() : SolverOptions::KillWait();
    const auto stop = *term + kill_wait_->time - control_.reserve().SnapshotReserve();
    if (kill_wait_->time.count() > 0 && (!end || stop < last.until)) {
      last.until = stop;
      last.reason = kill_wait_->reason;
    }
  }
  writer_->SetLast(std::move(last));
}

uint64_t SnapshotManager::Bytes() const {
  const size_t arrays = 1 + model_.optimizer->state_arrays().size() + (model_.ema ? 1 : 0);
  return WholeWeightBytes(run_, model_) * arrays + run_.strategy.MaxStateBytes();
}

std::string SnapshotManager::DescribeBest() const {
  const EarlyStopping* const best = tester_.early_stopping();
  if (best == nullptr || !best->BestIter()) return "";
  const SnapshotNames names = SnapshotNamesAt(run_.proto, *best->BestIter());
  return best->DescribeBest(model_.ema ? names.averaged : names.model);
}

// Checks what would make every snapshot fail in any folder.
void SnapshotManager::CheckForm() const {
  constexpr size_t kMost = INT_MAX;
  if (run_.strategy.MaxStateBytes() > kMost) {
    run_.spec.Fail("strategy",
                   Join("the states of all ranks would need ", run_.strategy.MaxStateBytes(),
                        " bytes in a snapshot, but a protobuf file can have at most 2 GiB "
                        "- 1; use fewer ranks, or strategy: \"synchronous\""));
  }
  if (FormatOf(run_.proto) == SnapshotFormat::kHdf5) {
    std::vector<std::string> names;
    for (const Node& node : model_.net->graph().nodes) names.push_back(node.spec.name());
    CheckHdf5Names(names);
  } else {
    CheckModelBytes(WholeWeightBytes(run_, model_) * (run_.proto.snapshot_diff() ? 2 : 1));
  }
}

}  // namespace trainer
