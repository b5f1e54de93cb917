// Tests how kernels report invalid numbers.

#include "trainer/backend/device/input_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/test_device.h"
#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

struct ReportAbove {
  const float* x;
  float most;
  InputErrorFlag fault;
  HD void operator()(int64_t i) const {
    if (!(x[i] <= most)) fault.Report(i, x[i]);
  }
};

TEST(FaultWordTest, HoldsTheFirstBadElementOfAllThreads) {
  const auto device = MakeTestDevice();
  std::vector<float> values(100000, 1.0f);
  const OnDevice<float> x(*device, values);
  const OnDevice<uint64_t> word(*device, std::vector<uint64_t>{InputErrorFlag::kNone});
  ForEach(*device, 100000, ReportAbove{x.data(), 2, InputErrorFlag(word.data())});
  EXPECT_EQ(word.Read()[0], InputErrorFlag::kNone);
  for (const size_t i : {99999, 70000, 600, 12345}) values[i] = -0.5f + static_cast<float>(i);
  x.Write(values);
  ForEach(*device, 100000, ReportAbove{x.data(), 2, InputErrorFlag(word.data())});
  EXPECT_EQ(InputErrorFlag::IndexOf(word.Read()[0]), 600);
  EXPECT_EQ(InputErrorFlag::NumberOf(word.Read()[0]), 599.5f);
}

TEST(FaultWordTest, KeepsNumbersThatAreNone) {
  uint64_t word = InputErrorFlag::kNone;
  InputErrorFlag(&word).Report(0, NAN);
  EXPECT_EQ(InputErrorFlag::IndexOf(word), 0);
  EXPECT_TRUE(std::isnan(InputErrorFlag::NumberOf(word)));
  EXPECT_NE(word, InputErrorFlag::kNone);
}

}  // namespace
}  // namespace trainer
