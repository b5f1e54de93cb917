#include "state_io.h"

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "sharded_model.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/thread_team.h"
#include "trainer/config/blob.h"
#include "trainer/net/layer_state.h"
#include "trainer/net/weights.h"

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

// Returns the differences between a snapshot's state and this solver.
std::vector<std::string> StateDifferences(const caffe::SolverState& state, const SolverContext& run,
                                          const TrainingModel& model) {
  std::vector<std::string> differences;
  if (state.has_solver_type() && state.solver_type() != run.proto.type()) {
    differences.push_back(Join("the snapshot is from a solver of type '", state.solver_type(),
                               "', but this solver has type '", run.proto.type(), "'"));
  }
  const size_t expected = WholeParams(run, model) * model.optimizer->state_arrays().size();
  if (static_cast<size_t>(state.history_size()) != expected) {
    differences.push_back(
        Join("it has ", state.history_size(), " history blobs, but this solver needs ", expected));
  }
  return differences;
}

// The weights of a snapshot; their name in errors, and a function that returns them.
struct WeightsSource {
  std::string name;
  std::function<caffe::NetParameter()> read;  // null: the snapshot has none
};

// Copies a snapshot's weights. Throws kBadSnapshot if they are not exactly the weights of this net.
void CopyAll(const WeightsSource& source, const std::string& file,
             std::vector<std::string> differences, const SolverContext& run,
             const TrainingModel& model, const Tester& tester) {
  const std::string& weights = source.name;
  const caffe::NetParameter own = OwnStage(run, source.read());
  try {
    for (const std::string& difference : WeightMismatches(own, weights, *model.net)) {
      differences.push_back(Join("its weights '", weights, "': ", difference));
    }
    if (!differences.empty()) Mismatch(file, differences);
    CopyWeights(own, weights, *model.net);
    for (const SolverTest& test : tester.tests()) {
      if (test.net != nullptr) CopyWeights(own, weights, *test.net);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kBadSnapshot) throw;
    throw Error(ErrorCode::kBadSnapshot, {file}, error.what());
  }
}

void RestoreHistory(const caffe::SolverState& state, const std::string& file,
                    const SolverContext& run, const TrainingModel& model) {
  LOG(INFO) << run.proto.type() << "Solver: restoring history";
  const std::vector<Param*>& params = model.net->params();
  const std::vector<std::vector<float*>>& history = model.optimizer->state_arrays();
  for (size_t kind = 0; kind < history.size(); ++kind) {
    for (size_t i = 0; i < params.size(); ++i) {
      const int index = HistoryIndex(run, model, kind, i);
      const BlobData blob = ReadBlob(state.history(index), {file}, Join("history blob ", index),
                                     ErrorCode::kBadSnapshot);
      if (!FitsShape(blob, params[i]->shape.dims())) {
        const std::string difference[] = {Join("history blob ", index, " has the shape ",
                                               ShapeText(blob.dims), "; parameter ",
                                               params[i]->index, " of layer '", params[i]->layer,
                                               "' has ", params[i]->shape.ToString())};
        Mismatch(file, difference);
      }
      model.state_store().Import(*params[i], blob.values, history[kind][i]);
    }
  }
}

// Data sources continue at one position for all ranks, but the state that layers keep between
// passes belongs to a virtual rank. With another number of virtual ranks these states would not fit
// the records that each one sees, so those layers start anew.
void RestoreNet(const caffe::SolverState& state, const std::string& name, const VirtualRanks& parts,
                Net& net) {
  const bool trains = name == kTrain;
  const bool same = VirtualRanksIn(state) == parts.first.size;
  std::set<std::string> own;
  for (const LayerState& layer : SaveLayerStates(net)) {
    if (layer.per_rank) own.insert(layer.layer);
  }
  for (const caffe::NetProgress& progress : state.progress()) {
    if (progress.net() != name) continue;
    std::vector<LayerState> layers;
    std::set<std::string> reset;
    for (const caffe::LayerProgress& entry : progress.layers()) {
      LayerState layer{entry.layer(), entry.state(), own.contains(entry.layer()), {}};
      if (layer.per_rank && trains && !same) {
        LOG(WARNING) << EscapeControl(Join("The snapshot was made by ", VirtualRanksIn(state),
                                           " replicas, but this run has ", parts.first.size,
                                           ": layer '", entry.layer(),
                                           "' resets the state that it keeps from batch to batch"));
        reset.insert(entry.layer());
        continue;
      }
      if (layer.per_rank && trains) TakeVirtualRanks(entry, parts, layer);
      layers.push_back(std::move(layer));
    }
    for (const std::string& layer :
         Restore(net, static_cast<uint32_t>(progress.passes()), layers)) {
      if (reset.contains(layer)) continue;
      LOG(WARNING) << EscapeControl(Join("The snapshot has no state of layer '", layer,
                                         "': the layer starts as in a new run"));
    }
  }
}

