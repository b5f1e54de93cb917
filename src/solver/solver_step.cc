// Runs one iteration and decides when its loss is taken.

#include <cmath>
#include <utility>

#include "all_reduce_over.h"
#include "trainer/base/text/text.h"
#include "trainer/net/broken_pass.h"
#include "trainer/net/data_layers.h"
#include "trainer/solver/lr_schedule.h"
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

// The callbacks that the optimizer makes into the solver during a step.
class Solver::Frame final : public StepFrame {
 public:
  explicit Frame(Solver& solver) : solver_(solver) {}

  Hyperparams Begin(float loss) override {
    solver_.Synchronize();
    return BeforeUpdate(solver_.BeginStep(loss));
  }
  Hyperparams BeginStarted() override { return BeforeUpdate(solver_.BeginStartedStep()); }
  std::optional<Hyperparams> HyperparamsAhead() override {
    if (!solver_.ahead_ || solver_.rank_.size > 1) return std::nullopt;
    return solver_.HyperparamsAhead();
  }
  void Note(const std::string& text) override { solver_.Note(text); }

 private:
  Hyperparams BeforeUpdate(const Hyperparams& hyper) {
    solver_.strategy_->BeforeUpdate(hyper);
    return hyper;
  }

  Solver& solver_;
};

float Solver::Step() {
  RunStep(false);
  return last_loss_;
}

void Solver::StepAsync() { RunStep(true); }

void Solver::RunStep(bool ahead) {
  objective_->ReduceOver(strategy_->ReducesGradients(state_.iter) ? group_ : nullptr);
  ahead_ = ahead && objective_->IsAsync() && !IsDisplayed() && !ShowsNumbers();
  const bool debug_info = proto_.debug_info() || spec_.train.net->proto.debug_info();
  train_net_->SetDebugInfo(debug_info && IsDisplayed() && rank_.rank == 0);
  Frame frame(*this);
  optimizer_->Step(*objective_, frame);
  ReduceBadRecords(*train_net_, ReduceOver(strategy_->IsSynchronous() ? DataGroup() : nullptr));
  FinishIteration();
  if (ema_ && !update_averages_) ema_->Add(state_.iter);
}

Hyperparams Solver::BeginStep(float loss) {
  if (!std::isfinite(loss) || (IsDisplayed() && !WeightsAreFinite())) {
    Diverge(state_.iter, loss, WhatIsNotFinite());
  }
  RecordLoss(loss);
  const Hyperparams hyper = NextHyperparams();
  if (IsDisplayed()) Report(hyper.lr);
  if (ShowsNumbers()) ShowNumbers();
  return hyper;
}

// Takes the loss of the previous step after this step is queued, so the device has work meanwhile.
// At most two updates follow a loss that ends the run.
Hyperparams Solver::BeginStartedStep() {
  Synchronize();
  if (!ahead_) return BeginStep(objective_->TakeLoss());
  pending_iter_ = state_.iter;
  return NextHyperparams();
}

void Solver::Synchronize() {
  if (pending_iter_) {
    const int iter = *std::exchange(pending_iter_, std::nullopt);
    const float loss = objective_->TakeLoss();
    if (!std::isfinite(loss)) Diverge(iter, loss, "");  // the update has since spoilt all weights
    RecordLoss(loss);
  }
  Note(optimizer_->TakeNote());
}

void Solver::Note(const std::string& text) {
  if (!text.empty()) observer_.OnNote(text);
}

void Solver::RecordLoss(float loss) {
  last_loss_ = loss;
  state_.smoothed_loss = SmoothLoss(loss);
}

Hyperparams Solver::NextHyperparams() {
  if (TakesLrStep(proto_, state_.iter, state_.current_step)) {
    ++state_.current_step;
    observer_.OnNote(
        Join("MultiStep Status: Iteration ", state_.iter, ", step = ", state_.current_step));
  }
  return HyperparamsOf(proto_, state_.iter, state_.current_step);
}

// Returns what NextHyperparams will return, without taking the step of a multistep policy.
Hyperparams Solver::HyperparamsAhead() const {
  const int taken = TakesLrStep(proto_, state_.iter, state_.current_step) ? 1 : 0;
  return HyperparamsOf(proto_, state_.iter, state_.current_step + taken);
}

// Returns the mean of the last average_loss losses.
float Solver::SmoothLoss(float loss) {
  const auto window = static_cast<size_t>(proto_.average_loss());
  if (state_.recent_losses.capacity() < window) state_.recent_losses.reserve(window);
  if (state_.recent_losses.size() < window) {
    state_.recent_losses.push_back(loss);
  } else {
    state_.recent_losses[state_.loss_position] = loss;
    state_.loss_position = (state_.loss_position + 1) % window;
  }
  float sum = 0;
  for (const float recent : state_.recent_losses) sum += recent;
  return sum / static_cast<float>(state_.recent_losses.size());
}

// `cause` is what WhatIsNotFinite returned, or "" if the weights have changed since the loss.
void Solver::Diverge(int iter, float loss, const std::string& cause) {
  SettleSnapshot();
  throw Error(
      ErrorCode::kDiverged,
      Join("iteration ", iter, ": the loss is ", loss, cause, SnapshotWords(saved_iter_, iter),
           ". ", PlaceInSchedule(proto_, iter, state_.current_step),
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
