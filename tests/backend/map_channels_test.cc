// A thread of a GPU processes four channels where these can be read together, or else single
// elements; a CPU leaves all tensors to other loops.

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

// Calls MapRepeated for numbers per channel: number(a) is element i % channels of array a.
template <class F, int K, class... Ins>
bool MapChannels(const Device& device, F f, int64_t channels, const float* const (&arrays)[K],
                 const Tensor& out, const Ins&... ins) {
  // The first digit, of length 1, changes nothing.
  const int64_t length[] = {1, channels}, stride[] = {0, 1};
  return MapRepeated(device, f, length, stride, arrays, out, ins...);
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
  for (const auto& [rows, channels] : std::vector<std::pair<int64_t, int64_t>>{{1, 4},
                                                                               {1001, 4},
                                                                               {37, 12},
                                                                               {3, 1004},
                                                                               {50, 260},
                                                                               {1, 1},
                                                                               {777, 1},
                                                                               {1001, 3},
                                                                               {40, 5},
                                                                               {3, 1003},
                                                                               {0, 3}}) {
    const int64_t count = rows * channels;
    const OnDevice<float> x(*device_, Numbers(count, 1)), y(*device_, Numbers(count, 2));
    const OnDevice<float> factors(*device_, Numbers(channels, 3));
    const OnDevice<float> others(*device_, Numbers(channels, 5));
    const auto view = [&](const OnDevice<float>& v) {
      return Tensor{v.data(), {count}, DType::kF32};
    };
    ASSERT_EQ(MapChannels(*device_, TimesPlus{}, channels, {factors.data(), others.data()}, view(y),
                          view(x), view(y)),
              TestsOnGpu());
    if (TestsOnGpu()) ExpectResult(y.Read(), channels);
  }
}

TEST_F(MapChannelsTest, NeedsNoAlignedArrays) {
  for (const auto& [first, first_factor] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 0}, {0, 1}}) {
    const OnDevice<float> x(*device_, Numbers(48, 1 - first));
    const OnDevice<float> y(*device_, Numbers(48, 2 - first)), out(*device_, Numbers(25, 0));
    const OnDevice<float> factors(*device_, Numbers(8, 3 + 13 - first_factor));
    const OnDevice<float> others(*device_, Numbers(8, 5 + 13 - first_factor));
    const auto view = [&, start = first](const OnDevice<float>& v) {
      return Tensor{v.data() + start, {24}, DType::kF32};
    };
    ASSERT_EQ(MapChannels(*device_, TimesPlus{}, 4,
                          {factors.data() + first_factor, others.data() + first_factor}, view(out),
                          view(x), view(y)),
              TestsOnGpu());
    std::vector<float> got = out.Read();
    if (!TestsOnGpu()) {
      EXPECT_EQ(got, Numbers(25, 0));
      continue;
    }
    got.erase(first == 0 ? got.end() - 1 : got.begin());
    ExpectResult(got, 4);
  }
}

// Expects MapRepeated to compute x * (number of array 0) + x * (number of array 1).
TEST_F(MapChannelsTest, FindsTheNumbersOfAnyDigits) {
  struct Case {
    std::vector<int64_t> length, stride;
  };
  for (const Case& c : std::vector<Case>{{{7, 5, 3}, {0, 1, 0}},
                                         {{300, 3}, {0, 1}},
                                         {{5, 7, 1, 3}, {1, 0, 0, 5}},
                                         {{3, 4, 5, 6}, {0, 6, 0, 1}},
                                         {{2, 3, 2, 3, 2, 3, 2, 3}, {0, 1, 0, 3, 0, 9, 0, 27}},
                                         {{600}, {0}},
                                         {{1, 600}, {0, 1}}}) {
    int64_t count = 1, numbers = 1;
    for (size_t d = 0; d < c.length.size(); ++d) {
      count *= c.length[d];
      numbers += (c.length[d] - 1) * c.stride[d];
    }
    const OnDevice<float> x(*device_, Numbers(count, 1)), y(*device_, Numbers(count, 0));
    const OnDevice<float> factors(*device_, Numbers(numbers, 3));
    const OnDevice<float> others(*device_, Numbers(numbers, 5));
    const auto view = [&](const OnDevice<float>& v) {
      return Tensor{v.data(), {count}, DType::kF32};
    };
    ASSERT_EQ(MapRepeated(*device_, TimesPlus{}, c.length, c.stride,
                          {factors.data(), others.data()}, view(y), view(x), view(x)),
              TestsOnGpu());
    std::vector<float> want = Numbers(count, 0);
    for (int64_t i = 0; TestsOnGpu() && i < count; ++i) {
      int64_t rest = i, number = 0;
      for (size_t d = 0; d < c.length.size(); ++d) {
        number += rest % c.length[d] * c.stride[d];
        rest /= c.length[d];
      }
      const int64_t factor = (number + 3) % 13 + (number + 5) % 13;
      want[static_cast<size_t>(i)] = static_cast<float>((i + 1) % 13 * factor);
    }
    ASSERT_EQ(y.Read(), want);
  }
}

TEST_F(MapChannelsTest, LeavesTensorsOfTooManyDigitsOrTooLongOnesAsTheyAre) {
  const OnDevice<float> x(*device_, Numbers(512, 1)), factors(*device_, Numbers(512, 3));
  const Tensor view = {x.data(), {512}, DType::kF32};
  const auto applies = [&](std::vector<int64_t> length, std::vector<int64_t> stride) {
    return MapRepeated(*device_, TimesPlus{}, length, stride, {factors.data(), factors.data()},
                       view, view, view);
  };
  EXPECT_FALSE(applies(std::vector<int64_t>(9, 2), {0, 1, 0, 2, 0, 4, 0, 8, 16}));
  EXPECT_FALSE(applies({int64_t{1} << 31, 2}, {0, 1}));
  EXPECT_FALSE(applies({2, 1 << 16}, {0, 1 << 16}));
  EXPECT_EQ(x.Read(), Numbers(512, 1));
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

// The same for the kernel of single elements: its digits wrap many times.
TEST_F(MapChannelsTest, AFewThreadsProcessManyElements) {
  if (!TestsOnGpu()) GTEST_SKIP() << "about kernels";
  for (const uint32_t channels : {1U, 3U, 5U, 1001U}) {
    const int64_t count = 20001 / channels * channels;
    const OnDevice<float> x(*device_, Numbers(count, 1)), y(*device_, Numbers(count, 2));
    const OnDevice<float> factors(*device_, Numbers(channels, 3));
    const OnDevice<float> others(*device_, Numbers(channels, 5));
    Launch(*device_, map_internal::RepeatedKernel<2, 2, TimesPlus, float, float, float>, 2,
           map_internal::kBlock, TimesPlus{}, count, map_internal::Digits<2>{{channels, 1}, {1, 0}},
           map_internal::PerChannel<2>{{factors.data(), others.data()}}, y.data(), x.data(),
           y.data());
    ExpectResult(y.Read(), channels);
  }
}
#endif

}  // namespace
}  // namespace trainer
