// How the solver drives the strategy of a run with several ranks.

#include <glog/logging.h>

#include "trainer/base/text/text.h"
#include "trainer/solver/solver.h"
#include "virtual_ranks.h"

namespace trainer {

// Prepares the strategy and loads its state. All ranks call this together. Afterwards, ranks of an
// asynchronous strategy run their iterations without collective calls.
void Solver::BeginStrategy(const SolverOptions& options, const LoadedState* loaded) {
  if (partition_ == nullptr) BroadcastWeights();
  context_.emplace(
      StrategyContext{device_, *objective_, *optimizer_, *group_, options.window, seed_});
  if (options.window != nullptr) rpc_.reset(options.window->rpc());
  strategy_->Prepare(*context_);
  if (loaded != nullptr) LoadRank(loaded->state);
  if (loaded != nullptr && strategy_->IsAsynchronous() && rank_.rank == 0) {
    LOG(INFO) << "Strategy " << proto_.strategy()
              << " depends on the timing of the ranks, so this run resumes from the snapshot, but "
                 "two such runs do not give bit-identical results";
  }
  strategy_->Begin(state_.iter);
  if (strategy_->IsAsynchronous()) group_ = nullptr;
}

// Restores this rank's own state. If the snapshot was made with another number of ranks or another
// strategy, only the weights that its ranks had in common are used.
void Solver::LoadRank(const caffe::SolverState& state) {
  const bool same =
      state.strategy() == proto_.strategy() && VirtualRanksIn(state) == virtual_ranks_->first.size;
  if (same && state.strategy_state_size() == rank_.size) {
    strategy_->LoadRank(state.strategy_state(rank_.rank));
  } else if (!same && state.strategy_state_size() > 0 && rank_.rank == 0) {
    LOG(WARNING) << EscapeControl(
        Join("The snapshot was made with ", state.replicas(), " ranks and strategy '",
             state.strategy(), "', but this run has ", rank_.size, " and strategy '",
             proto_.strategy(), "': all ranks start from the common weights of the snapshot"));
  }
}

void Solver::RankRecordsTo(caffe::SolverState* state) const {
  if (rank_.size == 1 || strategy_->IsSynchronous()) return;
  state->set_strategy(proto_.strategy());
  for (std::string& rank : strategy_->SaveRanks()) {
    state->add_strategy_state(std::move(rank));
  }
}

// Returns whether this rank takes part in tests and snapshots.
bool Solver::TestsAndSaves() const { return rank_.rank == 0 || !strategy_->IsAsynchronous(); }

void Solver::FinishIteration() {
  last_iter_ = state_.iter;
  state_.iter = strategy_->NextIteration(state_.iter);
  if (context_) context_->group.Heartbeat(last_iter_ + 1);
  strategy_->AfterStep(last_iter_ + 1);
}

}  // namespace trainer
