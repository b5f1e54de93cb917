// Tests loops over lists of segments.

#include "trainer/backend/loops/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/test_device.h"
#include "trainer/backend/loops/multi_tensor.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;

// Some segments have tails, several chunks, no elements, or arrays not aligned to a cache line.
class SegmentsTest : public testing::Test {
 protected:
  static constexpr int kArrays = 3;

  void SetUp() override {
    for (int a = 0; a < kArrays; ++a) {
      values_.emplace_back(1 + 3 * 10000);
      for (size_t i = 0; i < values_[0].size(); ++i) {
        values_.back()[i] = std::sin(static_cast<float>(i * (static_cast<size_t>(a) + 1)));
      }
      memory_.push_back(std::make_unique<OnDevice<float>>(*device_, values_.back()));
    }
  }

  TensorList Make() const {
    std::vector<TensorTuple> list;
    for (size_t s = 0; s < counts_.size(); ++s) {
      TensorTuple& segment = list.emplace_back();
      segment.count = counts_[s];
      for (size_t a = 0; a < kArrays; ++a) segment.array[a] = memory_[a]->data() + At(s);
    }
    return TensorList(*device_, list);
  }
  // Returns the index at which segment s begins in each array.
  size_t At(size_t s) const { return starts_[s]; }

  std::unique_ptr<Device> device_ = MakeTestDevice();
  const std::vector<int64_t> counts_ = {5, 9001, 0, 4096, 1, 700};
  const std::vector<size_t> starts_ = {0, 16, 9040, 9040, 13152, 13169};
  std::vector<std::vector<float>> values_;
  std::vector<std::unique_ptr<OnDevice<float>>> memory_;
};

struct AddAndSwap {
  float add;
  HD void operator()(float& a, float& b, float& c) const {
    const float old = a;
    a = b + add;
    b = old;
    c *= 2;
  }
};
struct BySegment {
  HD AddAndSwap operator()(int segment) const { return {static_cast<float>(segment)}; }
};

TEST_F(SegmentsTest, AnUpdateTreatsEveryElementOfItsSegmentsOnce) {
  const TensorList segments = Make();
  for (const auto& [first, last] :
       {std::pair(0, 6), std::pair(1, 2), std::pair(3, 6), std::pair(2, 3), std::pair(4, 4)}) {
    for (size_t s = static_cast<size_t>(first); s < static_cast<size_t>(last); ++s) {
      for (size_t i = At(s); i < At(s) + static_cast<size_t>(counts_[s]); ++i) {
        std::swap(values_[0][i], values_[1][i]);
        values_[0][i] += static_cast<float>(s);
        values_[2][i] *= 2;
      }
    }
    MultiTensorApply<kArrays>(*device_, segments, first, last, BySegment());
    for (size_t a = 0; a < kArrays; ++a) {
      EXPECT_THAT(memory_[a]->Read(), ElementsAreArray(values_[a])) << first << " to " << last;
    }
  }
}

struct Term {
  const float* x;
  float times;
  HD float operator()(int64_t i) const { return times * x[i]; }
};
template <int kArray>
struct TermsOf {
  HD Term operator()(const TensorTuple& s) const { return {s.array[kArray], 1.0f + kArray}; }
};

TEST_F(SegmentsTest, SumsAreThoseOfEachSegmentAlone) {
  const TensorList segments = Make();
  const OnDevice<float> first(*device_, std::vector<float>(6, -1)),
      second(*device_, std::vector<float>(6, -1));
  MultiTensorReduce(*device_, segments, 1, 6, {first.data(), second.data()}, TermsOf<0>(),
                    TermsOf<2>());
  const std::vector<float> sums[] = {first.Read(), second.Read()};
  EXPECT_EQ(sums[0][0], -1) << "not asked for";
  for (size_t s = 1; s < 6; ++s) {
    for (const size_t array : {0, 2}) {
      double expected = 0;
      for (size_t i = At(s); i < At(s) + static_cast<size_t>(counts_[s]); ++i) {
        expected += (1 + static_cast<double>(array)) * values_[array][i];
      }
      EXPECT_NEAR(sums[array / 2][s], expected, 1e-3) << s;
    }
  }
}

TEST_F(SegmentsTest, ASumAloneLeavesNoOther) {
  const TensorList segments = Make();
  const OnDevice<float> sum(*device_, std::vector<float>(6, -1));
  MultiTensorReduce(*device_, segments, 2, 3, {sum.data()}, TermsOf<1>());
  EXPECT_THAT(sum.Read(), testing::ElementsAre(-1, -1, 0, -1, -1, -1));
}

}  // namespace
}  // namespace trainer
