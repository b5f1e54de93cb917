// A lock whose holder is gone.

#include "shared_lock.h"

#include <gtest/gtest.h>

#include "support/error_of.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

// Ranks 0 and 1 are on this machine, the others on another one.
class LostPeers final : public SharedWindow {
 public:
  std::byte* Allocate(size_t) override { return nullptr; }
  bool IsNear(int rank) const override { return rank < 2; }
  void GoApart(bool) override {}
  bool HasEnded(int rank) override { return rank == 1; }
  void ThrowIfFailed() override {}
  void Await(int rank, const std::function<bool()>& ready) override {
    EXPECT_FALSE(ready());
    throw Error(ErrorCode::kPeerLost, NameOf(rank) + " is silent");
  }
  void Ring(int) override {}
  std::string NameOf(int rank) const override { return "rank " + std::to_string(rank); }
};

TEST(SharedLockTest, OfADeadRankIsTakenOver) {
  SharedLock lock{};
  LostPeers peers;
  ASSERT_TRUE(lock.TryAcquire(1));
  lock.Acquire(0, peers);
  EXPECT_FALSE(lock.TryAcquire(1));
  lock.Release();
  EXPECT_TRUE(lock.TryAcquire(1));
}

// Who waits for it must not do so for ever.
TEST(SharedLockTest, OfALostMachinesRankEndsTheRun) {
  SharedLock lock{};
  LostPeers peers;
  ASSERT_TRUE(lock.TryAcquire(2));
  const auto [code, message] = ErrorOf([&] { lock.Acquire(0, peers); });
  EXPECT_EQ(code, ErrorCode::kPeerLost);
  EXPECT_EQ(message, "rank 2 is silent");
}

}  // namespace
}  // namespace trainer
