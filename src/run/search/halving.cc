#include "search/halving.h"

#include <algorithm>
#include <cmath>

namespace trainer {
namespace {

constexpr size_t kKeptShare = 3;  // one of so many trials continues

// Returns the indices of the trials that may continue after `done` finished stages, the best first.
std::vector<size_t> Continuing(std::span<const TrialState> states, size_t done) {
  std::vector<size_t> reached;
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].stages.size() >= done) reached.push_back(i);
  }
  std::ranges::stable_sort(reached, {}, [&](size_t i) { return states[i].Cost(done - 1); });
  reached.resize(reached.size() / kKeptShare);
  std::erase_if(reached, [&](size_t i) {
    return states[i].stages.size() > done || states[i].over || std::isinf(states[i].Cost(done - 1));
  });
  return reached;
}

}  // namespace

std::vector<std::string> StagesOf(bool stops_early) {
  if (!stops_early) return {kWholeRun};
  return {"1/9", "1/3", kWholeRun};
}

std::vector<size_t> NextTrials(std::span<const TrialState> states, size_t stages) {
  std::vector<size_t> next;
  for (size_t done = stages - 1; done > 0; --done) {
    const std::vector<size_t> better = Continuing(states, done);
    next.insert(next.end(), better.begin(), better.end());
  }
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].stages.empty() && !states[i].over) next.push_back(i);
  }
  return next;
}

}  // namespace trainer
