// Tests that element-wise and row-wise loops process each element once, with any count and threads.

#include "trainer/backend/loops/map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/test_device.h"
#include "trainer/backend/loops/reduce.h"
#include "trainer/backend/memory/nchw_copy.h"

namespace trainer {
namespace {

struct Affine {
  float a, b;
  HD float operator()(float x) const { return a * x + b; }
};
struct Product {
  HD float operator()(float x, float y) const { return x * y; }
};
struct PlusIndex {
  HD float operator()(int64_t i, float x) const { return x + static_cast<float>(i); }
};
// Multiplies by a number of the device, which a GPU reads once per thread.
struct TimesStored {
  const float* factor;
  struct Times {
    float by;
    HD float operator()(float x) const { return by * x; }
  };
  HD Times Prepared() const { return {*factor}; }
  HD float operator()(float x) const { return Prepared()(x); }
};
struct Momentum {
  HD void operator()(float& w, float& v, const float& g) const {
    v = 0.5f * v + g;
    w -= v;
  }
};

class MapTest : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Device> device_ = MakeTestDevice();
  int64_t n_ = GetParam();
  std::vector<float> Ramp(float from = 0) const {
    std::vector<float> values(static_cast<size_t>(n_));
    std::iota(values.begin(), values.end(), from);
    return values;
  }
  OnDevice<float> Put(const std::vector<float>& values) const { return {*device_, values}; }
  Tensor View(const OnDevice<float>& v) const { return {v.data(), {n_}, DType::kF32}; }
};
INSTANTIATE_TEST_SUITE_P(Counts, MapTest, testing::Values(0, 1, 15, 16, 17, 1000, 40001),
                         testing::PrintToStringParamName());

TEST_P(MapTest, AppliesTheFunctorToEachElement) {
  const std::vector<float> x = Ramp();
  const OnDevice<float> to = Put(std::vector<float>(x.size()));
  Map(*device_, Affine{2, 1}, View(to), View(Put(x)));
  const std::vector<float> y = to.Read();
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 2 * x[i] + 1);
}

TEST_P(MapTest, MayWriteOverAnInput) {
  const std::vector<float> x = Ramp();
  const OnDevice<float> to = Put(Ramp(3));
  Map(*device_, Product{}, View(to), View(Put(x)), View(to));
  const std::vector<float> y = to.Read();
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[i] * (x[i] + 3));
}

TEST_P(MapTest, PreparesAFunctor) {
  const OnDevice<float> to = Put(Ramp(1)), factor(*device_, std::vector<float>{3});
  Map(*device_, TimesStored{factor.data()}, View(to), View(to));
  const std::vector<float> y = to.Read();
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 3 * static_cast<float>(i + 1));
}

TEST_P(MapTest, GivesTheIndex) {
  const OnDevice<float> to = Put(std::vector<float>(static_cast<size_t>(n_), 0.5f));
  MapIndexed(*device_, PlusIndex{}, View(to), View(to));
  const std::vector<float> x = to.Read();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], 0.5f + static_cast<float>(i));
}

TEST_P(MapTest, UpdatesSeveralArraysInOnePass) {
  const auto count = static_cast<size_t>(n_);
  const OnDevice<float> weights = Put(Ramp()), speeds = Put(std::vector<float>(count, 2));
  const OnDevice<float> gradients = Put(std::vector<float>(count, 1));
  Update(*device_, Momentum{}, n_, weights.data(), speeds.data(), gradients.data());
  const std::vector<float> w = weights.Read(), v = speeds.Read();
  for (size_t i = 0; i < w.size(); ++i) {
    ASSERT_EQ(v[i], 2);
    ASSERT_EQ(w[i], static_cast<float>(i) - 2);
  }
}

TEST_P(MapTest, ComputesEveryTypeInFloat) {
  for (const DType type : StoredTypes()) {
    DispatchDtype(type, [&](auto tag) {
      using T = typename decltype(tag)::Type;
      std::vector<T> numbers(static_cast<size_t>(n_));
      for (size_t i = 0; i < numbers.size(); ++i) Store(numbers[i], static_cast<float>(i % 200));
      const OnDevice<T> x(*device_, numbers), to(*device_, numbers.size());
      Map(*device_, Affine{0.5f, 1}, Tensor{to.data(), {n_}, type}, Tensor{x.data(), {n_}, type});
      const std::vector<T> y = to.Read();
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(Load(y[i]), 0.5f * static_cast<float>(i % 200) + 1) << NameOf(type);
      }
    });
  }
}

struct SumAndMax {
  const float* x;
  float *sum, *max;
  int64_t length;
  template <class Row>
  HD void operator()(const Row& row) const {
    const float* in = x + row.index * length;
    const float total = row.Sum([&](int64_t i) { return in[i]; });
    const float top = row.Max([&](int64_t i) { return in[i]; });
    row.Once([&] {
      sum[row.index] = total;
      max[row.index] = top;
    });
  }
};

// Has two conditions, and the second one may guard a load. Each form needs a mask per lane.
template <int kForm>
struct Conditional {
  const float *a, *b;
  HD float operator()(int64_t i, float c) const {
    if (kForm == 0) return a[i] == c && b[i] > 0 ? 1.0f : 0.0f;
    if (kForm == 1) return a[i] == c ? (b[i] >= 0 ? 1.0f : 0.0f) : 0.0f;
    if (kForm == 2) return a[i] < c || b[i] > 0 ? 1.0f : 0.0f;
    return b[i] == -1 || b[i] == 1 ? 0.0f : a[i];
  }
};

