// Gradients in 16 bits.

#include "mpi/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns the values as they arrive, and keeps in `rest` what is lost.
std::vector<float> Sent(CompressionType type, const std::vector<float>& values,
                        std::vector<float>* rest) {
  std::vector<std::byte> bytes(CompressedBytes(type, values.size()));
  rest->resize(values.size());
  Encode(type, values, rest->data(), bytes.data());
  std::vector<float> arrived(values.size());
  Decode(type, bytes.data(), arrived);
  return arrived;
}

std::vector<float> Sent(CompressionType type, const std::vector<float>& values) {
  std::vector<float> rest;
  return Sent(type, values, &rest);
}

// Returns numbers of many sizes and both signs.
std::vector<float> Mixed(size_t count, int round) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    const double x = std::sin(static_cast<double>(i * 37 + 1) * (round + 1.7));
    values.push_back(static_cast<float>(x * std::pow(10.0, static_cast<double>(i % 9) - 6)));
  }
  return values;
}

class WireTest : public testing::TestWithParam<CompressionType> {};
INSTANTIATE_TEST_SUITE_P(Of, WireTest,
                         testing::Values(CompressionType::kF16, CompressionType::kBF16),
                         [](const auto& type) { return std::string(NameOf(type.param)); });

TEST(WireTest, TakesTwoBytesANumberAndAScaleALineInF16) {
  EXPECT_EQ(CompressedBytes(CompressionType::kF32, 100), 400u);
  EXPECT_EQ(CompressedBytes(CompressionType::kBF16, 100), 200u);
  EXPECT_EQ(CompressedBytes(CompressionType::kF16, 100), 207u);
  EXPECT_EQ(CompressedBytes(CompressionType::kF16, 16), 33u);
}

// Computed by hand: f16 keeps 11 bits of fraction next to the largest number, bf16 keeps 8
// everywhere; ties round to even.
TEST(WireTest, RoundsToNearestEven) {
  EXPECT_THAT(Sent(CompressionType::kBF16, {1.0f, 1.00390625f, 1.01171875f, -3.14159f}),
              ElementsAre(1.0f, 1.0f, 1.015625f, -3.140625f));
  EXPECT_THAT(Sent(CompressionType::kF16, {1.0f, 1.00048828125f, 1.00146484375f, -1.9f}),
              ElementsAre(1.0f, 1.0f, 1.001953125f, -1.900390625f));
}

TEST_P(WireTest, KeepsSmallIntegersAndZero) {
  std::vector<float> values;
  for (int i = -100; i <= 100; ++i) values.push_back(static_cast<float>(i));
  EXPECT_THAT(Sent(GetParam(), values), ElementsAreArray(values));
}

// Plain f16 only reaches from 6e-8 to 65504.
TEST(WireTest, InF16NeitherOverflowsNorVanishes) {
  for (const float size : {3e38f, 1e10f, 70000.0f, 1.0f, 1e-10f, 1e-30f, 1e-38f}) {
    for (const float value : Sent(CompressionType::kF16, {size, -size, size / 3})) {
      EXPECT_GT(std::fabs(value), size / 4);
      EXPECT_LE(std::fabs(value), size * 1.001f);
    }
  }
}

// A scale belongs to a line of 16 numbers, so that other lines do not depend on it.
TEST(WireTest, InF16EachLineHasItsScale) {
  std::vector<float> values(32, 1e-20f);
  values[0] = 1e20f;
  const std::vector<float> sent = Sent(CompressionType::kF16, values);
  EXPECT_EQ(sent[1], 0.0f);
  EXPECT_NEAR(sent[16], 1e-20f, 1e-23f);
}

TEST_P(WireTest, LeavesInfinityAndNanToBeFound) {
  std::vector<float> rest;
  for (const std::vector<float>& values :
       {std::vector<float>{1, kInfinity, -kInfinity, NAN}, {NAN, NAN}, {kInfinity}}) {
    const std::vector<float> sent = Sent(GetParam(), values, &rest);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::isnan(sent[i]), std::isnan(values[i]));
      if (std::isnan(values[i])) continue;
      EXPECT_EQ(sent[i], values[i]);
    }
    EXPECT_THAT(rest, Each(0.0f));
    rest.clear();
  }
}

TEST_P(WireTest, SendsOverManyStepsWhatTheGradientsSumTo) {
  constexpr size_t kCount = 1000;
  std::vector<double> gradients(kCount), sent(kCount);
  std::vector<float> rest;
  for (int step = 0; step < 200; ++step) {
    const std::vector<float> values = Mixed(kCount, step);
    const std::vector<float> arrived = Sent(GetParam(), values, &rest);
    for (size_t i = 0; i < kCount; ++i) {
      gradients[i] += values[i];
      sent[i] += arrived[i];
    }
  }
  for (size_t i = 0; i < kCount; ++i) {
    // Only the rest of one rounding is left; floats lose a little in 200 additions.
    EXPECT_NEAR(sent[i] + rest[i], gradients[i], 200 * 6e-8 * 1000);
    const double line = GetParam() == CompressionType::kF16 ? 1000.0 / 2048 : 1000.0 / 256;
    EXPECT_LE(std::fabs(rest[i]), line);
  }
}

// Without the kept rest, a part that is too small for one step would never arrive.
TEST(WireTest, SendsWhatIsTooSmallForOneStepInSeveral) {
  std::vector<float> rest;
  double sent = 0;
  for (int step = 0; step < 1000; ++step) {
    sent += Sent(CompressionType::kBF16, {0.001f + (step % 2 == 0 ? 4.0f : -4.0f)}, &rest)[0];
  }
  EXPECT_NEAR(sent, 1.0, 4.0 / 256);
}

// The places where messages begin and end, at whole lines, change nothing.
TEST_P(WireTest, DoesNotDependOnHowNumbersAreDivided) {
  const std::vector<float> values = Mixed(160, 1);
  std::vector<float> rest;
  const std::vector<float> whole = Sent(GetParam(), values, &rest);
  for (const size_t at : {size_t{16}, size_t{80}, size_t{144}}) {
    std::vector<float> rest1, rest2;
    const auto middle = values.begin() + static_cast<int64_t>(at);
    std::vector<float> parts = Sent(GetParam(), {values.begin(), middle}, &rest1);
    const std::vector<float> second = Sent(GetParam(), {middle, values.end()}, &rest2);
    parts.insert(parts.end(), second.begin(), second.end());
    EXPECT_THAT(parts, ElementsAreArray(whole));
    rest1.insert(rest1.end(), rest2.begin(), rest2.end());
    EXPECT_THAT(rest1, ElementsAreArray(rest));
  }
}

TEST(ResidualsTest, BelongToTheNumbersOfABlock) {
  std::vector<float> block(100), other(50);
  ErrorFeedback rest;
  rest.Of(block, &block[10])[3] = 5;
  EXPECT_EQ(*rest.Of(block, &block[13]), 5.0f);
  EXPECT_EQ(*rest.Of(other, &other[13]), 0.0f);
  rest.Clear();
  EXPECT_EQ(*rest.Of(block, &block[13]), 0.0f);
}

}  // namespace
}  // namespace trainer
