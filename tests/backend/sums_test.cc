// Tests sums over a tensor, channel by channel.

#include <gtest/gtest.h>

#include "backend/plan_testing.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/primitives/channel_sums.h"

namespace trainer {
namespace {

class SumsTest : public testing::TestWithParam<DType> {
 protected:
  const Device& device_ = MetaDevice();

  // Compares the sums with sums in double.
  void ExpectSums(const Shape& shape, int axis, bool product) {
    const Values x = Values::Random(shape, GetParam(), 1);
    const Values other = Values::Random(shape, GetParam(), 2);
    const Rows rows = AxisRows(shape, axis);
    const Values sums = Values::Of({rows.length}, std::vector<float>(rows.length, 3));
    const ConstTensor times = other;
    device_.AddChannelSums(ChannelSumsDesc::Of(shape, axis), x, product ? &times : nullptr,
                           sums.f32());
    for (int64_t c = 0; c < rows.length; ++c) {
      double want = 3;
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t at = rows.Start(r) + c * rows.inner;
        want += product ? double{x[at]} * other[at] : double{x[at]};
      }
      ASSERT_NEAR(sums[c], want, 1e-3) << shape.ToString() << " axis " << axis << " channel " << c;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Types, SumsTest, testing::ValuesIn(StoredTypes()),
                         [](const auto& tested) { return std::string(NameOf(tested.param)); });

TEST_P(SumsTest, EachChannelHasItsOwnInAnyMemoryOrder) {
  for (const bool product : {false, true}) {
    ExpectSums({43, 33}, 1, product);
    ExpectSums({6, 20, 11, 13}, 1, product);
    ExpectSums({6, 20, 143}, 1, product);
    ExpectSums({5, 7, 9}, 0, product);
    ExpectSums({1, 3}, 0, product);
  }
}

TEST_P(SumsTest, DoNotDependOnTheNumberOfThreads) {
  for (const Shape& shape : {Shape{64, 48, 20, 20}, Shape{64, 48, 400}}) {
    const Values x = Values::Random(shape, GetParam(), 1);
    const Values one = Values::Of({48}, std::vector<float>(48));
    const Values other = Values::Of({48}, std::vector<float>(48));
    const auto desc = ChannelSumsDesc::Of(shape, 1);
    device_.AddChannelSums(desc, x, nullptr, one.f32());
    if (!TestsOnGpu()) {
      MakeCpuDevice(1)->AddChannelSums(desc, x, nullptr, other.f32());
    } else {
      device_.AddChannelSums(desc, x, nullptr, other.f32());
    }
    EXPECT_EQ(one.ToVector(), other.ToVector());
  }
}

// Compares the fused kernel with its two separate steps, on devices that fuse them.
TEST_P(SumsTest, TheGradientOfAReluIsSummedOnTheWay) {
  if (device_.kind() == DeviceKind::kCpu) return;
  for (const Shape& shape : {Shape{3, 33, 5, 7}, Shape{2, 64, 40, 20}, Shape{40, 3}}) {
    const Values dy = Values::Random(shape, GetParam(), 1),
                 y = Values::Random(shape, GetParam(), 2);
    const Values g = Values::Unset(shape, GetParam());
    const Rows rows = AxisRows(shape, 1);
    const Values sums = Values::Of({rows.length}, std::vector<float>(rows.length, 3));
    ASSERT_TRUE(device_.ReluGradAndBiasGrad(ChannelSumsDesc::Of(shape, 1), dy, y, g, sums.f32()));
    ASSERT_TRUE(device_.ReluGradAndBiasGrad(ChannelSumsDesc::Of(shape, 1), dy, y, dy, sums.f32()));
    for (int64_t c = 0; c < rows.length; ++c) {
      double want = 3;
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t at = rows.Start(r) + c * rows.inner;
        ASSERT_EQ(g[at], y[at] > 0 ? dy[at] : 0) << "in place, and not";
        want += 2 * double{g[at]};
      }
      ASSERT_NEAR(sums[c], want, 1e-3) << shape.ToString() << " channel " << c;
    }
  }
  const Values x = Values::Random({2, 3, 4}, GetParam(), 1);
  EXPECT_FALSE(device_.ReluGradAndBiasGrad(ChannelSumsDesc::Of({2, 3, 4}, 1), x, x, x, nullptr))
      << "channels that are not neighbours";
}

}  // namespace
}  // namespace trainer
