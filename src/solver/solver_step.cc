// Runs one iteration and decides when its loss is taken.

#include <cmath>
#include <utility>

#include "all_reduce_over.h"
#include "trainer/base/text/text.h"
#include "trainer/net/broken_pass.h"
#include "trainer/net/data_layers.h"
#include "trainer/net/debug_info.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

// Returns a sentence about the newest snapshot, of iteration `saved` (-1: none), for an error about
// the loss of iteration `iter`.
std::string SnapshotWords(int saved, int iter) {
  if (saved < 0) return ". There is no snapshot yet";
  if (saved < iter) return Join(". The newest snapshot is from iteration ", saved);
  return Join(". The snapshot of iteration ", saved, " has the weights that gave this loss");
}

}  // namespace

float Solver::Step() {
  RunStep(false);
  return state_.losses.last();
}

void Solver::StepAsync() { RunStep(true); }

// One iteration, in this order: gradients and loss at the present weights, the report about them,
// the update. With `async` the device computes this step while the host takes the loss of the step
// before, so at most two updates follow a loss that ends the run.
void Solver::RunStep(bool async) {
  objective_->ReduceOver(strategy_->ReducesGradients(state_.iter) ? group_ : nullptr);
  const bool reports = IsDisplayed() || ShowsNumbers();
  async = async && !reports && !optimizer_->Reevaluates() && objective_->IsAsync();
  const bool debug_info = proto_.debug_info() || spec_.train.net->proto.debug_info();
  if (debug_info && IsDisplayed() && rank_.rank == 0) {
    train_net_->AddHook(DebugInfoHook());
  } else {
    train_net_->RemoveHook(DebugInfoHook());
  }
  const Hyperparams hyper = state_.schedule.At(state_.iter);
  optimizer_->ComputeGradients(hyper, /*fused=*/async && rank_.size == 1);
  Synchronize();
  if (async) {
    pending_iter_ = state_.iter;
  } else {
    TakeLoss();
  }
  if (state_.schedule.Advance(state_.iter)) {
    observer_.OnNote(
        Join("MultiStep Status: Iteration ", state_.iter, ", step = ", state_.schedule.steps()));
  }
  if (IsDisplayed()) Report(hyper.lr);
  if (ShowsNumbers()) ShowNumbers();
  strategy_->BeforeUpdate(hyper);
  optimizer_->Update(hyper);
  optimizer_->EmitNotes(/*wait=*/false);
  ReduceBadRecords(*train_net_, ReduceOver(strategy_->IsSynchronous() ? DataGroup() : nullptr));
  FinishIteration();
  if (ema_ && !update_averages_) ema_->Add(state_.iter);
}

void Solver::TakeLoss() {
  const float loss = optimizer_->TakeLoss();
  if (!std::isfinite(loss) || (IsDisplayed() && !WeightsAreFinite())) {
    Diverge(state_.iter, loss, WhatIsNotFinite());
  }
  state_.losses.Add(loss);
}

void Solver::Synchronize() {
  if (pending_iter_) {
    const int iter = *std::exchange(pending_iter_, std::nullopt);
    const float loss = optimizer_->TakeLoss();
    if (!std::isfinite(loss)) Diverge(iter, loss, "");  // the update has since spoilt all weights
    state_.losses.Add(loss);
  }
  optimizer_->EmitNotes(/*wait=*/true);
}

// `cause`: what WhatIsNotFinite returned, or "" where that would not be the cause.
void Solver::Diverge(int iter, float loss, const std::string& cause) {
  SettleSnapshot();
  throw Error(ErrorCode::kDiverged,
              Join("iteration ", iter, ": the loss is ", loss, cause,
                   SnapshotWords(saved_iter_, iter), ". ", state_.schedule.PlaceOf(iter),
                   ". Try a lower base_lr or clip_gradients, and check the scale of the data"));
}

// Looks in the weights first, which the previous update may have spoilt, then in the batch. A rank
// that has one stage of the net or several virtual ranks cannot compute the batch again.
std::string Solver::WhatIsNotFinite() {
  const std::string param = FirstNonFiniteParam();
  if (!param.empty()) return "; the weights of " + param + " are not finite";
  const std::string pass = partition_ == nullptr ? DescribeBrokenPass(*train_net_) : "";
  return pass.empty() ? "" : "; " + pass;
}

// A finite loss does not imply finite weights: oneDNN's ReLU after a convolution turns NaN into 0.
bool Solver::WeightsAreFinite() {
  return std::isfinite(objective_->Norm(params_.Weights())) || FirstNonFiniteParam().empty();
}

std::string Solver::FirstNonFiniteParam() const {
  std::vector<float> host;
  for (const Param* param : train_net_->params()) {
    host.resize(static_cast<size_t>(param->count()));
    device_.CopyToHost(host.data(), param->weight, host.size() * sizeof(float));
    for (const float weight : host) {
      if (!std::isfinite(weight)) {
        return Join("layer '", param->layer, "' (parameter ", param->index, ")");
      }
    }
  }
  return "";
}

}  // namespace trainer
