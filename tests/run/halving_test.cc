// The choice of the next trial in a random search.

#include "search/halving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns a trial whose finished stages have these scores. Lower scores are better.
TrialState After(const std::vector<double>& scores) {
  TrialState state;
  for (const double score : scores) state.stages.push_back({"", score, 0});
  return state;
}

TEST(HalvingTest, NewTrialsBeginInTheirOrder) {
  EXPECT_THAT(NextTrials(std::vector<TrialState>(3), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(NextTrials({}, 3), IsEmpty());
  const std::vector<TrialState> states = {After({1}), After({}), After({2}), After({})};
  EXPECT_THAT(NextTrials(states, 1), ElementsAre(1, 3));
}

TEST(HalvingTest, TheBestThirdContinuesBeforeNewTrialsBegin) {
  std::vector<TrialState> states = {After({0.5}), After({0.2}), After({})};
  EXPECT_THAT(NextTrials(states, 3), ElementsAre(2)) << "a third of two is none";
  states[2] = After({0.9});
  EXPECT_THAT(NextTrials(states, 3), ElementsAre(1));
  states.insert(states.end(), {After({0.1}), After({0.3}), After({0.4}), After({})});
  EXPECT_THAT(NextTrials(states, 3), ElementsAre(3, 1, 6)) << "the best two of six, then the new";
  states[3] = After({0.1, 0.6});
  EXPECT_THAT(NextTrials(states, 3), ElementsAre(1, 6)) << "it has continued already";
}

TEST(HalvingTest, TheLastStageComesFirst) {
  std::vector<TrialState> states(9, After({0.5}));
  states[0] = After({0.1, 0.3});
  states[1] = After({0.2, 0.2});
  states[2] = After({0.3, 0.1});
  EXPECT_THAT(NextTrials(states, 3), ElementsAre(2)) << "the best of three at a third";
  states[2] = After({0.3, 0.1, 0.05});
  EXPECT_THAT(NextTrials(states, 3), IsEmpty());
  states.insert(states.end(), 3, After({0.25}));
  EXPECT_THAT(NextTrials(states, 3), ElementsAre(9, 10))
      << "four of twelve; of equal ones the first";
}

TEST(HalvingTest, HigherScoresMayBeBetter) {
  std::vector<TrialState> states = {After({0.5}), After({0.9}), After({0.2})};
  for (TrialState& state : states) state.lower_is_better = false;
  EXPECT_THAT(NextTrials(states, 3), ElementsAre(1));
}

TEST(HalvingTest, TrialsThatDivergedOrAreOverDoNotContinue) {
  std::vector<TrialState> states(6, After({0.5}));
  states[0] = After({0.1});
  states[0].over = true;  // `patience` ended it
  states[1].stages[0].mean = std::nullopt;
  EXPECT_THAT(NextTrials(states, 3), ElementsAre(2)) << "two of six, and one of the two is over";
  for (TrialState& state : states) state.stages[0].mean = std::nullopt;
  EXPECT_THAT(NextTrials(states, 3), IsEmpty());
  TrialState ended;
  ended.over = true;
  EXPECT_THAT(NextTrials(std::vector<TrialState>{ended}, 3), IsEmpty());
}

TEST(HalvingTest, TheStagesAreANinthAThirdAndTheWhole) {
  EXPECT_THAT(StagesOf(true), ElementsAre("1/9", "1/3", "1"));
  EXPECT_THAT(StagesOf(false), ElementsAre("1"));
}

}  // namespace
}  // namespace trainer
