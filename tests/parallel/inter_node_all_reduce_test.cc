// Sums between machines, which are threads here and exchange messages in memory.

#include "mpi/inter_node_all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;

using Values = std::vector<float>;

// Messages in flight: bytes by sender, receiver and tag, in order.
class Mailbox {
 public:
  void Put(int from, int to, int tag, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    messages_[{from, to, tag}].emplace_back(bytes.begin(), bytes.end());
  }
  bool Take(int from, int to, int tag, std::span<std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    auto& queue = messages_[{from, to, tag}];
    if (queue.empty()) return false;
    EXPECT_EQ(queue.front().size(), bytes.size());
    std::ranges::copy(queue.front(), bytes.begin());
    queue.erase(queue.begin());
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, std::vector<std::vector<std::byte>>> messages_;
};

class PostedMpi final : public Mpi {
 public:
  PostedMpi(Mailbox& eager_buffer, int rank, int count)
      : mailbox_(eager_buffer), rank_(rank), count_(count) {}
  int rank() const override { return rank_; }
  int count() const override { return count_; }
  std::string Version() override { return "posted"; }
  std::vector<std::string> AllGather(const std::string&) override { return {}; }
  void AllReduce(std::span<float>) override {}
  void Send(std::span<const std::byte> bytes, int rank, int tag) override {
    mailbox_.Put(rank_, rank, tag, bytes);
  }
  void Receive(std::span<std::byte> bytes, int rank, int tag) override {
    awaited_.push_back({rank, tag, bytes});
  }
  bool AllDone(int* missing) override {
    std::erase_if(awaited_, [&](const Awaited& message) {
      return mailbox_.Take(message.rank, rank_, message.tag, message.bytes);
    });
    *missing = awaited_.empty() ? -1 : awaited_[0].rank;
    return awaited_.empty();
  }
  void SendDetached(std::vector<std::byte>, int, int) override {}
  bool TryReceive(int, int*, std::vector<std::byte>*) override { return false; }
  bool SendsDone() override { return true; }
  void SendHeartbeat(int) override {}
  bool DrainHeartbeats(int) override { return false; }
  void Finish() override {}
  void Abort(int) override {}

