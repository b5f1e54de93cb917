#include "host_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using testing::ElementsAre;

// Records the sums instead of computing them.
class Noting final : public ProgressEngine {
 public:
  void Submit(std::span<float> values) override { sizes.push_back(values.size()); }
  void Poll() override {}
  void WaitFor(uint64_t count) override { awaited = count; }

  std::vector<size_t> sizes;
  uint64_t awaited = 0;
};

class ExchangeTest : public testing::Test {
 protected:
  void Ready(int slice, size_t begin, size_t count) {
    communicator_.OnGradientReady(slice, std::span(values_).subspan(begin, count));
  }

  std::vector<float> values_ = std::vector<float>(1000);
  Noting progress_;
  const ControlBlock block_{SharedSegment(ControlBlock::Bytes(2)), 2};
  GradientMemory gradients_{block_, 0, [] {}};
  const Topology topology_ = [] {
    Topology topology;
    topology.rank = {0, 2};
    topology.names = {"rank 0 (a)", "rank 1 (b)"};
    topology.ranks_of_node = {{0, 1}};
    return topology;
  }();
  HostCommunicator communicator_{topology_, progress_, block_.status(0), gradients_};
};

TEST_F(ExchangeTest, JoinsNeighboursUpToABucket) {
  communicator_.SetBucket(100);
  Ready(0, 0, 60);
  Ready(1, 60, 60);
  Ready(2, 120, 10);
  communicator_.WaitGradient(0);
  EXPECT_THAT(progress_.sizes, ElementsAre(120, 10));
  EXPECT_EQ(progress_.awaited, 1u);
  communicator_.WaitGradient(2);
  EXPECT_EQ(progress_.awaited, 2u);
}

TEST_F(ExchangeTest, SumsASmallModelAtOnce) {
  for (int slice = 0; slice < 10; ++slice) Ready(slice, static_cast<size_t>(slice) * 100, 100);
  float loss = 1;
  communicator_.AllReduce({&loss, 1});
  EXPECT_THAT(progress_.sizes, ElementsAre(1000, 1));
}

// A layer may sum in the middle of a backward pass.
TEST_F(ExchangeTest, ASumBetweenSlicesClosesTheBucketBeforeIt) {
  communicator_.SetBucket(1000);
  std::vector<float> means(7);
  Ready(0, 0, 60);
  communicator_.AllReduce(means);
  EXPECT_EQ(progress_.awaited, 2u);
  Ready(1, 60, 60);
  Ready(2, 120, 10);
  communicator_.WaitGradient(0);
  EXPECT_EQ(progress_.awaited, 1u);
  communicator_.WaitGradient(1);
  EXPECT_EQ(progress_.awaited, 3u);
  EXPECT_THAT(progress_.sizes, ElementsAre(60, 7, 70));
}

TEST_F(ExchangeTest, KnowsTheNamesOfAll) { EXPECT_EQ(communicator_.NameOf(1), "rank 1 (b)"); }

TEST_F(ExchangeTest, KeepsApartWhatLiesApart) {
  Ready(0, 0, 10);
  Ready(1, 20, 10);
  communicator_.WaitGradient(1);
  EXPECT_THAT(progress_.sizes, ElementsAre(10, 10));
}

TEST_F(ExchangeTest, CountsSlicesAnewInEachPass) {
  for (int pass = 0; pass < 3; ++pass) {
    Ready(0, 0, 10);
    Ready(1, 10, 10);
    communicator_.WaitGradient(1);
    EXPECT_EQ(progress_.awaited, static_cast<uint64_t>(pass + 1));
    EXPECT_EQ(progress_.awaited, static_cast<uint64_t>(pass) + 1);
  }
}

}  // namespace
}  // namespace trainer
