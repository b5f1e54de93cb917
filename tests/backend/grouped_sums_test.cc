// Tests sums of functors over each channel of a view (outer, channels, inner), short and long.

#include "trainer/backend/loops/grouped_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/test_device.h"

namespace trainer {
namespace {

// Sums the elements, and the elements times a factor of their coordinates.
struct PlaceTerms {
  const float* x;
  template <class Place>
  HD SumPair operator()(const Place& place) const {
    const float value = x[place.At()];
    return {value, value * static_cast<float>(place.Term() % 5 + place.Outer() % 3 +
                                              2 * (place.Inner() % 2))};
  }
};

// Multiplies the elements by a factor that the terms of a channel share.
struct ChannelTerms {
  const float* x;
  struct OfOne {
    const float* x;
    float factor;
    template <class Place>
    HD float operator()(const Place& place) const {
      return factor * x[place.At()];
    }
  };
  HD OfOne OfChannel(int64_t channel) const { return {x, static_cast<float>(channel % 3)}; }
};

// Returns element `at` of the summed tensor. Sums of such small integers are exact in any order.
float ElementAt(int64_t at) { return static_cast<float>(at * 7 % 5 - 2); }

class GroupedSumsTest : public testing::TestWithParam<ChannelSumsDesc> {
 protected:
  int64_t Count() const { return desc_.outer * desc_.channels * desc_.inner; }
  std::vector<float> Elements() const {
    std::vector<float> values;
    for (int64_t at = 0; at < Count(); ++at) values.push_back(ElementAt(at));
    return values;
  }
  // Returns 3 per channel plus the sums of f(element, channel, outer, inner).
  template <class F>
  std::vector<float> Want(const F& f) const {
    std::vector<float> sums(static_cast<size_t>(desc_.channels), 3);
    for (int64_t at = 0; at < Count(); ++at) {
      const int64_t channel = at / desc_.inner % desc_.channels;
      const int64_t outer = at / desc_.inner / desc_.channels;
      sums[static_cast<size_t>(channel)] += f(ElementAt(at), channel, outer, at % desc_.inner);
    }
    return sums;
  }
  OnDevice<float> Threes(const Device& device) const {
    return {device, std::vector<float>(static_cast<size_t>(desc_.channels), 3)};
  }

  const ChannelSumsDesc desc_ = GetParam();
  const std::unique_ptr<Device> device_ = MakeTestDevice();
};

// On a GPU these sizes give one block or several, and one chunk or several, with or without a
// remainder. One has more channels than the partial sums of two chunks have room for.
INSTANTIATE_TEST_SUITE_P(Of, GroupedSumsTest,
                         testing::Values(ChannelSumsDesc{1, 1, 1}, ChannelSumsDesc{0, 3, 5},
                                         ChannelSumsDesc{3, 5, 7}, ChannelSumsDesc{32, 64, 1},
                                         ChannelSumsDesc{70, 33, 1}, ChannelSumsDesc{5000, 3, 1},
                                         ChannelSumsDesc{2, 3, 5000}, ChannelSumsDesc{400, 4, 11},
                                         ChannelSumsDesc{9, 2, 300}, ChannelSumsDesc{1, 40000, 1}),
                         [](const auto& desc) {
                           return "Outer" + std::to_string(desc.param.outer) + "Channels" +
                                  std::to_string(desc.param.channels) + "Inner" +
                                  std::to_string(desc.param.inner);
                         });

TEST_P(GroupedSumsTest, AddsTheSumOfEachChannel) {
  const OnDevice<float> x(*device_, Elements()), sums = Threes(*device_);
  AddSums(*device_, desc_, ChannelTerms{x.data()}, sums.data());
  EXPECT_EQ(sums.Read(), Want([](float value, int64_t channel, int64_t, int64_t) {
              return static_cast<float>(channel % 3) * value;
            }));
}

TEST_P(GroupedSumsTest, AddsTwoSumsOfEachChannelUnlessTheArrayIsNull) {
  const OnDevice<float> x(*device_, Elements());
  const std::vector<float> first =
      Want([](float value, int64_t, int64_t, int64_t) { return value; });
  const std::vector<float> second =
      Want([this](float value, int64_t, int64_t outer, int64_t inner) {
        const int64_t term = outer * desc_.inner + inner;
        return value * static_cast<float>(term % 5 + outer % 3 + 2 * (inner % 2));
      });
  for (const bool has_first : {true, false}) {
    for (const bool has_second : {true, false}) {
      const OnDevice<float> a = Threes(*device_), b = Threes(*device_);
      AddSumPairs(*device_, desc_, PlaceTerms{x.data()}, has_first ? a.data() : nullptr,
                  has_second ? b.data() : nullptr);
      EXPECT_EQ(a.Read(), has_first ? first : Threes(*device_).Read());
      EXPECT_EQ(b.Read(), has_second ? second : Threes(*device_).Read());
    }
  }
}

// Sums of fractions depend on the order of the additions.
TEST_P(GroupedSumsTest, DoNotDependOnTheNumberOfThreads) {
  std::vector<float> values = Elements();
  for (size_t i = 0; i < values.size(); ++i) values[i] /= static_cast<float>(i % 11 + 3);
  std::vector<std::vector<float>> all;
  for (const int threads : {1, 3}) {
    const auto device = MakeTestDevice(threads);
    const OnDevice<float> x(*device, values), one = Threes(*device), a = Threes(*device),
                                              b = Threes(*device);
    AddSums(*device, desc_, ChannelTerms{x.data()}, one.data());
    AddSumPairs(*device, desc_, PlaceTerms{x.data()}, a.data(), b.data());
    for (const OnDevice<float>* sums : {&one, &a, &b}) all.push_back(sums->Read());
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(all[i], all[i + 3]) << i;
}

}  // namespace
}  // namespace trainer