 private:
  struct Awaited {
    int rank, tag;
    std::span<std::byte> bytes;
  };
  Mailbox& mailbox_;
  int rank_, count_;
  std::vector<Awaited> awaited_;
};

// Returns number i of a machine's gradients in a step.
float NumberMpiLink(int machine, int step, size_t i) {
  return static_cast<float>(std::sin(static_cast<double>(i) * (machine + 1.3) + step) *
                            std::pow(10.0, static_cast<double>(i % 5) - 3));
}

struct Result {
  std::vector<Values> of_machines;  // the sums of all steps, by machine
  uint64_t sent = 0, plain = 0;     // of machine 0
};

// Sums `steps` gradients of `count` numbers over machines, in buckets of `bucket` numbers; clears
// the residuals after step `cleared`.
Result SumSteps(CompressionType type, int machines, size_t count, size_t bucket, int steps,
                int cleared = -1) {
  Mailbox eager_buffer;
  Result result;
  result.of_machines.resize(static_cast<size_t>(machines));
  std::vector<std::jthread> threads;
  std::vector<int> rail(static_cast<size_t>(machines));
  for (int m = 0; m < machines; ++m) rail[static_cast<size_t>(m)] = m;
  for (int m = 0; m < machines; ++m) {
    threads.emplace_back([&, m] {
      PostedMpi mpi(eager_buffer, m, machines);
      const ControlBlock block(SharedSegment(ControlBlock::Bytes(1)), 1);
      InterNodeAllReduce link(
          mpi, block, 0, {rail}, m, [] { return true; }, [] {});
      link.SetCompression(type);
      Values gradients(count);
      for (int step = 0; step < steps; ++step) {
        for (size_t i = 0; i < count; ++i) gradients[i] = NumberMpiLink(m, step, i);
        for (size_t begin = 0; begin < count; begin += bucket) {
          const size_t size = std::min(bucket, count - begin);
          link.AllReduceGradients(0, std::span(gradients).subspan(begin, size), gradients);
        }
        Values& sums = result.of_machines[static_cast<size_t>(m)];
        sums.insert(sums.end(), gradients.begin(), gradients.end());
        if (step == cleared) link.ResetErrorFeedback();
      }
      if (m != 0) return;
      result.sent = link.sent_bytes();
      result.plain = link.plain_bytes();
    });
  }
  threads.clear();
  return result;
}

class RoundedLinkTest : public testing::TestWithParam<std::tuple<CompressionType, int>> {};

std::string NameOfCase(const testing::TestParamInfo<RoundedLinkTest::ParamType>& one) {
  const auto& [type, machines] = one.param;
  return Join(NameOf(type), "On", machines);
}
INSTANTIATE_TEST_SUITE_P(Of, RoundedLinkTest,
                         testing::Combine(testing::Values(CompressionType::kF16,
                                                          CompressionType::kBF16),
                                          testing::Values(2, 3, 5)),
                         NameOfCase);

TEST_P(RoundedLinkTest, GivesAllMachinesTheSameBits) {
  const auto [type, machines] = GetParam();
  for (const size_t count : {16u, 32u, 1000u, 20'000u}) {
    const Result result = SumSteps(type, machines, count, count, 3);
    for (const Values& other : result.of_machines) {
      ASSERT_EQ(std::memcmp(other.data(), result.of_machines[0].data(), 3 * count * sizeof(float)),
                0);
    }
  }
}

TEST_P(RoundedLinkTest, AddsUpOverManySteps) {
  const auto [type, machines] = GetParam();
  constexpr size_t kCount = 500;
  constexpr int kSteps = 100;
  const Values sums = SumSteps(type, machines, kCount, kCount, kSteps).of_machines[0];
  for (size_t i = 0; i < kCount; ++i) {
    double exact = 0, found = 0;
    for (int step = 0; step < kSteps; ++step) {
      for (int m = 0; m < machines; ++m) exact += NumberMpiLink(m, step, i);
      found += sums[static_cast<size_t>(step) * kCount + i];
    }
    // Each machine's numbers, below 10, are rounded once, and so is their sum.
    const double one = type == CompressionType::kF16 ? 16.0 / 2048 : 16.0 / 256;
    EXPECT_NEAR(found, exact, one * 2 * machines) << i;
  }
}

// Bucket sizes are measured, so that nothing may depend on them.
TEST_P(RoundedLinkTest, DoesNotDependOnBuckets) {
  const auto [type, machines] = GetParam();
  const Values whole = SumSteps(type, machines, 4000, 4000, 4).of_machines[0];
  for (const size_t bucket : {16u, 48u, 1600u}) {
    EXPECT_THAT(SumSteps(type, machines, 4000, bucket, 4).of_machines[0], ElementsAreArray(whole));
  }
}

TEST_P(RoundedLinkTest, BeginsAnewWhenResidualsAreForgotten) {
  const auto [type, machines] = GetParam();
  const Values plain = SumSteps(type, machines, 320, 320, 2).of_machines[0];
  const Values cleared = SumSteps(type, machines, 320, 320, 2, 0).of_machines[0];
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + 320, cleared.begin()));
  EXPECT_FALSE(std::equal(plain.begin() + 320, plain.end(), cleared.begin() + 320));
}

TEST_P(RoundedLinkTest, SendsHalfTheBytes) {
  const auto [type, machines] = GetParam();
  const Result result = SumSteps(type, machines, 16'000, 16'000, 1);
  const double ratio = static_cast<double>(result.sent) / static_cast<double>(result.plain);
  EXPECT_NEAR(ratio, type == CompressionType::kF16 ? 33.0 / 64 : 0.5, 0.01);
}

TEST(RoundedLinkTest, InF32IsTheSumItself) {
  const Values sums = SumSteps(CompressionType::kF32, 3, 5000, 5000, 1).of_machines[0];
  for (size_t i = 0; i < sums.size(); ++i) {
    ASSERT_EQ(sums[i], NumberMpiLink(0, 0, i) + NumberMpiLink(1, 0, i) + NumberMpiLink(2, 0, i));
  }
}

}  // namespace
}  // namespace trainer
