#pragma once

#include "trainer/config/solver_spec.h"

namespace trainer {

// The learning rate of update `iter` (counted from 0), Caffe's formulas. `current_step` is the
// number of steps that a multistep policy has taken; other policies ignore it.
//   fixed      base_lr
//   step       base_lr * gamma ^ floor(iter / stepsize)
//   exp        base_lr * gamma ^ iter
//   inv        base_lr * (1 + gamma * iter) ^ -power
//   multistep  base_lr * gamma ^ current_step
//   poly       base_lr * (1 - iter / max_iter) ^ power
//   sigmoid    base_lr / (1 + exp(-gamma * (iter - stepsize)))
// The policy's name and fields were checked by LoadSolver.
float LearningRate(const caffe::SolverParameter& solver, int iter, int current_step);

// Whether a multistep policy takes its next step before update `iter`: at most one per iteration.
bool TakesStep(const caffe::SolverParameter& solver, int iter, int current_step);

}  // namespace trainer
