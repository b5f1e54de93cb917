// Runs one iteration and decides when its loss is taken.

#include <cmath>
#include <utility>

#include "snapshot_manager.h"
#include "trainer/base/text/text.h"
#include "trainer/net/broken_pass.h"
#include "trainer/net/data_layers.h"
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
  return run_->losses.last();
}

void Solver::StepAsync() { RunStep(true); }

// One iteration, in this order: gradients and loss at the present weights, the report about them,
// the update. With `async` the device computes this step while the host takes the loss of the step
// before, so at most two updates follow a loss that ends the run.
void Solver::RunStep(bool async) {
  model_->objective->ReduceOver(strategy_->ReducesGradients(run_->iter) ? run_->group : nullptr);
  async = async && !reporter_->IsDue() && !model_->optimizer->Reevaluates() &&
          model_->objective->IsAsync();
  model_->net->SetDebugInfo(reporter_->ShowsDebugInfo());
  const Hyperparams hyper = run_->schedule.At(run_->iter);
  model_->optimizer->ComputeGradients(hyper, /*fused=*/async && run_->rank.size == 1);
  Synchronize();
  if (async) {
    pending_iter_ = run_->iter;
  } else {
    TakeLoss();
  }
  if (run_->schedule.Advance(run_->iter)) {
    run_->observer.OnNote(
        Join("MultiStep Status: Iteration ", run_->iter, ", step = ", run_->schedule.steps()));
  }
  reporter_->Report(hyper.lr);
  strategy_->BeforeUpdate(hyper);
  model_->optimizer->Update(hyper);
  model_->optimizer->EmitNotes(/*wait=*/false);
  ReduceBadRecords(*model_->net,
                   ReduceOver(strategy_->IsSynchronous() ? run_->DataGroup() : nullptr));
  FinishIteration();
  if (model_->ema && !model_->fuses_ema) model_->ema->Add(run_->iter);
}

void Solver::TakeLoss() {
  const float loss = model_->optimizer->TakeLoss();
  if (!std::isfinite(loss) || (run_->IsDisplayed() && !WeightsAreFinite())) {
    Diverge(run_->iter, loss, WhatIsNotFinite());
  }
  run_->losses.Add(loss);
}

void Solver::Synchronize() {
  if (pending_iter_) {
    const int iter = *std::exchange(pending_iter_, std::nullopt);
    const float loss = model_->optimizer->TakeLoss();
    if (!std::isfinite(loss)) Diverge(iter, loss, "");  // the update has since spoilt all weights
    run_->losses.Add(loss);
  }
  model_->optimizer->EmitNotes(/*wait=*/true);
}

// `cause`: what WhatIsNotFinite returned, or "" where that would not be the cause.
void Solver::Diverge(int iter, float loss, const std::string& cause) {
  snapshots_->Settle();
  throw Error(
      ErrorCode::kDiverged,
      Join("iteration ", iter, ": the loss is ", loss, cause,
           SnapshotWords(snapshots_->saved_iter(), iter), ". ", run_->schedule.PlaceOf(iter),
           ". Try a lower base_lr or clip_gradients, and check the scale of the data"));
}

// Looks in the weights first, which the previous update may have spoilt, then in the batch. A rank
// that has one stage of the net or several virtual ranks cannot compute the batch again.
std::string Solver::WhatIsNotFinite() {
  const std::string param = FirstNonFiniteParam();
  if (!param.empty()) return "; the weights of " + param + " are not finite";
  const std::string pass = run_->partition == nullptr ? DescribeBrokenPass(*model_->net) : "";
  return pass.empty() ? "" : "; " + pass;
}

// A finite loss does not imply finite weights: oneDNN's ReLU after a convolution turns NaN into 0.
bool Solver::WeightsAreFinite() {
  return std::isfinite(model_->objective->Norm(model_->params.Weights())) ||
         FirstNonFiniteParam().empty();
}

std::string Solver::FirstNonFiniteParam() const {
  std::vector<float> host;
  for (const Param* param : model_->net->params()) {
    host.resize(static_cast<size_t>(param->count()));
    run_->device.CopyToHost(host.data(), param->weight, host.size() * sizeof(float));
    for (const float weight : host) {
      if (!std::isfinite(weight)) {
        return Join("layer '", param->layer, "' (parameter ", param->index, ")");
      }
    }
  }
  return "";
}

}  // namespace trainer
