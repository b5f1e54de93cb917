// A lock whose holder is gone.

#include "robust_mutex.h"

#include <gtest/gtest.h>

#include "support/error_of.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

// Ranks 0 and 1 are on this machine, the others on another one.
class LostPeers final : public SharedWindow {
 public:
  std::byte* Allocate(size_t) override { return nullptr; }
  bool IsSameNode(int rank) const override { return rank < 2; }
  void EnterAsync(bool) override {}
  bool IsDead(int rank) override { return rank == 1; }
  void ThrowIfFailed() override {}
  void WaitFor(int rank, const std::function<bool()>& ready) override {
    EXPECT_FALSE(ready());
    throw Error(ErrorCode::kPeerLost, NameOf(rank) + " is silent");
  }
  void Notify(int) override {}
  std::string NameOf(int rank) const override { return "rank " + std::to_string(rank); }
};

TEST(SharedLockTest, OfADeadRankIsTakenOver) {
  RobustMutex lock{};
  LostPeers window;
  ASSERT_TRUE(lock.TryAcquire(1));
  lock.Acquire(0, window);
  EXPECT_FALSE(lock.TryAcquire(1));
  lock.Release();
  EXPECT_TRUE(lock.TryAcquire(1));
}

// A rank that waits for it must not wait forever.
TEST(SharedLockTest, OfALostMachinesRankEndsTheRun) {
  RobustMutex lock{};
  LostPeers window;
  ASSERT_TRUE(lock.TryAcquire(2));
  const auto [code, message] = ErrorOf([&] { lock.Acquire(0, window); });
  EXPECT_EQ(code, ErrorCode::kPeerLost);
  EXPECT_EQ(message, "rank 2 is silent");
}

}  // namespace
}  // namespace trainer
