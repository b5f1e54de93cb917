#pragma once
// The differences between two runs, by their cards and solvers.

#include <string>
#include <vector>

namespace trainer {

// The meaning of a difference between two runs.
enum class DifferenceKind {
  kAffects,   // the weights or the tests can differ because of it
  kHarmless,  // they cannot
  kResult,    // it is a result of the run: its state, its tests, its cost
};

struct RunDifference {
  DifferenceKind kind = DifferenceKind::kAffects;
  std::string what;  // "solver base_lr"
  std::string text;  // "0.01 -> 0.1"
};

// Returns the differences from run `a` to run `b`, folders of runs with a card; those that affect
// results first. Data that one run could not read counts as a difference. Throws as ReadRunCard
// does for a folder without a card; kData if solver.prototxt is not the one of the card; and as
// ParseText does.
std::vector<RunDifference> CompareRuns(const std::string& a, const std::string& b);

// Returns whether one of them affects results.
bool AffectsResults(const std::vector<RunDifference>& differences);

// Returns a line for each difference and a last line with their number.
std::string ToText(const std::vector<RunDifference>& differences);

}  // namespace trainer
