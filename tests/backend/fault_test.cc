// What kernels report of bad numbers.

#include "trainer/backend/fault.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "trainer/backend/map.h"

namespace trainer {
namespace {

struct ReportAbove {
  const float* x;
  float most;
  FaultWord fault;
  HD void operator()(int64_t i) const {
    if (!(x[i] <= most)) fault.Report(i, x[i]);
  }
};

TEST(FaultWordTest, HoldsTheFirstBadElementOfAllThreads) {
  const auto device = MakeCpuDevice(2);
  std::vector<float> x(100000, 1.0f);
  uint64_t word = FaultWord::kNone;
  ForEach(*device, 100000, ReportAbove{x.data(), 2, FaultWord(&word)});
  EXPECT_EQ(word, FaultWord::kNone);
  for (const size_t i : {99999, 70000, 600, 12345}) x[i] = -0.5f + static_cast<float>(i);
  ForEach(*device, 100000, ReportAbove{x.data(), 2, FaultWord(&word)});
  EXPECT_EQ(FaultWord::IndexOf(word), 600);
  EXPECT_EQ(FaultWord::NumberOf(word), 599.5f);
}

TEST(FaultWordTest, KeepsNumbersThatAreNone) {
  uint64_t word = FaultWord::kNone;
  FaultWord(&word).Report(0, NAN);
  EXPECT_EQ(FaultWord::IndexOf(word), 0);
  EXPECT_TRUE(std::isnan(FaultWord::NumberOf(word)));
  EXPECT_NE(word, FaultWord::kNone);
}

}  // namespace
}  // namespace trainer
