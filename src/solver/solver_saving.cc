// Decides when a run writes its snapshots, and checks early what could prevent it.

#include <glog/logging.h>

#include <bit>
#include <climits>

#include "reporter.h"
#include "run_control.h"
#include "snapshot_retention.h"
#include "solver_context.h"
#include "tester.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/checkpoint/snapshot_writer.h"
#include "trainer/net/layer_state.h"
#include "trainer/net/weights.h"
#include "trainer/solver/solver.h"
#include "training_model.h"

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

// Prepares everything for saving except the folder, which the constructor checks last.
void Solver::PrepareSnapshots(const SolverOptions& options) {
  if (run_->rank.rank != 0) return;
  if (run_->proto.keep_last() > 0 || run_->proto.keep_best() > 0) {
    kept_ = std::make_unique<SnapshotRetention>(run_->spec, tester_->OutputNames());
  }
  RetryPolicy pauses;
  pauses.first = options.first_retry;
  pauses.longest = options.longest_retry;
  writer_ = std::make_unique<SnapshotWriter>(run_->proto.snapshot_prefix(), FormatOf(run_->proto),
                                             pauses, [this](const SnapshotNames& names) {
                                               if (kept_) kept_->Written(names);
                                             });
}

std::string Solver::Snapshot() {
  std::string model = StartSnapshot();
  AwaitSnapshot();
  return model;
}

// All ranks wait until rank 0's writer is done. Rank 0 broadcasts once a second that it is not,
// because a rank that is silent for long counts as lost.
void Solver::AwaitWriter(bool (SnapshotWriter::*wait)(std::chrono::milliseconds time)) {
  while (run_->BroadcastBool(writer_ && !(*writer_.*wait)(std::chrono::seconds(1)))) {
  }
}

std::string Solver::StartSnapshot() {
  Synchronize();
  AwaitWriter(&SnapshotWriter::WaitIdleFor);  // the previous snapshot
  if (on_snapshot_) on_snapshot_();
  const RankTimes::Pause pause(reporter_->times());
  const ConsensusScope consensus(*strategy_);
  const EmaWeights::Scope raw(model_->ema.get(),
                              false);  // a signal can request a snapshot during a test
  started_iter_ = run_->iter;
  control_->NoteSnapshot();
  if (run_->rank.rank != 0) {
    saved_iter_ = run_->iter;
    if (run_->partition != nullptr) {
      SendStageState();
      return "";
    }
    caffe::SolverState own;  // StateTo sends rank 0 what only this rank has
    StateTo(&own);
    return "";
  }
  SnapshotContent& content = writer_->Next();
  NoteWritten();
  const auto start = std::chrono::steady_clock::now();
  content.iter = run_->iter;
  WeightsTo(*model_->net, run_->proto.snapshot_diff(), &content.model);
  StateTo(&content.state);
  content.has_averaged = model_->ema != nullptr;
  if (model_->ema) model_->ema->ToProto(&content.averaged);
  if (run_->partition != nullptr) GatherStageStates(&content);
  const std::string broken = BrokenIn(content.model);
  if (!broken.empty()) {
    throw Error(ErrorCode::kDiverged,
                Join("iteration ", run_->iter, ": the weights of ", broken,
                     " are not finite, so no snapshot is written. Try a lower base_lr or "
                     "clip_gradients"));
  }
  if (kept_) kept_->Begin(run_->iter, &content.state);
  if (EarlyStopping* const best = tester_->early_stopping()) best->ToState(&content.state);
  const SnapshotNames names =
      NamesFor(run_->proto.snapshot_prefix(), run_->iter, FormatOf(run_->proto));
  started_ = {};
  started_.iter = run_->iter;
  started_.model = names.model;
  started_.state = names.state;
  if (model_->ema) started_.averaged = names.averaged;
  run_->observer.OnSnapshotStart(started_);
  writer_->Start();
  try {
    WriteLayerFiles(*model_->net, run_->iter);
  } catch (const Error& error) {
    LOG(WARNING) << error.what() << "; the run tries again with the next snapshot";
  }
  copy_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return names.model;
}

void Solver::NoteWritten() {
  if (!writer_) return;
  writer_->ThrowFailure();
  TakeNoteOfWritten();
}

// Reports a snapshot that was written since the last call.
void Solver::TakeNoteOfWritten() {
  if (writer_->count() == noted_) return;
  noted_ = writer_->count();
  saved_iter_ = started_.iter;
  control_->reserve().NoteSnapshot(copy_seconds_ + writer_->busy_seconds());
  VLOG(1) << "The snapshot of iteration " << started_.iter << " took " << copy_seconds_
          << " s to copy and " << writer_->seconds() << " s to write, " << writer_->busy_seconds()
          << " s of them busy";
  run_->observer.OnSnapshot(started_);
}

void Solver::AwaitSnapshot() {
  if (!writer_) return;
  writer_->Wait();
  NoteWritten();
}

// Called before another error ends the run: waits until a snapshot that is being written is on the
// disk and reports it. Does not throw the writer's own failure.
void Solver::SettleSnapshot() {
  if (!writer_) return;
  writer_->WaitIdle();
  TakeNoteOfWritten();
}

std::string Solver::DescribeBest() const {
  const EarlyStopping* const best = tester_->early_stopping();
  if (best == nullptr || !best->BestIter()) return "";
  const SnapshotNames names =
      NamesFor(run_->proto.snapshot_prefix(), *best->BestIter(), FormatOf(run_->proto));
  return best->DescribeBest(model_->ema ? names.averaged : names.model);
}

bool SavesSnapshots(const caffe::SolverParameter& solver) {
  return solver.snapshot() > 0 || solver.has_snapshot_every() || solver.snapshot_after_train();
}

void CheckSnapshotPaths(const caffe::SolverParameter& solver) {
  const SnapshotNames longest =
      NamesFor(solver.snapshot_prefix(), solver.max_iter(), FormatOf(solver));
  CheckNameLength(solver.ema_decay() > 0 ? longest.averaged : longest.model);
}

// Includes the strategy's state of each rank.
uint64_t Solver::SnapshotBytes() const {
  return WholeWeightBytes() *
             (1 + model_->optimizer->state_arrays().size() + (model_->ema ? 1 : 0)) +
         strategy_->MaxStateBytes();
}

// Checks what would make every snapshot fail in any folder.
void Solver::CheckSnapshotForm() const {
  constexpr size_t kMost = INT_MAX;
  if (strategy_->MaxStateBytes() > kMost) {
    run_->spec.Fail("strategy",
                    Join("the states of all ranks would need ", strategy_->MaxStateBytes(),
                         " bytes in a snapshot, but a protobuf file can have at most 2 GiB "
                         "- 1; use fewer ranks, or strategy: \"synchronous\""));
  }
  if (FormatOf(run_->proto) == SnapshotFormat::kHdf5) {
    std::vector<std::string> names;
    for (const Node& node : model_->net->graph().nodes) names.push_back(node.spec.name());
    CheckHdf5Names(names);
  } else {
    CheckModelBytes(WholeWeightBytes() * (run_->proto.snapshot_diff() ? 2 : 1));
  }
}

// Checks before the first iteration everything else that would make a snapshot fail.
void Solver::CheckSnapshotFolder() const {
  RemoveStrayTemps(run_->proto.snapshot_prefix());
  ProbeWritable(run_->proto.snapshot_prefix(), SnapshotBytes());
  CheckSnapshotPaths(run_->proto);
}

}  // namespace trainer
