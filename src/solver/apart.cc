// The ranks of a run, as their strategy has them train.

#include <glog/logging.h>

#include "trainer/base/text/text.h"
#include "trainer/solver/solver.h"
#include "virtual_ranks.h"

namespace trainer {

// The last calls that all ranks make together, where they go apart.
void Solver::BeginStrategy(const TrainOptions& options, const LoadedState* loaded) {
  if (division_ == nullptr) ShareWeights();
  seat_.emplace(StrategySeat{device_, *objective_, *rule_, *group_, options.peers, seed_});
  if (options.peers != nullptr) post_.reset(options.peers->post());
  strategy_->Prepare(*seat_);
  if (loaded != nullptr) RestoreRank(loaded->state);
  if (loaded != nullptr && strategy_->GoesApart() && replica_.rank == 0) {
    LOG(INFO) << "Strategy " << proto_.strategy()
              << " depends on the timing of the ranks, so this run resumes from the snapshot, but "
                 "two such runs do not give bit-identical results";
  }
  strategy_->Start(state_.iter);
  if (strategy_->GoesApart()) group_ = nullptr;
}

// Of a snapshot of other ranks, or of none, the weights that they have in common are what is left.
void Solver::RestoreRank(const caffe::SolverState& state) {
  const bool same = state.strategy() == proto_.strategy() && PartsIn(state) == parts_->first.size;
  if (same && state.strategy_state_size() == replica_.size) {
    strategy_->RestoreRank(state.strategy_state(replica_.rank));
  } else if (!same && state.strategy_state_size() > 0 && replica_.rank == 0) {
    LOG(WARNING) << EscapeControl(
        Join("The snapshot was made with ", state.replicas(), " ranks and strategy '",
             state.strategy(), "', but this run has ", replica_.size, " and strategy '",
             proto_.strategy(), "': all ranks start from the common weights of the snapshot"));
  }
}

void Solver::RankStatesTo(caffe::SolverState* state) const {
  if (replica_.size == 1 || strategy_->StepsTogether()) return;
  state->set_strategy(proto_.strategy());
  for (std::string& rank : strategy_->RankStates()) {
    state->add_strategy_state(std::move(rank));
  }
}

// Whether this rank takes part in tests and snapshots.
bool Solver::IsAttended() const { return replica_.rank == 0 || !strategy_->GoesApart(); }

void Solver::Advance() {
  last_iter_ = state_.iter;
  state_.iter = strategy_->NextIteration(state_.iter);
  if (seat_) seat_->group.NoteProgress(last_iter_ + 1);
  strategy_->AfterStep(last_iter_ + 1);
}

}  // namespace trainer
