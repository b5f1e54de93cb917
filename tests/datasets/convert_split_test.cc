#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "storage/test_data.h"
#include "trainer/datasets/convert.h"

namespace trainer {
namespace {

TEST(ParseShareTest, TakesPercentSharesAndNumbers) {
  EXPECT_DOUBLE_EQ(ParseSplit("val", "10%").share, 0.1);
  EXPECT_DOUBLE_EQ(ParseSplit("val", "0.25").share, 0.25);
  EXPECT_EQ(ParseSplit("val", "500").count, 500);
  EXPECT_EQ(ParseSplit("val", "1").count, 1);
  EXPECT_TRUE(ParseSplit("val", "").empty());
}

TEST(ParseShareTest, RefusesWhatIsNoPart) {
  for (const char* text : {"0", "-1", "100%", "120%", "1.5", "ten", "10 %", "%", "nan", "inf"}) {
    EXPECT_THAT(Catch([&] { ParseSplit("val", text); }),
                Refuses(ErrorCode::kUsage, std::string("--val=") + text + ": give a share"))
        << text;
  }
}

TEST(DrawShareTest, StratifiedTakesTheSameShareOfEachLabel) {
  std::vector<int32_t> labels;
  for (int i = 0; i < 1000; ++i) labels.push_back(i % 10 == 0 ? 7 : i % 2);
  const std::vector<bool> drawn = DrawSplit(labels, {.share = 0.1}, true, 1);
  std::map<int32_t, int> counts;
  for (size_t i = 0; i < labels.size(); ++i) counts[labels[i]] += drawn[i];
  EXPECT_THAT(counts, testing::ElementsAre(testing::Pair(0, 40), testing::Pair(1, 50),
                                           testing::Pair(7, 10)));
}

TEST(DrawShareTest, RoundsSoThatTheWholeIsExact) {
  const std::vector<int32_t> labels{0, 0, 0, 1, 1, 1, 2, 2, 2, 2};
  const std::vector<bool> drawn = DrawSplit(labels, {.count = 5}, true, 3);
  EXPECT_EQ(std::ranges::count(drawn, true), 5);
}

TEST(DrawShareTest, IsAFunctionOfTheSeed) {
  const std::vector<int32_t> labels(200, 4);
  const std::vector<bool> one = DrawSplit(labels, {.count = 20}, false, 1);
  EXPECT_EQ(std::ranges::count(one, true), 20);
  EXPECT_EQ(DrawSplit(labels, {.count = 20}, false, 1), one);
  EXPECT_NE(DrawSplit(labels, {.count = 20}, false, 2), one);
}

TEST(DrawShareTest, RefusesNothingAndEverything) {
  const std::vector<int32_t> labels(10, 0);
  for (const SplitSize share :
       {SplitSize{.share = 0.01}, SplitSize{.count = 10}, SplitSize{.share = 0.99}}) {
    EXPECT_THAT(Catch([&] { DrawSplit(labels, share, false, 1); }),
                Refuses(ErrorCode::kUsage, "of 10 records was requested; it must be 1 to 9"));
  }
}

}  // namespace
}  // namespace trainer
