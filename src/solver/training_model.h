#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ema_weights.h"
#include "solver_context.h"
#include "trainer/net/net.h"
#include "trainer/optim/optimizer.h"
#include "trainer/solver/solver.h"
#include "virtual_ranks.h"

namespace trainer {

// The net in training on this rank, and what updates it.
struct TrainingModel {
  // Chooses virtual ranks, memory and optimizer. Throws kUsage or kConfig if they do not fit.
  TrainingModel(const SolverContext& run, const SolverOptions& options);
  // Builds the net, the objective and the averaged weights, and prepares the optimizer. Needs the
  // run's seed. Throws kConfig if the net has no loss.
  void Build(const SolverContext& run, const SolverOptions& options);
  // Destroys what Build and the constructor have made, and builds it again for the present
  // iteration. Weights, optimizer state and progress are lost.
  void Rebuild(const SolverContext& run, const SolverOptions& options);

  // Appends the optimizer's state arrays to the history of *state.
  void HistoryTo(caffe::SolverState* state) const;
  // Returns the store of the optimizer's state arrays.
  const ParamStore& state_store() const { return StateStore(*optimizer, params); }

  VirtualRanks virtual_ranks;  // the virtual ranks that this rank computes
  ParamStore params;
  std::unique_ptr<Net> net;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<EmaWeights> ema;  // null without ema_decay
  std::vector<std::string> frozen;  // layers with parameters that `freeze` keeps from learning
  bool fuses_ema = false;           // whether the optimizer's updates also write `ema`

 private:
  void BuildNet(const SolverContext& run, const SolverOptions& options);
};

}  // namespace trainer
