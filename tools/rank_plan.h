#pragma once
// How fast several ranks would train, as text and for programs.

#include <string>
#include <vector>

#include "trainer/scaling/step.h"

namespace trainer {

// What is asked, and how the work of a rank came about.
struct RankPlan {
  std::vector<int> ranks;
  Cluster cluster;
  StepOptions options;
  StepWork work;
  std::string net, source;  // "measured here, 2 threads"
};

// Lines of at most 80 columns: a table, and the time line of the last number of ranks.
std::string RankPlanText(const RankPlan& plan);
std::string RankPlanJson(const RankPlan& plan);

}  // namespace trainer
