#include "trainer/solver/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <utility>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

struct Schedule {
  const caffe::SolverParameter& solver;
  int iter, current_step;
};

// Computes a policy's learning rate for min_lr = 0 and base_lr = 1.
using Formula = std::function<double(const Schedule&)>;

// Returns the part of the iterations from `start` to max_iter that is over at `iter`. It is 0 if
// max_iter is unknown, as for commands that only measure a solver whose length is in epochs.
double PartDone(const caffe::SolverParameter& solver, int iter, int start = 0) {
  const int length = solver.max_iter() - start;
  return length > 0 ? static_cast<double>(iter - start) / length : 0;
}

double Step(const Schedule& s) { return std::pow(s.solver.gamma(), s.iter / s.solver.stepsize()); }
double Exp(const Schedule& s) { return std::pow(s.solver.gamma(), s.iter); }
double Inv(const Schedule& s) {
  return std::pow(1 + s.solver.gamma() * static_cast<double>(s.iter), -s.solver.power());
}
double TakenSteps(const Schedule& s) { return std::pow(s.solver.gamma(), s.current_step); }
double Poly(const Schedule& s) {
  return std::pow(1 - PartDone(s.solver, s.iter), s.solver.power());
}
double Sigmoid(const Schedule& s) {
  return 1 / (1 + std::exp(-s.solver.gamma() * static_cast<double>(s.iter - s.solver.stepsize())));
}

// Returns the first iteration after the warm-up.
int EndOfWarmup(const caffe::SolverParameter& solver) {
  return std::max(solver.warmup_iter(), solver.rampup_interval());
}

double Cosine(const Schedule& s) {
  const double done = PartDone(s.solver, s.iter, EndOfWarmup(s.solver));
  return (1 + std::cos(std::numbers::pi * done)) / 2;
}

const std::map<std::string, Formula>& Formulas() {
  static const std::map<std::string, Formula> formulas = {
      {"fixed", [](const Schedule&) { return 1.0; }},
      {"step", Step},
      {"exp", Exp},
      {"inv", Inv},
      {"multistep", TakenSteps},
      {"plateau", TakenSteps},
      {"poly", Poly},
      {"sigmoid", Sigmoid},
      {"cosine", Cosine},
  };
  return formulas;
}

// Returns the learning rate without warm-up.
double PolicyRate(const Schedule& s) {
  const std::string& policy = s.solver.lr_policy();
  const float low = policy == "poly" || policy == "cosine" ? s.solver.min_lr() : 0;
  return low + (s.solver.base_lr() - low) * Formulas().at(policy)(s);
}

// Returns how many steps a multistep policy has taken by `iter`; 0 for other policies.
int StepsBy(const caffe::SolverParameter& solver, int iter) {
  if (solver.lr_policy() != "multistep") return 0;
  return static_cast<int>(
      std::ranges::count_if(solver.stepvalue(), [&](int step) { return step <= iter; }));
}

// The rate rises linearly until warmup_iter. With warmup_start_lr (Intel Caffe's field) it ends at
// base_lr, with warmup_lr at the policy's rate for that iteration.
double Warmup(const caffe::SolverParameter& solver, int iter) {
  const int end = solver.warmup_iter();
  const bool to_base = solver.has_warmup_start_lr();
  const double start = to_base ? solver.warmup_start_lr() : solver.warmup_lr();
  const double target =
      to_base ? solver.base_lr() : PolicyRate({solver, end, StepsBy(solver, end)});
  return start + (target - start) * iter / end;
}

double Rampup(const caffe::SolverParameter& solver, int iter) {
  const double fraction = static_cast<double>(iter) / solver.rampup_interval();
  return solver.rampup_lr() + (solver.base_lr() - solver.rampup_lr()) * fraction * fraction;
}

// Interpolates from `start` at iteration 0 to `end` at max_iter.
float Between(const caffe::SolverParameter& solver, float start, float end, int iter, float power) {
  const double fraction = std::pow(PartDone(solver, iter), power);
  return static_cast<float>(start + (end - start) * fraction);
}

}  // namespace

float LearningRate(const caffe::SolverParameter& solver, int iter, int current_step) {
  double rate = 0;
  if (iter < solver.warmup_iter()) {
    rate = Warmup(solver, iter);
  } else if (iter < solver.rampup_interval()) {
    rate = Rampup(solver, iter);
  } else {
    rate = PolicyRate({solver, iter, current_step});
  }
  return std::max(static_cast<float>(rate), solver.min_lr());
}

