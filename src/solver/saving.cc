// When and where a run writes its snapshots, and what would keep it from that.

#include <glog/logging.h>

#include <optional>

#include "trainer/base/atomic_file.h"
#include "trainer/base/text.h"
#include "trainer/checkpoint/snapshot_files.h"
#include "trainer/net/weights.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

SnapshotFormat FormatOf(const caffe::SolverParameter& solver) {
  return solver.snapshot_format() == caffe::SolverParameter::HDF5 ? SnapshotFormat::kHdf5
                                                                  : SnapshotFormat::kBinary;
}

}  // namespace

std::string Solver::Snapshot() {
  CatchUp();
  if (before_snapshot_) before_snapshot_();
  const WeightAverage::Scope raw(average_.get(), false);  // a signal may ask during a test
  const std::string broken = FirstNonFiniteParam();
  if (!broken.empty()) {
    throw Error(ErrorCode::kDiverged,
                Join("iteration ", state_.iter, ": the weights of ", broken,
                     " are not finite, so no snapshot is written. Try a lower base_lr or "
                     "clip_gradients"));
  }
  caffe::SolverState state = StateProto();
  if (replica_.rank != 0) {
    saved_iter_ = state_.iter;
    return "";
  }
  SnapshotReport report;
  report.iter = state_.iter;
  const SnapshotNames names = NamesFor(proto_.snapshot_prefix(), state_.iter, FormatOf(proto_));
  report.model = names.model;
  report.state = names.state;
  if (average_) report.averaged = names.averaged;
  observer_.OnSnapshotStart(report);
  caffe::NetParameter net = WeightsOf(*train_net_, proto_.snapshot_diff());
  std::optional<caffe::NetParameter> averaged;
  if (average_) averaged = average_->ToProto();
  SaveSnapshot(proto_.snapshot_prefix(), state_.iter, net, state, FileOps::Posix(),
               averaged ? &*averaged : nullptr, FormatOf(proto_));
  saved_iter_ = state_.iter;
  observer_.OnSnapshot(report);
  return names.model;
}

// A snapshot on the way. When it cannot be written the run goes on: what was learned is in memory,
// and the disk may have room at the next one. The last snapshot has no next one.
void Solver::TrySnapshot() {
  try {
    Snapshot();
  } catch (const Error& error) {
    const bool of_disk = error.code() == ErrorCode::kIo ||
                         error.code() == ErrorCode::kCannotCreate ||
                         error.code() == ErrorCode::kNoPermission;
    if (!of_disk || state_.iter >= proto_.max_iter()) throw;
    LOG(WARNING) << EscapeControl(Join("The snapshot of iteration ", state_.iter,
                                       " could not be written; training goes on and the next "
                                       "snapshot tries again. ",
                                       error.what()));
  }
}

bool SavesSnapshots(const caffe::SolverParameter& solver) {
  return solver.snapshot() > 0 || solver.snapshot_after_train();
}

void CheckSnapshotPaths(const caffe::SolverParameter& solver) {
  const SnapshotNames longest =
      NamesFor(solver.snapshot_prefix(), solver.max_iter(), FormatOf(solver));
  CheckNameLength(solver.ema_decay() > 0 ? longest.averaged : longest.model);
}

uint64_t Solver::SnapshotBytes() const {
  return params_.WeightBytes() * (1 + rule_->history().size() + (average_ ? 1 : 0));
}

// What would make every snapshot fail, wherever it goes.
void Solver::CheckSnapshotForm() const {
  if (FormatOf(proto_) == SnapshotFormat::kHdf5) {
    std::vector<std::string> names;
    for (int i = 0; i < train_net_->NumLayers(); ++i) {
      names.push_back(train_net_->LayerAt(i).name());
    }
    CheckHdf5Names(names);
  } else {
    CheckModelBytes(params_.WeightBytes() * (proto_.snapshot_diff() ? 2 : 1));
  }
}

// Everything else that would make the first snapshot fail, before the first iteration.
void Solver::CheckSnapshotFolder() const {
  RemoveStrayTemps(proto_.snapshot_prefix());
  ProbeWritable(proto_.snapshot_prefix(), SnapshotBytes());
  CheckSnapshotPaths(proto_);
}

}  // namespace trainer
