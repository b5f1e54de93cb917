// The solver's side of snapshots: what goes into the files and back.

#include "trainer/checkpoint/snapshot.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/atomic_file.h"
#include "trainer/base/text.h"
#include "trainer/config/blob.h"
#include "trainer/net/load_weights.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

SnapshotFormat FormatOf(const caffe::SolverParameter& solver) {
  return solver.snapshot_format() == caffe::SolverParameter::HDF5 ? SnapshotFormat::kHdf5
                                                                  : SnapshotFormat::kBinary;
}

std::string NetKey(size_t test_net) { return Join("test ", test_net); }

void SaveProgress(const std::string& name, const Net& net, caffe::SolverState& state) {
  caffe::NetProgress* progress = state.add_progress();
  progress->set_net(name);
  progress->set_passes(net.passes());
  for (const auto& [layer, bytes] : net.SaveLayerStates()) {
    caffe::LayerProgress* entry = progress->add_layers();
    entry->set_layer(layer);
    entry->set_state(bytes);
  }
}

void RestoreNet(const caffe::SolverState& state, const std::string& name, Net& net) {
  for (const caffe::NetProgress& progress : state.progress()) {
    if (progress.net() != name) continue;
    std::vector<std::pair<std::string, std::string>> layers;
    for (const caffe::LayerProgress& entry : progress.layers()) {
      layers.emplace_back(entry.layer(), entry.state());
    }
    net.Restore(static_cast<uint32_t>(progress.passes()), layers);
  }
}

// All that differs at once: one difference alone may mislead.
[[noreturn]] void Mismatch(const std::string& file, std::span<const std::string> differences) {
  constexpr size_t kShown = 8;
  std::string text = JoinList(differences.first(std::min(kShown, differences.size())), "; ");
  if (differences.size() > kShown) text += Join("; and ", differences.size() - kShown, " more");
  throw Error(ErrorCode::kBadSnapshot, {file},
              text +
                  ". It was made by another solver or net; give the solver it belongs to, or "
                  "start from its weights with --weights");
}

}  // namespace

void Solver::LoadWeights(const std::vector<std::string>& files) {
  std::vector<Net*> nets = {train_net_.get()};
  for (const auto& net : test_nets_) nets.push_back(net.get());
  WeightLoading loading(nets);
  for (const std::string& file : files) {
    LOG(INFO) << "Finetuning from " << file;
    loading.Copy(ReadModel(file), file);
  }
  if (!files.empty()) loading.Finish();
  if (average_) average_->Restart();
}

// What in a state is not of this solver.
std::vector<std::string> Solver::StateDifferences(const caffe::SolverState& state) const {
  std::vector<std::string> differences;
  if (state.has_solver_type() && state.solver_type() != proto_.type()) {
    differences.push_back(Join("this state is of a solver of type '", state.solver_type(),
                               "', and the solver here is '", proto_.type(), "'"));
  }
  const size_t expected = train_net_->params().size() * update_->history().size();
  if (static_cast<size_t>(state.history_size()) != expected) {
    differences.push_back(Join("it holds ", state.history_size(),
                               " history blobs, and this solver needs ", expected));
  }
  return differences;
}

// Copies a snapshot's weights, which must be those of this net and of nothing else.
void Solver::CopyAll(const std::string& weights, const std::string& file,
                     std::vector<std::string> differences) {
  const caffe::NetParameter model = ReadModel(weights);
  try {
    for (const std::string& difference : train_net_->Differences(model, weights)) {
      differences.push_back(Join("its weights '", weights, "': ", difference));
    }
    if (!differences.empty()) Mismatch(file, differences);
    train_net_->CopyWeights(model, weights);
    for (const auto& net : test_nets_) net->CopyWeights(model, weights);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kBadSnapshot) throw;
    throw Error(ErrorCode::kBadSnapshot, {file}, error.what());
  }
}

void Solver::Restore(const LoadedState& loaded, const std::string& file) {
  const caffe::SolverState& state = loaded.state;
  const bool averaged = average_ && !loaded.averaged_path.empty();
  if (averaged) {
    CopyAll(loaded.averaged_path, file, {});
    average_->Restart();
  }
  CopyAll(loaded.model_path, file, StateDifferences(state));
  if (average_ && !averaged) {
    LOG(WARNING) << "The snapshot has no averaged weights: the average starts from its weights";
    average_->Restart();
  }
  RestoreHistory(state, file);
  RestoreProgress(state);
  saved_iter_ = state_.iter;
  if (state_.iter >= proto_.max_iter()) {
    LOG(INFO) << "The snapshot is of iteration " << state_.iter << " and max_iter is "
              << proto_.max_iter() << ": nothing is left to do";
  }
}

