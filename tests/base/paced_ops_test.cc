#include "trainer/base/file/paced_ops.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

class PacedOpsTest : public testing::Test {
 protected:
  PacedOpsTest() : fd_(ops_.Open("/dev/null", O_WRONLY, 0)) {}
  ~PacedOpsTest() override { ops_.Close(fd_); }

  void WriteAfter(nanoseconds computed) {
    time_ += computed;
    EXPECT_EQ(ops_.Write(fd_, "x", 1), 1);
  }

  nanoseconds time_ = std::chrono::seconds(5);  // computing time of the thread
  nanoseconds rested_{0};
  PacedOps ops_{0.25, [this](nanoseconds time) { rested_ += time; }, [this] { return time_; }};
  int fd_;
};

TEST_F(PacedOpsTest, RestsThreeTimesAsLongAsItComputesForAQuarterOfTheTime) {
  for (int i = 1; i <= 5; ++i) {
    WriteAfter(std::chrono::milliseconds(2));
    EXPECT_EQ(rested_, i * std::chrono::milliseconds(6));
  }
}

TEST_F(PacedOpsTest, RestsForSeveralShortTimesTogether) {
  WriteAfter(microseconds(150));
  EXPECT_EQ(rested_, nanoseconds(0)) << "shorter than what a rest costs";
  WriteAfter(microseconds(150));
  EXPECT_EQ(rested_, microseconds(900));
}

TEST(ThreadTimeTest, IsThatOfTheThread) {
  const nanoseconds start = ThreadTime();
  while (ThreadTime() == start) {
  }
  EXPECT_GT(ThreadTime(), start);
}

}  // namespace
}  // namespace trainer