// The net for the last, smaller batch of a test continues where the net for whole batches does.
void RestoreRest(const caffe::SolverState& state, const std::string& name, Net& rest) {
  std::vector<LayerState> layers = SaveLayerStates(rest);
  std::erase_if(layers, &LayerState::per_rank);
  for (const caffe::NetProgress& progress : state.progress()) {
    if (progress.net() != name) continue;
    for (LayerState& layer : layers) {
      const auto entry = std::ranges::find(progress.layers(), layer.layer,
                                           [](const auto& one) { return one.layer(); });
      if (entry != progress.layers().end()) layer.bytes = entry->state();
    }
    Restore(rest, static_cast<uint32_t>(progress.passes()), layers);
  }
}

void RestoreProgress(const caffe::SolverState& state, const TrainingModel& model,
                     const Tester& tester, SolverContext& run) {
  run.iter = state.iter();
  run.schedule.Restore(state);
  run.losses.Restore(state);
  RestoreNet(state, kTrain, model.virtual_ranks, *model.net);
  for (size_t i = 0; i < tester.tests().size(); ++i) {
    const SolverTest& test = tester.tests()[i];
    if (test.net != nullptr) RestoreNet(state, NetKey(i), model.virtual_ranks, *test.net);
    if (test.nets->rest() != nullptr) RestoreRest(state, NetKey(i), *test.nets->rest());
  }
}

void SaveNet(const std::string& name, Net& net, Communicator* group, caffe::SolverState& state) {
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
    if (group != nullptr) {
      const std::vector<std::string> ranks = group->Gather(all);
      all.clear();
      for (const std::string& rank : ranks) all += rank;
    }
    AddOtherParts(all, entry);
  }
}

void RankRecordsTo(const SolverContext& run, caffe::SolverState* state) {
  if (run.rank.size == 1 || run.strategy.traits().synchronous) return;
  state->set_strategy(run.proto.strategy());
  for (std::string& rank : run.strategy.SaveRanks()) {
    state->add_strategy_state(std::move(rank));
  }
}

// Returns rank 0's text, which may be longer than BroadcastString allows, on all ranks.
std::string BroadcastLong(Communicator& group, const std::string& own) {
  constexpr size_t kPiece = 1 << 20;
  const size_t bytes = ParseNumber<size_t>(group.BroadcastString(Join(own.size()))).value_or(0);
  std::string text;
  while (text.size() < bytes) {
    text += group.BroadcastString(own.substr(std::min(text.size(), own.size()), kPiece));
  }
  return text;
}

