// The values that a random search draws.

#include "search/search_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "support/error_of.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Pair;

const std::vector<std::string> kSpace = {"base_lr=log:1e-4..1e-1", "momentum=uniform:0.8..0.99",
                                         "iter_size=int:1..4", "batch=choice:32,64", "display=10"};

// scripts/golden/search_space.py computed these values.
TEST(SearchSpaceTest, GoldenValuesOfFiveTrials) {
  const SearchSpace space(kSpace);
  const char* const golden[] = {"base_lr=0.001073 momentum=0.8036 iter_size=1 batch=32",
                                "base_lr=0.02451 momentum=0.8654 iter_size=4 batch=64",
                                "base_lr=0.03775 momentum=0.948 iter_size=4 batch=32",
                                "base_lr=0.04704 momentum=0.9238 iter_size=3 batch=64",
                                "base_lr=0.02856 momentum=0.8714 iter_size=1 batch=64"};
  for (int number = 1; number <= 5; ++number) {
    EXPECT_EQ(space.Draw(2, number).Name(), golden[number - 1]);
  }
  const Trial trial = space.Draw(2, 2);
  EXPECT_EQ(trial.number, 2);
  EXPECT_THAT(trial.changes,
              ElementsAre("display=10", "base_lr=0.02451", "momentum=0.8654", "iter_size=4"));
  EXPECT_EQ(trial.batch, "64");
}

TEST(SearchSpaceTest, AValueDependsOnSeedNumberAndKeyOnly) {
  const SearchSpace one({"base_lr=log:1e-4..1e-1"});
  EXPECT_THAT(one.Draw(2, 4).settings, ElementsAre("base_lr=0.04704"));
  EXPECT_NE(one.Draw(3, 4).settings, one.Draw(2, 4).settings);
  const SearchSpace other({"momentum=uniform:0..1", "base_lr=log:1e-4..1e-1"});
  EXPECT_EQ(other.Draw(2, 4).settings[1], "base_lr=0.04704");
}

TEST(SearchSpaceTest, ValuesCoverTheirRangeAndStayInIt) {
  const SearchSpace space({"base_lr=log:0.00123456..1", "gamma=uniform:-3..2", "stepsize=int:-2..2",
                           "stepvalue=choice:[100,200],[300]"});
  int below = 0, low_half = 0;
  std::set<std::string> whole, lists;
  constexpr int kTrials = 2000;
  for (int number = 1; number <= kTrials; ++number) {
    const std::vector<std::string> settings = space.Draw(7, number).settings;
    const auto value = [&](size_t i) {
      return ParseNumber<double>(settings[i].substr(settings[i].find('=') + 1)).value();
    };
    EXPECT_THAT(value(0), AllOf(Ge(0.0012345), Le(1)));
    EXPECT_THAT(value(1), AllOf(Ge(-3), Le(2)));
    below += value(0) < std::sqrt(0.00123456) ? 1 : 0;
    low_half += value(1) < -0.5 ? 1 : 0;
    whole.insert(settings[2]);
    lists.insert(settings[3]);
  }
  EXPECT_NEAR(below, kTrials / 2, 100) << "half of the values are below the geometric mean";
  EXPECT_NEAR(low_half, kTrials / 2, 100);
  EXPECT_THAT(whole,
              ElementsAre("stepsize=-1", "stepsize=-2", "stepsize=0", "stepsize=1", "stepsize=2"));
  EXPECT_THAT(lists, ElementsAre("stepvalue=[100,200]", "stepvalue=[300]"));
}

TEST(SearchSpaceTest, TrialsHaveFoldersByNumberAndARunForEachSeed) {
  const std::vector<Trial> runs = DrawTrials(SearchSpace(kSpace), 2, 2, 2, "out", "runs/snap");
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[2].number, 2);
  EXPECT_EQ(runs[3].folder, "out/trial_0002_seed_2");
  EXPECT_EQ(runs[3].log, "out/trial_0002_seed_2/log");
  EXPECT_THAT(runs[3].Flags(),
              ElementsAre("--set", "display=10", "--set", "base_lr=0.02451", "--set",
                          "momentum=0.8654", "--set", "iter_size=4", "--set", "random_seed=2",
                          "--set", "snapshot_prefix=out/trial_0002_seed_2/snap", "--batch=64"));
  EXPECT_EQ(DrawTrials(SearchSpace(kSpace), 2, 2, 0, "out", "snap")[1].folder, "out/trial_0002");
  EXPECT_EQ(TrialName(12345), "trial_12345");
}

TEST(SearchSpaceTest, TextWithAColonIsNoKind) {
  for (const char* fixed : {"snapshot_prefix=disk:a", "net=file:../net.prototxt", "net=a/b:1..2"}) {
    EXPECT_FALSE(IsDrawn(fixed)) << fixed;
  }
}

TEST(SearchSpaceTest, RefusesWhatCannotBeDrawn) {
  const auto refused = [](const std::string& assignment, const std::string& part) {
    EXPECT_THAT(ErrorOf([&] { SearchSpace({assignment}); }),
                Pair(ErrorCode::kUsage, HasSubstr(part)));
  };
  refused("base_lr=0.1", "--trials: no --set has values to draw; write e.g. --set base_lr=log:");
  refused("base_lr=0.1,0.2",
          "--set base_lr=0.1,0.2: with --trials, write choice: before the "
          "values to draw one of them");
  refused("base_lr=log:0..1", "a range of log: begins above 0; for one that does not use uniform:");
  for (const char* range : {"log:1..0.1", "log:1", "log:a..b", "uniform:1..1", "uniform:0..inf"}) {
    refused(Join("base_lr=", range), "give two numbers, the lower one first, such as ");
  }
  refused("iter_size=int:4..1", "such as int:1..8");
  refused("iter_size=int:1.5..2", "give two whole numbers, such as int:1..8");
  refused("base_lr=logg:1e-4..1e-1",
          "--set base_lr=logg:1e-4..1e-1: there is no 'logg:'. Did you mean 'log:'? Values are "
          "drawn with one of log:, uniform:, int:, choice:");
  refused("batch=choise:32,64", "there is no 'choise:'. Did you mean 'choice:'?");
  refused("base_lr=normal:0..1", "there is no 'normal:'. Values are drawn with one of log:");
  for (const char* key : {"batch", "iter_size", "layer[/ip[12]/].inner_product_param.num_output"}) {
    refused(Join(key, "=uniform:1..8"),
            Join(key, " takes whole numbers; draw them with int:, such as int:1..8, or with"));
  }
  for (const char* choice : {"choice:32", "choice:", "choice:32,32"}) {
    refused(Join("batch=", choice), "give at least two different values, such as choice:32,64");
  }
  const SearchSpace few({"batch=choice:32,64", "iter_size=int:1..3"});
  EXPECT_EQ(few.Combinations(), 6);
  EXPECT_THAT(ErrorOf([&] { DrawTrials(few, 1, 6, 0, "out", "snap"); }),
              Pair(ErrorCode::kUsage, HasSubstr("--trials=6: there are only 6 different trials; to "
                                                "train all of them, list the values as a grid")));
}

}  // namespace
}  // namespace trainer