std::string PlaceInSchedule(const caffe::SolverParameter& solver, int iter, int current_step) {
  const std::string rate = Join("The learning rate is ", LearningRate(solver, iter, current_step));
  const int warmup = EndOfWarmup(solver);
  if (iter < warmup) return Join(rate, ", in the warm-up (iteration ", iter, " of ", warmup, ")");
  const std::string& policy = solver.lr_policy();
  const std::string base = Join("base_lr ", solver.base_lr());
  if (policy == "multistep" || policy == "plateau") {
    const int steps = policy == "plateau" ? solver.plateau_winsize_size() : solver.stepvalue_size();
    return Join(rate, ", after ", current_step, " of ", steps, " steps from ", base);
  }
  if (policy == "step") {
    return Join(rate, ", after ", iter / solver.stepsize(), " of ",
                (solver.max_iter() - 1) / solver.stepsize(), " steps from ", base);
  }
  return Join(rate, " (lr_policy \"", policy, "\", ", base, ")");
}

std::string DivergenceAdvice(const caffe::SolverParameter& solver) {
  return Join("Try a lower base_lr or ", solver.clip_value() > 0        ? "a lower clip_value"
                                         : solver.clip_gradients() >= 0 ? "a lower clip_gradients"
                                                                        : "clip_gradients");
}

float Momentum(const caffe::SolverParameter& solver, int iter, float rate) {
  const std::string& policy = solver.momentum_policy();
  if (policy == "poly") {
    return Between(solver, solver.momentum(), solver.max_momentum(), iter, solver.momentum_power());
  }
  if (policy == "opt") {
    const float root = 1 - std::sqrt(rate) / 2;
    return std::min(root * root, solver.has_max_momentum() ? solver.max_momentum() : INFINITY);
  }
  if (policy == "multistep") {
    const int steps = static_cast<int>(
        std::ranges::count_if(solver.momentum_stepvalue(), [&](int step) { return step <= iter; }));
    return steps == 0 ? solver.momentum() : solver.momentum_value(steps - 1);
  }
  return solver.momentum();
}

float WeightDecay(const caffe::SolverParameter& solver, int iter) {
  if (solver.weight_decay_policy() == "fixed") return solver.weight_decay();
  return Between(solver, solver.weight_decay(), solver.max_weight_decay(), iter,
                 solver.weight_decay_power());
}

Hyperparams LrSchedule::At(int iter) const {
  const float rate = LearningRate(solver_, iter, StepsAt(iter));
  return {iter, rate, Momentum(solver_, iter, rate), WeightDecay(solver_, iter)};
}

bool LrSchedule::Advance(int iter, float loss) {
  if (FollowsLoss()) return AdvancePlateau(iter, loss);
  const int before = std::exchange(steps_, StepsAt(iter));
  return steps_ != before;
}

bool LrSchedule::AdvancePlateau(int iter, float loss) {
  if (iter < EndOfWarmup(solver_)) return false;
  if (loss < least_loss_) {
    least_loss_ = loss;
    last_event_ = iter;
  }
  if (steps_ >= solver_.plateau_winsize_size()) return false;
  if (iter - last_event_ < solver_.plateau_winsize(steps_)) return false;
  ++steps_;
  last_event_ = iter;
  return true;
}

std::string LrSchedule::NoteOf(int iter) const {
  return Join(FollowsLoss() ? "Plateau" : "MultiStep", " Status: Iteration ", iter,
              ", step = ", steps_);
}

void LrSchedule::Save(caffe::SolverState* state) const {
  state->set_current_step(steps_);
  if (!FollowsLoss()) return;
  state->set_minimum_loss(least_loss_);
  state->set_iter_last_event(last_event_);
}

void LrSchedule::Restore(const caffe::SolverState& state) {
  steps_ = state.current_step();
  least_loss_ = state.minimum_loss();
  last_event_ = state.iter_last_event();
}

int LrSchedule::StepsAt(int iter) const {
  const bool steps = solver_.lr_policy() == "multistep" && steps_ < solver_.stepvalue_size() &&
                     iter >= solver_.stepvalue(steps_);
  return steps_ + (steps ? 1 : 0);
}

}  // namespace trainer