// Restores a run from a snapshot, wherever its weights are.
void RestoreFrom(const caffe::SolverState& state, const WeightsSource& weights,
                 const WeightsSource& averages, const std::string& file, SolverContext& run,
                 TrainingModel& model, const Tester& tester) {
  const bool averaged = model.ema && averages.read;
  if (averaged) {
    CopyAll(averages, file, {}, run, model, tester);
    model.ema->Restart();
  }
  CopyAll(weights, file, StateDifferences(state, run, model), run, model, tester);
  if (model.ema && !averaged) {
    if (run.rank.rank == 0) {
      LOG(WARNING) << "The snapshot has no averaged weights (ema_decay): the average starts from "
                      "its weights";
    }
    model.ema->Restart();
  }
  RestoreHistory(state, file, run, model);
  try {
    model.optimizer->LoadRecord(state.step_state());
  } catch (const Error& error) {
    throw Error(ErrorCode::kBadSnapshot, {file}, error.what());
  }
  if (state.has_loss_scale()) {
    const caffe::LossScale& scale = state.loss_scale();
    model.optimizer->RestoreLossScale({scale.factor(), scale.good(), scale.skipped()});
  }
  NoteOtherScale(state, model.optimizer->LossScale());
  WarnOfOtherVirtualRanks(state, run.spec, model.virtual_ranks.first.size, TeamSize());
  RestoreProgress(state, model, tester, run);
}

}  // namespace

void RestoreState(const LoadedState& loaded, const std::string& file, SolverContext& run,
                  TrainingModel& model, const Tester& tester) {
  const auto source = [](const std::string& path) {
    const auto read = [path] { return ReadModel(path); };
    return path.empty() ? WeightsSource{} : WeightsSource{path, read};
  };
  RestoreFrom(loaded.state, source(loaded.model_path), source(loaded.averaged_path), file, run,
              model, tester);
}

void RestoreState(SnapshotContent& content, SolverContext& run, TrainingModel& model,
                  const Tester& tester) {
  const auto source = [](caffe::NetParameter& weights) {
    return WeightsSource{"this run", [&weights] { return std::move(weights); }};
  };
  RestoreFrom(content.state, source(content.model),
              content.has_averaged ? source(content.averaged) : WeightsSource{}, "this run", run,
              model, tester);
}

SnapshotContent CopyRun(const SolverContext& run, TrainingModel& model, const Tester& tester) {
  SnapshotContent content;
  content.iter = run.iter;
  WeightsTo(*model.net, false, &content.model);
  content.has_averaged = model.ema != nullptr;
  if (model.ema) model.ema->ToProto(&content.averaged);
  StateTo(run, model, tester, &content.state);
  if (run.group == nullptr) return content;
  // Rank 0 alone knows the progress of the tests; each rank has the optimizer's state.
  content.state.clear_history();
  const std::string state = BroadcastLong(*run.group, content.state.SerializeAsString());
  if (!content.state.ParseFromString(state)) {
    throw Error(ErrorCode::kProtocol, "the state that rank 0 sent is damaged");
  }
  model.HistoryTo(&content.state);
  return content;
}

void StateTo(const SolverContext& run, const TrainingModel& model, const Tester& tester,
             caffe::SolverState* proto) {
  caffe::SolverState& state = *proto;
  state.Clear();
  state.set_iter(run.iter);
  run.schedule.Save(&state);
  state.set_random_seed(run.seed);
  state.set_solver_type(run.proto.type());
  run.losses.Save(&state);
  // With virtual ranks nothing in a snapshot tells how many ranks there were.
  if (run.proto.virtual_ranks() > 1) {
    state.set_virtual_ranks(static_cast<uint32_t>(run.proto.virtual_ranks()));
  } else if (run.rank.size > 1 && run.pipeline == nullptr) {
    state.set_replicas(static_cast<uint32_t>(model.virtual_ranks.first.size));
  }
  state.set_threads(static_cast<uint32_t>(TeamSize()));
  const std::string step_state = model.optimizer->SaveRecord();
  if (!step_state.empty()) state.set_step_state(step_state);
  if (const std::optional<LossScaleState> scale = model.optimizer->LossScale()) {
    state.mutable_loss_scale()->set_factor(scale->factor);
    state.mutable_loss_scale()->set_good(scale->good);
    state.mutable_loss_scale()->set_skipped(scale->skipped);
  }
  SaveNet(kTrain, *model.net, run.group, state);
  RankRecordsTo(run, &state);
  if (run.rank.rank != 0) return;
  for (size_t i = 0; i < tester.tests().size(); ++i) {
    SaveNet(NetKey(i), *tester.tests()[i].net, run.group, state);
  }
  model.HistoryTo(&state);
}

}  // namespace trainer
