#include "trainer/base/paced_ops.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using std::chrono::nanoseconds;

// By the calling thread; the time that it took.
nanoseconds Compute(nanoseconds at_least) {
  const nanoseconds start = ThreadTime();
  while (ThreadTime() - start < at_least) {
  }
  return ThreadTime() - start;
}

class PacedOpsTest : public testing::Test {
 protected:
  PacedOpsTest() : fd_(ops_.Open("/dev/null", O_WRONLY, 0)) {}
  ~PacedOpsTest() override { ops_.Close(fd_); }

  nanoseconds rested_{0};
  PacedOps ops_{0.25, [this](nanoseconds time) { rested_ += time; }};
  int fd_;
};

TEST_F(PacedOpsTest, RestsThreeTimesAsLongAsItComputesForAQuarterOfTheTime) {
  nanoseconds computed{0};
  for (int i = 0; i < 5; ++i) {
    computed += Compute(std::chrono::milliseconds(2));
    EXPECT_EQ(ops_.Write(fd_, "x", 1), 1);
    EXPECT_GE(rested_, 3 * computed);
  }
}

TEST_F(PacedOpsTest, DoesNotRestForNextToNothing) {
  ops_.Write(fd_, "x", 1);
  const nanoseconds before = rested_;
  ops_.Write(fd_, "x", 1);
  EXPECT_EQ(rested_, before);
}

}  // namespace
}  // namespace trainer
