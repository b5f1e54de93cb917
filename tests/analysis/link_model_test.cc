// Compares predicted transfer times with values worked out by hand.

#include "trainer/analysis/scaling/link_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

constexpr double kLinkTiny = 1e-12;

TEST(LinkModelTest, TakesItsLatencyAndItsBytes) {
  const LinkModel link("test", 1e-3, 1e8, 1e-5);
  EXPECT_NEAR(link.Seconds(0, 1), 1e-3, kLinkTiny);
  EXPECT_NEAR(link.Seconds(1e6, 1), 1e-3 + 1e-2, kLinkTiny);
  EXPECT_NEAR(link.Seconds(1e6, 4), 1e-3 + 1e-2 + 3e-5, kLinkTiny);
  EXPECT_NEAR(link.Latency(4), 1e-3 + 3e-5, kLinkTiny);
  EXPECT_NEAR(link.BytesPerSecond(), 1e8, 1);
}

TEST(LinkModelTest, JoinsMeasuredTimesByStraightLines) {
  const LinkModel link("measured", {{4000, 40e-6}, {0, 10e-6}, {1000, 20e-6}}, 0);
  EXPECT_NEAR(link.Seconds(0, 1), 10e-6, kLinkTiny);
  EXPECT_NEAR(link.Seconds(500, 1), 15e-6, kLinkTiny);
  EXPECT_NEAR(link.Seconds(2500, 1), 30e-6, kLinkTiny);
  EXPECT_NEAR(link.Seconds(7000, 1), 60e-6, kLinkTiny);  // extrapolated at the last rate
  EXPECT_NEAR(link.BytesPerSecond(), 150e6, 1);
}

TEST(LinkModelTest, TakesNoLessForMoreBytes) {
  const LinkModel link("measured", {{0, 10e-6}, {1000, 5e-6}, {2000, 30e-6}}, 0);
  EXPECT_NEAR(link.Seconds(1000, 1), 10e-6, kLinkTiny);
  EXPECT_NEAR(link.Seconds(1500, 1), 20e-6, kLinkTiny);
}

TEST(LinkModelTest, RefusesASingleSize) {
  EXPECT_THROW(LinkModel("x", {{8, 1e-6}}, 0), Error);
  EXPECT_THROW(LinkModel("x", {{8, 1e-6}, {8, 2e-6}}, 0), Error);
}

TEST(LinkModelTest, IsFoundByItsNameInAnyCase) {
  ASSERT_NE(FindLink("10gbe"), nullptr);
  EXPECT_STREQ(FindLink("10gbe")->name, "10GbE");
  EXPECT_EQ(FindLink("token ring"), nullptr);
  for (const KnownLink& link : KnownLinks()) {
    EXPECT_GT(link.latency, link.per_message) << link.name;
    EXPECT_GT(link.bytes_per_second, 1e8) << link.name;
  }
}

}  // namespace
}  // namespace trainer
