#pragma once
// The schedules of the solver: learning rate, momentum and weight decay by iteration.

#include <string>

#include "state.pb.h"
#include "trainer/config/solver_spec.h"
#include "trainer/optim/hyperparams.h"

namespace trainer {

// Returns the learning rate of update `iter` (counted from 0) by Caffe's formulas. `current_step`
// is the number of steps that a multistep or plateau policy has taken; other policies ignore it.
//   fixed      base_lr
//   step       base_lr * gamma ^ floor(iter / stepsize)
//   exp        base_lr * gamma ^ iter
//   inv        base_lr * (1 + gamma * iter) ^ -power
//   multistep  base_lr * gamma ^ current_step
//   plateau    base_lr * gamma ^ current_step
//   poly       min_lr + (base_lr - min_lr) * (1 - iter / max_iter) ^ power
//   sigmoid    base_lr / (1 + exp(-gamma * (iter - stepsize)))
//   cosine     min_lr + (base_lr - min_lr) * (1 + cos(pi * t)) / 2, t rising from 0 at the end of
//              the warm-up to 1 at max_iter (Loshchilov and Hutter, arXiv:1608.03983)
// Before that, one of two warm-ups may apply; the policies count from the run's start all the same:
//   warmup_iter      a line from warmup_lr to the policy's rate at iteration warmup_iter
//   rampup_interval  rampup_lr + (base_lr - rampup_lr) * (iter / rampup_interval) ^ 2, NVIDIA's
// The result is never below min_lr. LoadSolver has checked the policy's name and fields.
float LearningRate(const caffe::SolverParameter& solver, int iter, int current_step);

// Returns the learning rate of update `iter` and its position in the schedule, as the beginning of
// a sentence: "The learning rate is 0.02, in the warm-up (iteration 40 of 500)", "The learning rate
// is 0.001, after 2 of 3 steps from base_lr 0.1", "The learning rate is 0.05 (lr_policy "fixed",
// base_lr 0.05)".
std::string PlaceInSchedule(const caffe::SolverParameter& solver, int iter, int current_step);

// Returns what to try after a run that diverged: "Try a lower base_lr or clip_gradients"; if the
// solver clips already, the field by which it does.
std::string DivergenceAdvice(const caffe::SolverParameter& solver);

// The momentum of update `iter`, whose learning rate is `rate`, NVIDIA Caffe's formulas and one:
//   fixed      momentum
//   poly       momentum + (max_momentum - momentum) * (iter / max_iter) ^ momentum_power
//   opt        (1 - sqrt(rate) / 2) ^ 2, at most max_momentum when that is given
//   multistep  momentum; from iteration momentum_stepvalue(i) on momentum_value(i)
float Momentum(const caffe::SolverParameter& solver, int iter, float rate);

// Returns the weight decay of update `iter`, before a parameter's decay_mult is applied:
//   fixed  weight_decay
//   poly   weight_decay + (max_weight_decay - weight_decay) * (iter / max_iter) ^
//          weight_decay_power
float WeightDecay(const caffe::SolverParameter& solver, int iter);

// The schedules of one run, with the steps that a multistep or plateau policy has taken in it.
class LrSchedule {
 public:
  // `solver` must outlive the object.
  explicit LrSchedule(const caffe::SolverParameter& solver) : solver_(solver) {}

  // Says whether the rate of an update depends on the loss of its own step (plateau). It is then
  // At(iter) after Advance(iter), otherwise At(iter) before it.
  bool FollowsLoss() const { return solver_.lr_policy() == "plateau"; }
  // Returns the hyperparameters of update `iter`.
  Hyperparams At(int iter) const;
  // Takes the step of a multistep or plateau policy that is due before update `iter`, at most one
  // per iteration. Returns whether there was one. `loss` is the mean of the last losses up to this
  // step's (average_loss); only plateau reads it. As in NVIDIA Caffe, plateau takes its step k if
  // that mean has not reached a new minimum, and no step was taken, in the last plateau_winsize(k)
  // iterations. Iterations of a warm-up do not count.
  bool Advance(int iter, float loss);
  // Calls PlaceInSchedule for update `iter`.
  std::string PlaceOf(int iter) const { return PlaceInSchedule(solver_, iter, steps_); }

  // Returns the note that Caffe (multistep) or NVIDIA Caffe (plateau) logs after a step.
  std::string NoteOf(int iter) const;
  // Sets the fields of the state in which a snapshot stores the steps and the least loss.
  void Save(caffe::SolverState* state) const;
  void Restore(const caffe::SolverState& state);

 private:
  int StepsAt(int iter) const;
  bool AdvancePlateau(int iter, float loss);

  const caffe::SolverParameter& solver_;
  int steps_ = 0;
  // plateau: the least mean loss so far, and the iteration of that or of the last step.
  float least_loss_ = caffe::SolverState().minimum_loss();
  int last_event_ = 0;
};

}  // namespace trainer