template <int kForm>
struct ConditionalSum {
  Conditional<kForm> term;
  float* out;
  template <class Row>
  HD void operator()(const Row& row) const {
    const auto c = static_cast<float>(row.index);
    const float sum = row.Sum([&](int64_t i) { return term(i, c); });
    row.Once([&] { out[row.index] = sum; });
  }
};

// Runs the loop over rows compiled for each instruction set that this processor has.
template <int kForm>
void ExpectConditionalSums() {
  constexpr int64_t kLength = 500, kRows = 7;
  std::vector<float> a(kLength), b(kLength);
  for (size_t i = 0; i < kLength; ++i) {
    a[i] = static_cast<float>(i * 3 % 7);
    b[i] = static_cast<float>(i * 13 % 3) - 1;
  }
  const Conditional<kForm> term{a.data(), b.data()};
  std::vector<float> want(kRows), got(kRows);
  for (size_t r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kLength; ++i) want[r] += term(i, static_cast<float>(r));
  }
  const ConditionalSum<kForm> sum{term, got.data()};
  const auto body = [=](int64_t r) __attribute__((always_inline)) { sum(CpuRow{r, kLength}); };
  parallel_for_internal::LoopBase(0, kRows, body);
  EXPECT_EQ(got, want) << "base, form " << kForm;
  if (DetectCpuIsa() == CpuIsa::kBase) return;
  parallel_for_internal::LoopAvx2(0, kRows, body);
  EXPECT_EQ(got, want) << "AVX2, form " << kForm;
  if (DetectCpuIsa() != CpuIsa::kAvx512) return;
  parallel_for_internal::LoopAvx512(0, kRows, body);
  EXPECT_EQ(got, want) << "AVX-512, form " << kForm;
}

TEST(CpuRowTest, SumsWithTwoConditionsAreRightForEveryInstructionSet) {
  ExpectConditionalSums<0>();
  ExpectConditionalSums<1>();
  ExpectConditionalSums<2>();
  ExpectConditionalSums<3>();
}

TEST_P(MapTest, RowsHaveTheirSumsAndMaxima) {
  const int64_t rows = 37;
  std::vector<float> x(static_cast<size_t>(rows * n_));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 101) - 50;
  const OnDevice<float> in = Put(x), sums = Put(std::vector<float>(37, -1));
  const OnDevice<float> maxima = Put(std::vector<float>(37, -1));
  MapRows(*device_, rows, n_, SumAndMax{in.data(), sums.data(), maxima.data(), n_});
  const std::vector<float> sum = sums.Read(), max = maxima.Read();
  for (int64_t r = 0; r < rows; ++r) {
    double total = 0;
    float top = -FLT_MAX;
    for (int64_t i = 0; i < n_; ++i) {
      total += x[static_cast<size_t>(r * n_ + i)];
      top = std::max(top, x[static_cast<size_t>(r * n_ + i)]);
    }
    ASSERT_NEAR(sum[static_cast<size_t>(r)], total, 1e-2);
    ASSERT_EQ(max[static_cast<size_t>(r)], top);
  }
}

struct SquareMap {
  const float* x;
  HD float operator()(int64_t i) const { return x[i] * x[i]; }
};

TEST_P(MapTest, SumsDoNotDependOnTheNumberOfThreads) {
  std::vector<float> x(static_cast<size_t>(n_));
  double expected = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i));
    expected += double{x[i]} * x[i];
  }
  std::vector<float> sums;
  for (const int threads : {2, 1}) {
    const auto device = MakeTestDevice(threads);
    const OnDevice<float> in(*device, x), sum(*device, std::vector<float>{-1});
    ReduceSum(*device, n_, SquareMap{in.data()}, 3, sum.data());
    sums.push_back(sum.Read()[0]);
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_NEAR(sums[0], 3 * expected, 1e-4 * (1 + expected));
}

TEST_P(MapTest, ColumnSumsAreAdded) {
  const int64_t rows = 9;
  const OnDevice<float> x = Put(std::vector<float>(static_cast<size_t>(rows * n_), 0.5f));
  const OnDevice<float> sums = Put(std::vector<float>(static_cast<size_t>(n_), 1));
  const ConstTensor in(x.data(), {rows, n_});
  device_->AddChannelSums(ChannelSumsDesc::Of(in.shape, 1), in, nullptr, sums.data());
  for (const float sum : sums.Read()) ASSERT_EQ(sum, 5.5f);
}

TEST(LayoutTest, PlainOrderIsChannelsThenRowsThenColumns) {
  const auto device = MakeTestDevice(1);
  // The image (1, 2, 1, 3) is stored pixel by pixel, with both channels of a pixel together.
  const std::vector<float> pixels = {1, 10, 2, 20, 3, 30};
  const OnDevice<float> memory(*device, pixels), plain(*device, 6), back(*device, 6);
  const Tensor image{memory.data(), {1, 2, 1, 3}, DType::kF32};
  CopyToNchw(*device, image, plain.data());
  EXPECT_THAT(plain.Read(), testing::ElementsAre(1, 2, 3, 10, 20, 30));
  CopyFromNchw(*device, plain.data(), {back.data(), image.shape, DType::kF32});
  EXPECT_EQ(back.Read(), pixels);
}

}  // namespace
}  // namespace trainer
