// How the solver drives the strategy of a run with several ranks.

#include <glog/logging.h>

#include "initial_weights.h"
#include "trainer/base/text/text.h"
#include "trainer/solver/solver.h"

namespace trainer {

// Prepares the strategy and loads its state. All ranks call this together. Afterwards, ranks of an
// asynchronous strategy run their iterations without collective calls.
void Solver::BeginStrategy(const SolverOptions& options, const LoadedState* loaded) {
  if (run_->partition == nullptr) BroadcastWeights(*run_, *model_, *tester_);
  strategy_context_.emplace(StrategyContext{run_->device, *model_->objective, *model_->optimizer,
                                            *run_->group, options.window, run_->seed});
  if (options.window != nullptr) rpc_.reset(options.window->rpc());
  strategy_->Prepare(*strategy_context_);
  if (loaded != nullptr) LoadRank(loaded->state);
  if (loaded != nullptr && strategy_->IsAsynchronous() && run_->rank.rank == 0) {
    LOG(INFO) << "Strategy " << run_->proto.strategy()
              << " depends on the timing of the ranks, so this run resumes from the snapshot, but "
                 "two such runs do not give bit-identical results";
  }
  strategy_->Begin(run_->iter);
  if (strategy_->IsAsynchronous()) run_->group = nullptr;
}

// Restores this rank's own state. If the snapshot was made with another number of ranks or another
// strategy, only the weights that its ranks had in common are used.
void Solver::LoadRank(const caffe::SolverState& state) {
  const bool same = state.strategy() == run_->proto.strategy() &&
                    VirtualRanksIn(state) == model_->virtual_ranks.first.size;
  if (same && state.strategy_state_size() == run_->rank.size) {
    strategy_->LoadRank(state.strategy_state(run_->rank.rank));
  } else if (!same && state.strategy_state_size() > 0 && run_->rank.rank == 0) {
    LOG(WARNING) << EscapeControl(
        Join("The snapshot was made with ", state.replicas(), " ranks and strategy '",
             state.strategy(), "', but this run has ", run_->rank.size, " and strategy '",
             run_->proto.strategy(), "': all ranks start from the common weights of the snapshot"));
  }
}

void Solver::FinishIteration() {
  run_->last_iter = run_->iter;
  run_->iter = strategy_->NextIteration(run_->iter);
  if (run_->world != nullptr) run_->world->Heartbeat(run_->last_iter + 1);
  strategy_->AfterStep(run_->last_iter + 1);
}

}  // namespace trainer
