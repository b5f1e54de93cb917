// Converts the state of a run to a snapshot and back.

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <set>

#include "snapshot_retention.h"
#include "solver_context.h"
#include "tester.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/thread_team.h"
#include "trainer/config/blob.h"
#include "trainer/net/layer_state.h"
#include "trainer/net/load_weights.h"
#include "trainer/net/weights.h"
#include "trainer/solver/solver.h"
#include "training_model.h"
#include "zero_weights.h"

namespace trainer {
namespace {

constexpr char kTrain[] = "train";

std::string NetKey(size_t test_net) { return Join("test ", test_net); }

// Throws kBadSnapshot with all differences, because one difference alone may mislead.
[[noreturn]] void Mismatch(const std::string& file, std::span<const std::string> differences) {
  constexpr size_t kShown = 8;
  std::string text = JoinList(differences.first(std::min(kShown, differences.size())), "; ");
  if (differences.size() > kShown) text += Join("; and ", differences.size() - kShown, " more");
  throw Error(ErrorCode::kBadSnapshot, {file},
              text +
                  ". The snapshot was made with another solver or net; give its solver, or start "
                  "from its weights with --weights");
}

// Copies the states of this rank's virtual ranks out of an entry with all virtual ranks.
void TakeVirtualRanks(const caffe::LayerProgress& entry, const VirtualRanks& parts,
                      LayerState& layer) {
  for (int i = 0; i < parts.count; ++i) {
    const int other = parts.first.rank + i - 1;  // virtual rank 0 is not in other_ranks
    const bool has = other >= 0 && other < entry.other_ranks_size();
    (i == 0 ? layer.bytes : layer.other_virtual_ranks.emplace_back()) =
        has ? entry.other_ranks(other) : entry.state();
  }
}

// Adds the states of the virtual ranks after the first. `all` has the states of all virtual ranks
// in order, each as long as the first one, which `entry` already has.
void AddOtherParts(const std::string& all, caffe::LayerProgress* entry) {
  const size_t bytes = entry->state().size();
  for (size_t at = bytes; at + bytes <= all.size(); at += bytes) {
    entry->add_other_ranks(all.substr(at, bytes));
  }
}

// Logs it if only one of the two runs has a loss scale. A run may continue with another number
// type, because weights and optimizer states are f32 in every snapshot.
void NoteOtherScale(const caffe::SolverState& state, const std::optional<LossScaleState>& scale) {
  if (state.has_loss_scale() == scale.has_value()) return;
  if (scale) {
    LOG(INFO) << "The run of the snapshot had no loss scale; this run needs one, because its "
                 "gradients are FLOAT16, and starts with loss scale "
              << scale->factor;
  } else {
    LOG(INFO) << "The run of the snapshot had loss scale " << state.loss_scale().factor()
              << ", because its gradients were FLOAT16; this run needs no loss scale";
  }
}

}  // namespace

void Solver::LoadWeights(const std::vector<std::string>& files) {
  std::vector<Net*> nets = {model_->net.get()};
  for (const SolverTest& test : tester_->tests()) {
    if (test.net != nullptr) nets.push_back(test.net.get());
  }
  WeightLoader loading(nets);
  bool any = false;
  for (const std::string& file : files) {
    LOG(INFO) << "Finetuning from " << EscapeControl(file);
    const caffe::NetParameter model = OwnStage(ReadModel(file));
    if (run_->partition != nullptr && model.layer().empty()) continue;
    loading.Copy(model, file);
    any = true;
  }
  if (any) loading.Finish();
  WarnOfZeroWeights(model_->params, model_->net->params());
  if (model_->ema) model_->ema->Restart();
}

// Returns the differences between a snapshot's state and this solver.
std::vector<std::string> Solver::StateDifferences(const caffe::SolverState& state) const {
  std::vector<std::string> differences;
  if (state.has_solver_type() && state.solver_type() != run_->proto.type()) {
    differences.push_back(Join("the snapshot is from a solver of type '", state.solver_type(),
                               "', but this solver has type '", run_->proto.type(), "'"));
  }
  const size_t expected = WholeParams() * model_->optimizer->state_arrays().size();
  if (static_cast<size_t>(state.history_size()) != expected) {
    differences.push_back(
        Join("it has ", state.history_size(), " history blobs, but this solver needs ", expected));
  }
  return differences;
}

// Copies a snapshot's weights. Throws kBadSnapshot if they are not exactly the weights of this net.
void Solver::CopyAll(const std::string& weights, const std::string& file,
                     std::vector<std::string> differences) {
  const caffe::NetParameter model = OwnStage(ReadModel(weights));
  try {
    for (const std::string& difference : WeightMismatches(model, weights, *model_->net)) {
      differences.push_back(Join("its weights '", weights, "': ", difference));
    }
    if (!differences.empty()) Mismatch(file, differences);
    CopyWeights(model, weights, *model_->net);
    for (const SolverTest& test : tester_->tests()) {
      if (test.net != nullptr) CopyWeights(model, weights, *test.net);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kBadSnapshot) throw;
    throw Error(ErrorCode::kBadSnapshot, {file}, error.what());
  }
}

void Solver::Restore(const LoadedState& loaded, const std::string& file) {
  const caffe::SolverState& state = loaded.state;
  const bool averaged = model_->ema && !loaded.averaged_path.empty();
  if (averaged) {
    CopyAll(loaded.averaged_path, file, {});
    model_->ema->Restart();
  }
  CopyAll(loaded.model_path, file, StateDifferences(state));
  if (model_->ema && !averaged) {
    if (run_->rank.rank == 0) {
      LOG(WARNING) << "The snapshot has no averaged weights (ema_decay): the average starts from "
                      "its weights";
    }
    model_->ema->Restart();
  }
  RestoreHistory(state, file);
  try {
    model_->optimizer->LoadRecord(state.step_state());
  } catch (const Error& error) {
    throw Error(ErrorCode::kBadSnapshot, {file}, error.what());
  }
  if (state.has_loss_scale()) {
    const caffe::LossScale& scale = state.loss_scale();
    model_->optimizer->RestoreLossScale({scale.factor(), scale.good(), scale.skipped()});
  }
  NoteOtherScale(state, model_->optimizer->LossScale());
  WarnOfOtherVirtualRanks(state, run_->spec, model_->virtual_ranks.first.size, TeamSize());
  RestoreProgress(state);
  saved_iter_ = started_iter_ = run_->iter;
  if (kept_) kept_->Resume(state);
  if (tester_->early_stopping() != nullptr) tester_->early_stopping()->Resume(state);
  if (run_->iter >= run_->proto.max_iter()) {
    LOG(INFO) << "The snapshot is from iteration " << run_->iter << " and max_iter is "
              << run_->proto.max_iter() << ": the run is finished, nothing to do";
  }
}

void Solver::RestoreHistory(const caffe::SolverState& state, const std::string& file) {
  LOG(INFO) << run_->proto.type() << "Solver: restoring history";
  const std::vector<Param*>& params = model_->net->params();
  const std::vector<std::vector<float*>>& history = model_->optimizer->state_arrays();
  for (size_t kind = 0; kind < history.size(); ++kind) {
    for (size_t i = 0; i < params.size(); ++i) {
      const int index = HistoryIndex(kind, i);
      const BlobData blob = ReadBlob(state.history(index), {file}, Join("history blob ", index),
                                     ErrorCode::kBadSnapshot);
      if (!FitsShape(blob, params[i]->shape.dims())) {
        const std::string difference[] = {Join("history blob ", index, " has the shape ",
                                               ShapeText(blob.dims), "; parameter ",
                                               params[i]->index, " of layer '", params[i]->layer,
                                               "' has ", params[i]->shape.ToString())};
        Mismatch(file, difference);
      }
      model_->state_store().Import(*params[i], blob.values, history[kind][i]);
    }
  }
}

void Solver::RestoreProgress(const caffe::SolverState& state) {
  run_->iter = state.iter();
  run_->schedule.Restore(state.current_step());
  run_->losses.Restore(state);
  RestoreNet(state, kTrain, *model_->net);
  for (size_t i = 0; i < tester_->tests().size(); ++i) {
    const SolverTest& test = tester_->tests()[i];
    if (test.net != nullptr) RestoreNet(state, NetKey(i), *test.net);
    if (test.nets->rest() != nullptr) RestoreRest(state, NetKey(i), *test.nets->rest());
  }
}

// Data sources continue at one position for all ranks, but the state that layers keep between
// passes belongs to a virtual rank. With another number of virtual ranks these states would not fit
// the records that each one sees, so those layers start anew.
void Solver::RestoreNet(const caffe::SolverState& state, const std::string& name, Net& net) const {
  const bool trains = name == kTrain;
  const bool same = VirtualRanksIn(state) == model_->virtual_ranks.first.size;
  std::set<std::string> own;
  for (const LayerState& layer : SaveLayerStates(net)) {
    if (layer.per_rank) own.insert(layer.layer);
  }
  for (const caffe::NetProgress& progress : state.progress()) {
    if (progress.net() != name) continue;
    std::vector<LayerState> layers;
    for (const caffe::LayerProgress& entry : progress.layers()) {
      LayerState layer{entry.layer(), entry.state(), own.contains(entry.layer()), {}};
      if (layer.per_rank && trains && !same) {
        LOG(WARNING) << EscapeControl(
            Join("The snapshot was made by ", VirtualRanksIn(state), " replicas, but this run has ",
                 model_->virtual_ranks.first.size, ": layer '", entry.layer(),
                 "' resets the state that it keeps from batch to batch"));
        continue;
      }
      if (layer.per_rank && trains) TakeVirtualRanks(entry, model_->virtual_ranks, layer);
      layers.push_back(std::move(layer));
    }
    trainer::Restore(net, static_cast<uint32_t>(progress.passes()), layers);
  }
}

// The net for the last, smaller batch of a test continues where the net for whole batches does.
void Solver::RestoreRest(const caffe::SolverState& state, const std::string& name,
                         Net& rest) const {
  std::vector<LayerState> layers = SaveLayerStates(rest);
  std::erase_if(layers, &LayerState::per_rank);
  for (const caffe::NetProgress& progress : state.progress()) {
    if (progress.net() != name) continue;
    for (LayerState& layer : layers) {
      const auto entry = std::ranges::find(progress.layers(), layer.layer,
                                           [](const auto& one) { return one.layer(); });
      if (entry != progress.layers().end()) layer.bytes = entry->state();
    }
    trainer::Restore(rest, static_cast<uint32_t>(progress.passes()), layers);
  }
}

void Solver::SaveNet(const std::string& name, Net& net, caffe::SolverState& state) const {
  caffe::NetProgress* progress = state.add_progress();
  progress->set_net(name);
  progress->set_passes(net.passes());
  for (const LayerState& layer : SaveLayerStates(net)) {
    caffe::LayerProgress* entry = progress->add_layers();
    entry->set_layer(layer.layer);
    entry->set_state(layer.bytes);
    if (!layer.per_rank || name != kTrain) continue;
    std::string all = layer.bytes;  // by rank, and within a rank by virtual rank
    for (const std::string& part : layer.other_virtual_ranks) all += part;
    if (run_->group != nullptr) {
      const std::vector<std::string> ranks = run_->group->Gather(all);
      all.clear();
      for (const std::string& rank : ranks) all += rank;
    }
    AddOtherParts(all, entry);
  }
}

// Collective; only rank 0's state is complete. Reuses the memory of *proto.
void Solver::StateTo(caffe::SolverState* proto) const {
  caffe::SolverState& state = *proto;
  state.Clear();
  state.set_iter(run_->iter);
  state.set_current_step(run_->schedule.steps());
  state.set_random_seed(run_->seed);
  state.set_solver_type(run_->proto.type());
  run_->losses.Save(&state);
  // With virtual ranks nothing in a snapshot tells how many ranks there were.
  if (run_->proto.virtual_ranks() > 1) {
    state.set_virtual_ranks(static_cast<uint32_t>(run_->proto.virtual_ranks()));
  } else if (run_->rank.size > 1 && run_->partition == nullptr) {
    state.set_replicas(static_cast<uint32_t>(model_->virtual_ranks.first.size));
  }
  state.set_threads(static_cast<uint32_t>(TeamSize()));
  const std::string step_state = model_->optimizer->SaveRecord();
  if (!step_state.empty()) state.set_step_state(step_state);
  if (const std::optional<LossScaleState> scale = model_->optimizer->LossScale()) {
    state.mutable_loss_scale()->set_factor(scale->factor);
    state.mutable_loss_scale()->set_good(scale->good);
    state.mutable_loss_scale()->set_skipped(scale->skipped);
  }
  SaveNet(kTrain, *model_->net, state);
  RankRecordsTo(&state);
  if (run_->rank.rank != 0) return;
  for (size_t i = 0; i < tester_->tests().size(); ++i) {
    SaveNet(NetKey(i), *tester_->tests()[i].net, state);
  }
  HistoryTo(&state);
}

void Solver::HistoryTo(caffe::SolverState* state) const {
  const std::vector<Param*>& params = model_->net->params();
  for (const std::vector<float*>& history : model_->optimizer->state_arrays()) {
    for (size_t i = 0; i < params.size(); ++i) {
      ExportBlob(model_->state_store(), *params[i], history[i], state->add_history());
    }
  }
}

}  // namespace trainer