void Solver::RestoreHistory(const caffe::SolverState& state, const std::string& file) {
  LOG(INFO) << proto_.type() << "Solver: restoring history";
  const std::vector<Param*>& params = train_net_->params();
  const std::vector<std::vector<float*>>& history = update_->history();
  for (size_t kind = 0; kind < history.size(); ++kind) {
    for (size_t i = 0; i < params.size(); ++i) {
      const auto index = static_cast<int>(kind * params.size() + i);
      const BlobData blob = ReadBlob(state.history(index), {file}, Join("history blob ", index),
                                     ErrorCode::kBadSnapshot);
      if (!FitsShape(blob, params[i]->shape.dims())) {
        const std::string difference[] = {Join("history blob ", index, " has the shape ",
                                               ShapeText(blob.dims), "; parameter ",
                                               params[i]->index, " of layer '", params[i]->layer,
                                               "' has ", params[i]->shape.ToString())};
        Mismatch(file, difference);
      }
      params_.Import(*params[i], blob.values, history[kind][i]);
    }
  }
}

void Solver::RestoreProgress(const caffe::SolverState& state) {
  state_.iter = state.iter();
  state_.current_step = state.current_step();
  const auto window = std::min(state.recent_losses_size(), proto_.average_loss());
  state_.recent_losses.assign(state.recent_losses().begin(),
                              state.recent_losses().begin() + window);
  state_.loss_position = state.loss_position() < static_cast<uint32_t>(std::max(window, 1))
                             ? state.loss_position()
                             : 0;
  RestoreNet(state, "train", *train_net_);
  for (size_t i = 0; i < test_nets_.size(); ++i) RestoreNet(state, NetKey(i), *test_nets_[i]);
}

caffe::SolverState Solver::StateProto() const {
  caffe::SolverState state;
  state.set_iter(state_.iter);
  state.set_current_step(state_.current_step);
  state.set_random_seed(seed_);
  state.set_solver_type(proto_.type());
  for (const float loss : state_.recent_losses) state.add_recent_losses(loss);
  state.set_loss_position(static_cast<uint32_t>(state_.loss_position));
  SaveProgress("train", *train_net_, state);
  for (size_t i = 0; i < test_nets_.size(); ++i) SaveProgress(NetKey(i), *test_nets_[i], state);
  const std::vector<Param*>& params = train_net_->params();
  for (const std::vector<float*>& history : update_->history()) {
    for (size_t i = 0; i < params.size(); ++i) {
      caffe::BlobProto* blob = state.add_history();
      for (const int64_t dim : params[i]->shape.dims()) blob->mutable_shape()->add_dim(dim);
      const auto count = static_cast<int>(params[i]->count());
      blob->mutable_data()->Resize(count, 0.0f);
      params_.Export(*params[i], history[i],
                     {blob->mutable_data()->mutable_data(), static_cast<size_t>(count)});
    }
  }
  return state;
}

std::string Solver::Snapshot() {
  const WeightAverage::Scope raw(average_.get(), false);  // a signal may ask during a test
  const std::string broken = FirstNonFiniteParam();
  if (!broken.empty()) {
    throw Error(ErrorCode::kDiverged,
                Join("iteration ", state_.iter, ": the weights of ", broken,
                     " are not finite, so no snapshot is written. Try a lower base_lr or "
                     "clip_gradients"));
  }
  SnapshotReport report;
  report.iter = state_.iter;
  const SnapshotNames names = NamesFor(proto_.snapshot_prefix(), state_.iter, FormatOf(proto_));
  report.model = names.model;
  report.state = names.state;
  if (average_) report.averaged = names.averaged;
  observer_.OnSnapshotStart(report);
  caffe::NetParameter net = train_net_->ToProto(proto_.snapshot_diff());
  std::optional<caffe::NetParameter> averaged;
  if (average_) averaged = average_->ToProto();
  caffe::SolverState state = StateProto();
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
  return params_.WeightBytes() * (1 + update_->history().size() + (average_ ? 1 : 0));
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
