#include "virtual_ranks.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/text/text.h"
#include "trainer/strategies/strategy.h"

namespace trainer {
namespace {

void RequireEvenVirtualRanks(const SolverSpec& spec, const Rank& rank) {
  const int virtual_ranks = spec.proto.virtual_ranks(), ranks = rank.size;
  if (virtual_ranks % ranks == 0) return;
  const std::string ends =
      Join("start ", virtual_ranks,
           " ranks, or that number divided by a power of two, or change virtual_ranks");
  throw Error(ErrorCode::kUsage, spec.Where("virtual_ranks"),
              Join("virtual_ranks is ", virtual_ranks, ", and ", ranks,
                   " ranks cannot share these parts evenly",
                   ranks > virtual_ranks ? ": each needs a part of every batch" : "", "; ", ends));
}

}  // namespace

VirtualRanks VirtualRanksOf(const SolverSpec& spec, const Communicator* group) {
  const Rank rank = group == nullptr ? Rank{} : group->rank();
  const int virtual_ranks = spec.proto.virtual_ranks();
  if (virtual_ranks == 1) return {rank, 1};
  RequireEvenVirtualRanks(spec, rank);
  const std::string no_tree = group == nullptr ? "" : group->WhyNotTreeOrder();
  if (!no_tree.empty()) {
    throw Error(ErrorCode::kUsage, spec.Where("virtual_ranks"),
                Join("virtual_ranks is ", virtual_ranks,
                     ", but the gradients of these ranks cannot be added in pairs: ", no_tree));
  }
  RequireOwnMoments(
      spec, Join(" and the solver's virtual_ranks ", virtual_ranks,
                 ": the parts of a batch are computed one after the other, so mean and variance of "
                 "the whole batch are not known in time"));
  const int own = virtual_ranks / rank.size;
  return {{rank.rank * own, virtual_ranks}, own};
}

int VirtualRanksIn(const caffe::SolverState& state) {
  return static_cast<int>(std::max({state.virtual_ranks(), state.replicas(), uint32_t{1}}));
}

void WarnOfOtherVirtualRanks(const caffe::SolverState& state, const SolverSpec& spec,
                             int virtual_ranks, int threads) {
  const int before = VirtualRanksIn(state);
  if (before != virtual_ranks && (state.virtual_ranks() > 1 || spec.proto.virtual_ranks() > 1)) {
    LOG(WARNING) << "In the run of the snapshot, each batch has " << before
                 << (before == 1 ? " part" : " parts") << ", but in this run " << virtual_ranks
                 << ": records, random numbers and sums are divided differently, so the weights "
                    "will differ from that run; virtual_ranks: "
                 << before << " gives the same weights";
  }
  if (spec.proto.virtual_ranks() > 1 && state.has_threads() &&
      static_cast<int>(state.threads()) != threads) {
    LOG(WARNING) << "The snapshot was made with " << state.threads()
                 << (state.threads() == 1 ? " thread" : " threads")
                 << " per rank, but this run has " << threads
                 << ": sums within a layer are divided differently, so the weights will differ in "
                    "their last bits in spite of virtual_ranks; OMP_NUM_THREADS="
                 << state.threads() << " gives the same weights";
  }
}

}  // namespace trainer
