// Sums over processes of one machine.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "ranks.h"

namespace trainer {
namespace {

class SumsTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Of, SumsTest, testing::Values(2, 3, 4), testing::PrintToStringParamName());

// A block of a group's gradients.
class Gradients {
 public:
  Gradients(Communicator& group, size_t count)
      : memory_(group.gradient_memory()),
        bytes_(count * sizeof(float)),
        data_(static_cast<float*>(memory_->allocate(bytes_, 64))) {}
  ~Gradients() { memory_->deallocate(data_, bytes_, 64); }
  std::span<float> span() const { return {data_, bytes_ / sizeof(float)}; }

 private:
  std::pmr::memory_resource* memory_;
  size_t bytes_;
  float* data_;
};

// Returns number i of a rank.
float NumberSums(int rank, size_t i) {
  return static_cast<float>((rank + 1) * static_cast<int>(i % 97));
}

void ExpectSum(std::span<float> values, Communicator& group) {
  const auto [rank, count] = group.rank();
  for (size_t i = 0; i < values.size(); ++i) values[i] = NumberSums(rank, i);
  group.AllReduce(values);
  for (size_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (int r = 0; r < count; ++r) sum += NumberSums(r, i);
    ASSERT_EQ(values[i], sum) << i << " of " << values.size();
  }
}

TEST_P(SumsTest, AreRightInGradientsAndElsewhere) {
  ExpectRanks(GetParam(), [](World& world) {
    for (const size_t count : {1u, 17u, 1024u, 1025u, 8192u, 8193u, 100'003u, 1'000'000u}) {
      const Gradients gradients(world.group(), count);
      ExpectSum(gradients.span(), world.group());
      std::vector<float> elsewhere(count);
      ExpectSum(elsewhere, world.group());
      ExpectSum(gradients.span(), world.group());
    }
  });
}

TEST_P(SumsTest, AddNeighboursFirst) {
  ExpectRanks(GetParam(), [](World& world) {
    constexpr float kHuge = 1e30f;
    const auto [rank, count] = world.group().rank();
    EXPECT_EQ(world.group().WhyNotTreeOrder(), "");
    const Gradients gradients(world.group(), 50'000);
    std::vector<float> few(5);
    for (const std::span<float> values : {gradients.span(), std::span(few)}) {
      // (1 + huge) + (-huge + 1) is 0, but from left to right it is 1; with two ranks it is huge.
      const float own[] = {1, kHuge, -kHuge, 1};
      std::ranges::fill(values, own[rank]);
      world.group().AllReduce(values);
      for (const float value : values) ASSERT_EQ(value, count == 2 ? kHuge : 0);
    }
  });
}

TEST_P(SumsTest, OfSlicesArriveInPlaceWhateverTheBucket) {
  for (const size_t bucket_bytes : {4u, 4096u, 1u << 20}) {
    World::Options settings;
    settings.bucket_bytes = bucket_bytes;
    const RanksOutcome outcome = RunRanks(
        GetParam(),
        [](World& world) {
          constexpr size_t kSlice = 3000;
          Communicator& group = world.group();
          const auto [rank, count] = group.rank();
          const Gradients gradients(group, 10 * kSlice);
          for (int pass = 0; pass < 5; ++pass) {
            for (size_t slice = 0; slice < 10; ++slice) {
              const std::span<float> values = gradients.span().subspan(slice * kSlice, kSlice);
              std::ranges::fill(values, NumberSums(rank, slice + static_cast<size_t>(pass)));
              group.OnGradientReady(static_cast<int>(slice), values);
              if (slice % 4 != 1) continue;  // else a layer sums between them
              std::vector<float> means(slice + 3);
              ExpectSum(means, group);
            }
            float loss = 1;
            group.AllReduce({&loss, 1});
            EXPECT_EQ(loss, static_cast<float>(count));
            for (size_t slice = 0; slice < 10; ++slice) {
              group.WaitGradient(static_cast<int>(slice));
              float sum = 0;
              for (int r = 0; r < count; ++r)
                sum += NumberSums(r, slice + static_cast<size_t>(pass));
              EXPECT_EQ(gradients.span()[slice * kSlice], sum);
              EXPECT_EQ(gradients.span()[(slice + 1) * kSlice - 1], sum);
            }
          }
          return testing::Test::HasFailure() ? 1 : 0;
        },
        settings);
    EXPECT_EQ(outcome.codes, std::vector<int>(static_cast<size_t>(GetParam()), 0)) << outcome.err;
  }
}

// Rank 0 comes late to each of them, and the others wait for it.
TEST_P(SumsTest, CountTheTimeThatWaitingForALateRankTakes) {
  ExpectRanks(GetParam(), [](World& world) {
    using Seconds = std::chrono::duration<double>;
    const bool late = world.group().rank().rank == 0;
    EXPECT_EQ(world.group().NameOf(0).substr(0, 8), "rank 0 (");
    int mostly_waited = 0;
    for (int sum = 0; sum < 30; ++sum) {
      float one = 1;
      world.group().AllReduce({&one, 1});
      if (late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const double before = world.group().stats()->seconds;
      const auto begin = std::chrono::steady_clock::now();
      world.group().AllReduce({&one, 1});
      const double lasted = Seconds(std::chrono::steady_clock::now() - begin).count();
      const double waited = world.group().stats()->seconds - before;
      EXPECT_LE(waited, lasted);
      mostly_waited += waited > lasted / 2;
    }
    EXPECT_GT(world.group().stats()->seconds, 0);
    // This may fail at times, because the rank may lose its core where it does not wait.
    EXPECT_TRUE(late || mostly_waited > 0);
  });
}

TEST_P(SumsTest, GatherTextsOfAnyBytes) {
  ExpectRanks(GetParam(), [](World& world) {
    const auto [rank, count] = world.group().rank();
    std::string own(static_cast<size_t>(rank * 40'000), '\0');
    for (size_t i = 0; i < own.size(); ++i)
      own[i] = static_cast<char>(i * 7 + static_cast<size_t>(rank));
    const std::vector<std::string> all = world.group().Gather(own);
    ASSERT_EQ(all.size(), rank == 0 ? static_cast<size_t>(count) : 0u);
    for (size_t r = 0; r < all.size(); ++r) {
      ASSERT_EQ(all[r].size(), r * 40'000);
      for (size_t i = 0; i < all[r].size(); ++i) ASSERT_EQ(all[r][i], static_cast<char>(i * 7 + r));
    }
  });
}

TEST_P(SumsTest, BroadcastEachBitOfRank0) {
  ExpectRanks(GetParam(), [](World& world) {
    const std::vector<float> of_rank0 = {-0.0f, 0.0f, 1e-42f, -INFINITY, 3.25f, -1e38f};
    std::vector<float> values(6, static_cast<float>(world.group().rank().rank));
    if (world.group().rank().rank == 0) values = of_rank0;
    world.group().Broadcast(values);
    EXPECT_EQ(std::memcmp(values.data(), of_rank0.data(), 6 * sizeof(float)), 0);
  });
}

TEST(SumsTest, OfNetsOfUnlikeSizesAreRefused) {
  const RanksOutcome outcome = RunRanks(2, [](World& world) {
    const size_t count = world.group().rank().rank == 0 ? 4096 : 8192;
    const Gradients gradients(world.group(), count);
    return 0;
  });
  EXPECT_EQ(outcome.codes, (std::vector<int>{76, 76}));
  ASSERT_EQ(outcome.Errors().size(), 1u) << outcome.err;
  EXPECT_NE(outcome.err.find("the ranks train different nets"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace trainer
