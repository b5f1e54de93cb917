#include "training_model.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/text/text.h"
#include "trainer/net/join_replicas.h"
#include "trainer/net/label_counts.h"
#include "trainer/net/learning.h"
#include "trainer/net/passes_identical.h"
#include "trainer/net/weights.h"

namespace trainer {
namespace {

// Returns the communicator's memory for gradients, or null for the device's own. Only a synchronous
// device may use it: it has written its results when a call returns, so other ranks read final
// gradients.
std::pmr::memory_resource* GradientMemory(const SolverContext& run) {
  if (run.DataGroup() == nullptr || run.device.IsAsync()) return nullptr;
  return run.group->gradient_memory();
}

// Throws kConfig if the net has no loss: every gradient would be zero, and the run would succeed
// with untrained weights.
void RequireLoss(const Net& net, const NetSpec& spec) {
  if (HasLoss(net)) return;
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

// Throws kConfig if no parameter learns.
void RequireLearning(const Net& net, const NetSpec& spec) {
  if (LearningCounts(net).params > 0) return;
  throw Error(ErrorCode::kConfig, {spec.file},
              "nothing would learn: every layer with weights is frozen or has lr_mult 0; remove "
              "`freeze: true` from at least one layer, or freeze fewer with --freeze");
}

}  // namespace

TrainingModel::TrainingModel(const SolverContext& run, const SolverOptions& options)
    : virtual_ranks(VirtualRanksOf(run.spec, run.DataGroup())),
      params(run.device, GradientMemory(run),
             run.strategy.WeightMemory(run.device, options.window)),
      optimizer(run.strategy.MakeOptimizer(run.spec, run.device)) {
  const int workers = run.strategy.Workers(run.rank.size);
  if (workers < run.rank.size)
    virtual_ranks.first = {std::min(run.rank.rank, workers - 1), workers};
}

void TrainingModel::Build(const SolverContext& run, const SolverOptions& options) {
  BuildNet(run, options);
  objective =
      std::make_unique<Objective>(run.device, *net, params, run.proto.iter_size(), run.DataGroup());
  objective->SetOnlyOwnUpdates(run.strategy.traits().only_own_updates);
  if (!objective->PassesAreOneBatch()) WarnOfLabelCounts(*net, run.proto.iter_size());
  optimizer->Prepare(*objective, [&observer = run.observer](const std::string& line) {
    if (!line.empty()) observer.OnNote(line);
  });
  if (run.proto.ema_decay() <= 0) return;
  ema = std::make_unique<EmaWeights>(run.proto.ema_decay(), run.device, *net);
  fuses_ema =
      objective->UpdatesMayWriteAll() && optimizer->FuseEma(ema->PerParam(), run.proto.ema_decay());
}

void TrainingModel::Rebuild(const SolverContext& run, const SolverOptions& options) {
  ema.reset();
  optimizer.reset();
  objective.reset();
  net.reset();
  params.Clear();
  optimizer = run.strategy.MakeOptimizer(run.spec, run.device);
  Build(run, options);
}

void TrainingModel::HistoryTo(caffe::SolverState* state) const {
  for (const std::vector<float*>& history : optimizer->state_arrays()) {
    for (size_t i = 0; i < history.size(); ++i) {
      ExportBlob(state_store(), *net->params()[i], history[i], state->add_history());
    }
  }
}

void TrainingModel::BuildNet(const SolverContext& run, const SolverOptions& options) {
  NetOptions net_options = run.OptionsOfNet(kTrainNet, options);
  net_options.state = run.spec.train.state;
  net_options.training = true;
  net_options.activation_budget_bytes = options.activation_budget_bytes;
  net_options.rank = virtual_ranks.first;
  net_options.virtual_ranks = virtual_ranks.count;
  net_options.allow_reevaluation = optimizer->Reevaluates();
  net_options.capture = true;
  net_options.keeps_frozen = !IsUnfrozen(run.proto, run.iter);
  optimizer->ConfigureCompile(net_options);
  net_options.states_per_weight = optimizer->StatesPerWeight() + optimizer->ExtraArrays() +
                                  (run.proto.ema_decay() > 0 ? 1 : 0) +
                                  ExtraGradients(virtual_ranks.count, run.proto.iter_size());
  LOG(INFO) << "Creating training net from " << EscapeControl(run.spec.train.description);
  net = std::make_unique<Net>(*run.spec.train.net, net_options, run.device, params);
  if (run.pipeline == nullptr) RequireLoss(*net, *run.spec.train.net);
  frozen = FrozenLayers(*net);
  if (run.pipeline == nullptr && !frozen.empty()) RequireLearning(*net, *run.spec.train.net);
  if (!frozen.empty()) LOG(INFO) << EscapeControl(DescribeLearning(*net));
  if (run.proto.virtual_ranks() > 1) {
    LOG(INFO) << "virtual_ranks " << run.proto.virtual_ranks() << ": each rank computes "
              << virtual_ranks.count << (virtual_ranks.count == 1 ? " part" : " parts")
              << " of every batch, one after the other, and needs "
              << ExtraVirtualRankBytes(net->graph(), virtual_ranks.count, run.proto.iter_size()) /
                     1024
              << " KiB more for their sums";
    return;  // no JoinReplicas: each virtual rank counts the labels of its own part alone
  }
  if (run.DataGroup() == nullptr || !run.strategy.traits().synchronous) return;
  JoinReplicas(*net, {run.rank.size, ReduceOver(run.group)});
  const std::vector<std::string> drawing = DrawingLayers(*net);
  if (run.rank.size == 1 || drawing.empty()) return;
  LOG(INFO) << "Each rank draws different random numbers in " << JoinList(drawing)
            << ": so this run differs from a run of one rank with the same batch by more than "
               "rounding; virtual_ranks makes the result independent of the number of ranks";
}

}  // namespace trainer
