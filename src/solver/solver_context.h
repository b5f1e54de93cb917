#pragma once

#include <functional>
#include <memory>
#include <span>

#include "loss_window.h"
#include "trainer/checkpoint/solver_state.h"
#include "trainer/config/solver_spec.h"
#include "trainer/monitor/observer.h"
#include "trainer/solver/lr_schedule.h"
#include "trainer/solver/solver.h"
#include "trainer/strategies/pipeline.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

inline constexpr int kTrainNet = 0;  // Pipeline's numbering: test net i is i + 1

// The state of a run that the solver shares with its parts: what stays the same, and what changes
// in each iteration other than weights and optimizer state. Only solver.cc and state_io.cc change
// it.
struct SolverContext {
  const SolverSpec& spec;               // with this rank's nets
  const caffe::SolverParameter& proto;  // of spec
  const Device& device;
  TrainingObserver& observer;
  Strategy& strategy;
  Pipeline* pipeline;  // strategy's; null if this rank has whole nets
  Rank rank;
  Communicator* world;  // of all ranks; null with one rank
  Communicator* group;  // null with one rank, and once the ranks are asynchronous
  uint64_t seed = 0;
  int iter = 0;
  int last_iter = -1;  // the iteration of the last step
  LrSchedule schedule{proto};
  LossWindow losses{proto.average_loss()};

  // Sets `seed` to the solver's random_seed or the snapshot's. If neither has one, draws a seed and
  // logs it, so that the run can be repeated. Collective.
  void ChooseSeed(const LoadedState* loaded);
  // Returns the options that are alike for all nets of this rank.
  NetOptions OptionsOfNet(int net, const SolverOptions& options) const;
  // Returns whether an event with this interval is due now. A rank of an asynchronous strategy can
  // make several steps in one iteration; only the first of them counts.
  bool IsDue(int interval) const {
    return interval > 0 && iter % interval == 0 && iter != last_iter;
  }
  bool IsDisplayed() const { return IsDue(proto.display()); }
  // Returns whether this rank takes part in tests and snapshots.
  bool TestsAndSaves() const { return rank.rank == 0 || !strategy.traits().asynchronous; }
  // Returns the communicator of the ranks that divide each batch; null if one rank reads the data
  // for all.
  Communicator* DataGroup() const { return pipeline == nullptr ? group : nullptr; }
  // Returns rank 0's value. Collective.
  bool BroadcastBool(bool value) const {
    return group == nullptr ? value : group->BroadcastBool(value);
  }
};

// `spec` is cut into stages if the strategy trains one on each rank. The arguments must outlive the
// context.
std::unique_ptr<SolverContext> MakeContext(const SolverSpec& spec, const SolverOptions& options,
                                           const Device& device, TrainingObserver& observer,
                                           Strategy& strategy);

// Returns a function that all-reduces over the ranks of `group`, or an empty one if `group` is
// null.
inline std::function<void(std::span<float>)> ReduceOver(Communicator* group) {
  if (group == nullptr) return {};
  return [group](std::span<float> values) { group->AllReduce(values); };
}

}  // namespace trainer
