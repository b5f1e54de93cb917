#include "trainer/base/text/duration.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

int64_t Units(const char* text) {
  const auto time = ParseDuration(text);
  return time ? time->count() : -1;
}

int64_t Wall(const char* text) {
  const auto time = ParseWallTime(text);
  return time ? time->count() : -1;
}

TEST(DurationTest, ReadsNumbersWithUnits) {
  EXPECT_EQ(Units("90s"), 90);
  EXPECT_EQ(Units("30m"), 1800);
  EXPECT_EQ(Units("2h"), 7200);
  EXPECT_EQ(Units("1h30m"), 5400);
  EXPECT_EQ(Units("1d2h3m4s"), 93784);
  EXPECT_EQ(Units("0s"), 0);
}

TEST(DurationTest, RefusesWhatHasNoUnitOrUnitsOutOfOrder) {
  for (const char* text : {"", "30", "m", "30x", "30m1h", "1m1m", "-5s", "1.5h", "5 m", "1h 30m",
                           "99999999999999999999s", "40000d", "1:30"}) {
    EXPECT_EQ(Units(text), -1) << text;
  }
}

TEST(DurationTest, ReadsWhatBatchSystemsWrite) {
  EXPECT_EQ(Wall("90"), 5400);  // minutes
  EXPECT_EQ(Wall("5:30"), 330);
  EXPECT_EQ(Wall("4:00:00"), 14400);
  EXPECT_EQ(Wall("2-4"), 187200);
  EXPECT_EQ(Wall("2-04:30"), 189000);
  EXPECT_EQ(Wall("1-02:03:04"), 93784);
  EXPECT_EQ(Wall("90m"), 5400);
}

TEST(DurationTest, RefusesOtherWallTimes) {
  for (const char* text : {"", "-", "1-", "-4", "1:2:3:4", "1-1:2:3:4", "a:b", "4:", ":4", "1:-2",
                           "99999999999-00:00:00", "UNLIMITED", "1 2"}) {
    EXPECT_EQ(Wall(text), -1) << text;
  }
}

TEST(DurationTest, WritesHoursMinutesAndSeconds) {
  EXPECT_EQ(WallTimeText(std::chrono::seconds(5)), "0:00:05");
  EXPECT_EQ(WallTimeText(std::chrono::hours(26)), "26:00:00");
  EXPECT_EQ(WallTimeText(std::chrono::seconds(-5)), "0:00:00");
}

}  // namespace
}  // namespace trainer
