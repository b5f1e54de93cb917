// A thread of a GPU processes four channels; a CPU leaves all tensors to other loops.

#include "trainer/backend/loops/map_channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_device.h"

namespace trainer {
namespace {

struct TimesPlus {
  template <class Number>
  HD float operator()(const Number& number, float x, float y) const {
    return x * number(0) + y * number(1);
  }
};

// Returns small integers, so sums of products are exact: `first`, `first` + 1, ... modulo 13.
std::vector<float> Numbers(int64_t count, int64_t first) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>((first + i) % 13));
  return numbers;
}

class MapChannelsTest : public testing::Test {
 protected:
  // Expects `y`, which has `channels` channels, to equal Numbers(count, 1) * factors +
  // Numbers(count, 2) * others.
  void ExpectResult(const std::vector<float>& y, int64_t channels) const {
    for (size_t i = 0; i < y.size(); ++i) {
      const auto c = static_cast<int64_t>(i) % channels;
      const auto at = static_cast<int64_t>(i);
      ASSERT_EQ(y[i],
                static_cast<float>((at + 1) % 13 * ((c + 3) % 13) + (at + 2) % 13 * ((c + 5) % 13)))
          << i;
    }
  }
  const std::unique_ptr<Device> device_ = MakeTestDevice();
};

TEST_F(MapChannelsTest, AppliesTheFunctorToEachElement) {
  for (const auto& [rows, channels] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 4}, {1001, 4}, {37, 12}, {3, 1004}, {50, 260}}) {
    const int64_t count = rows * channels;
    const OnDevice<float> x(*device_, Numbers(count, 1)), y(*device_, Numbers(count, 2));
    const OnDevice<float> factors(*device_, Numbers(channels, 3));
    const OnDevice<float> others(*device_, Numbers(channels, 5));
    const auto view = [&](const OnDevice<float>& v) {
      return Tensor{v.data(), {count}, DType::kF32};
    };
    ASSERT_EQ(MapFourChannels(*device_, TimesPlus{}, channels, {factors.data(), others.data()},
                              view(y), view(x), view(y)),
              TestsOnGpu());
    if (TestsOnGpu()) ExpectResult(y.Read(), channels);
  }
}

TEST_F(MapChannelsTest, LeavesOtherTensorsAsTheyAre) {
  const std::vector<float> start = Numbers(48, 1);
  const OnDevice<float> x(*device_, start), factors(*device_, Numbers(48, 3));
  const auto applies = [&](int64_t channels, int64_t first, int64_t first_factor) {
    const Tensor view = {x.data() + first, {24}, DType::kF32};
    const float* const factor = factors.data() + first_factor;
    return MapFourChannels(*device_, TimesPlus{}, channels, {factor, factor}, view, view, view);
  };
  EXPECT_FALSE(applies(6, 0, 0));
  EXPECT_FALSE(applies(4, 1, 0));
  EXPECT_FALSE(applies(4, 0, 1));
  EXPECT_EQ(x.Read(), start);
}

#ifdef TRAINER_DEVICE_CODE
// Two blocks replace the largest grid, so each thread processes more than two groups.
TEST_F(MapChannelsTest, AFewThreadsProcessManyGroups) {
  if (!TestsOnGpu()) GTEST_SKIP() << "about kernels";
  for (const int64_t channels : {4, 12, 4000}) {
    const int64_t count = 5 * 4 * 3000 / channels * channels;
    const OnDevice<float> x(*device_, Numbers(count, 1)), y(*device_, Numbers(count, 2));
    const OnDevice<float> factors(*device_, Numbers(channels, 3));
    const OnDevice<float> others(*device_, Numbers(channels, 5));
    Launch(*device_, map_internal::FourChannelsKernel<2, TimesPlus, float, float, float>, 2,
           map_internal::kBlock, TimesPlus{}, count / 4, channels / 4,
           map_internal::PerChannel<2>{{factors.data(), others.data()}}, y.data(), x.data(),
           y.data());
    ExpectResult(y.Read(), channels);
  }
}
#endif

}  // namespace
}  // namespace trainer
