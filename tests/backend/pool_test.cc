#include "trainer/backend/primitives/pool.h"

#include <gmock/gmock.h>

#include <cfloat>
#include <limits>
#include <ostream>

#include "backend/plan_testing.h"
#include "backend/pool_images.h"
#include "trainer/backend/device/device.h"
#include "trainer/base/error/error.h"

namespace trainer {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct PoolCase {
  const char* name;
  PoolDesc desc;
};
void PrintTo(const PoolCase& c, std::ostream* out) { *out << c.name; }

namespace {

PoolDesc RectangularPool() {
  return {.batch = 2,
          .channels = 17,
          .in_h = 9,
          .in_w = 12,
          .out_h = 5,
          .out_w = 4,
          .kernel_h = 2,
          .kernel_w = 5,
          .stride_h = 2,
          .stride_w = 3,
          .pad_h = 1,
          .pad_w = 2};
}

const PoolCase kPoolCases[] = {
    {"lenet_first", SquarePool(5, 20, 24, 24, 2, 2)},
    {"lenet_second", SquarePool(5, 50, 8, 8, 2, 2)},
    {"overlapping", SquarePool(2, 32, 13, 15, 3, 2)},
    {"stride_one", SquarePool(2, 16, 7, 7, 3, 1, 1)},
    {"one_channel", SquarePool(2, 1, 9, 9, 3, 2)},
    {"three_channels", SquarePool(2, 3, 9, 9, 3, 2, 1)},
    {"seven_channels", SquarePool(2, 7, 10, 9, 2, 2)},
    {"odd_channels", SquarePool(1, 33, 6, 7, 3, 3)},
    {"gaps", SquarePool(2, 18, 11, 11, 2, 3)},
    {"empty_last_window", SquarePool(2, 18, 6, 6, 1, 5)},
    {"global", SquarePool(3, 40, 7, 7, 7, 1)},
    {"window_of_255",
     [] {
       PoolDesc desc = SquarePool(1, 5, 15, 17, 15, 1);
       desc.kernel_w = 17;
       desc.out_w = 1;
       return desc;
     }()},
    {"window_of_256", SquarePool(1, 17, 17, 16, 16, 1)},
    {"rectangular", RectangularPool()},
    {"twelve_channels_stride_one", SquarePool(2, 12, 7, 6, 3, 1, 1)},
    {"many_channels", SquarePool(2, 272, 9, 8, 3, 2)},
    {"three_windows_over_a_place", SquarePool(2, 40, 11, 12, 5, 2, 2)},
    {"four_windows_over_a_place", SquarePool(2, 40, 9, 9, 4, 1, 1)},
    {"clipped_tiles", SquarePool(2, 48, 7, 8, 3, 3)},
    {"large", SquarePool(4, 64, 40, 40, 3, 2)},
};

// Gradients of 64 MiB, which are written past the caches by the kernels for f32.
const PoolCase kStreamedPools[] = {{"streamed", SquarePool(1, 64, 513, 513, 3, 2)},
                                   {"streamed_tiles", SquarePool(1, 64, 513, 513, 2, 2)}};

std::string NameOfCasePool(const testing::TestParamInfo<std::tuple<PoolCase, DType>>& info) {
  return std::get<0>(info.param).name + std::string(NameOf(std::get<1>(info.param)));
}

class PoolPlanTest : public testing::TestWithParam<std::tuple<PoolCase, DType>> {
 protected:
  // Runs plan and reference forward and backward on the same numbers. Maxima and the sums of their
  // gradients, added in the same order, are compared bit for bit.
  void Compare(PoolMethod method, const Values& x, bool relu = false) {
    PoolDesc desc = std::get<0>(GetParam()).desc;
    desc.relu = relu;
    desc.dtype = std::get<1>(GetParam());
    desc.method = method;
    const auto plan = MetaDevice().NewPool(desc), reference = MakeReferencePool(desc);
    GuardedBytes kept(plan->WorkspaceBytes()), kept_reference(reference->WorkspaceBytes(), true);
    const Values y = Values::Random(desc.OutShape(), desc.dtype, 9);
    const Values want = Values::Random(desc.OutShape(), desc.dtype, 8);
    plan->Forward(x, y, kept.span());
    reference->Forward(x.Host(), want.Host(), kept_reference.span());
    ExpectSame(method, y, want);
    if (method == PoolMethod::kMax) {
      const Values mask = Values::Unset(desc.OutShape()), wins = Values::Unset(desc.OutShape());
      plan->ArgMax(kept.span(), mask);
      reference->ArgMax(kept_reference.span(), wins.Host());
      ExpectSame(method, mask, wins);
    }
    const Values dy = Values::Random(desc.OutShape(), desc.dtype, 7);
    const Values dx = Values::Unset(desc.InShape(), desc.dtype);
    const Values want_dx = Values::Unset(desc.InShape(), desc.dtype);
    plan->Backward(dy, dx, kept.span());
    reference->Backward(dy.Host(), want_dx.Host(), kept_reference.span());
    ExpectSame(method, dx, want_dx);
    EXPECT_TRUE(kept.Intact());
  }

  // Treats NaN as equal to NaN. Averages may differ by the rounding of 1 / area and of the storage.
  void ExpectSame(PoolMethod method, const Values& got, const Values& want) const {
    const bool sums = method == PoolMethod::kAverage;
    const float bound = !sums ? 0.0f : BoundOf(dtype(), 1e-6f, 1.0f / 128);
    for (int64_t i = 0; i < want.size(); ++i) {
      if (std::isnan(got[i]) && std::isnan(want[i])) continue;
      if (got[i] == want[i]) continue;
      ASSERT_LE(std::abs(got[i] - want[i]), bound * std::max(0.1f, std::abs(want[i])))
          << "at " << i;
    }
  }
  Shape InShape() const { return std::get<0>(GetParam()).desc.InShape(); }
  DType dtype() const { return std::get<1>(GetParam()); }
};

TEST_P(PoolPlanTest, MaxMatchesTheReference) {
  Compare(PoolMethod::kMax, Values::Random(InShape(), dtype(), 1));
}

TEST_P(PoolPlanTest, MaxWithReluMatchesTheReference) {
  Compare(PoolMethod::kMax, Values::Random(InShape(), dtype(), 1), true);
}

TEST_P(PoolPlanTest, AverageMatchesTheReference) {
  Compare(PoolMethod::kAverage, Values::Random(InShape(), dtype(), 2));
}

TEST_P(PoolPlanTest, MaxTakesTheFirstOfEquals) {
  std::vector<float> steps(InShape().Count());
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<float>(i * 7 % 3);
  Compare(PoolMethod::kMax, Values::Of(InShape(), steps, dtype()));
}

TEST_P(PoolPlanTest, MaxOfNanAndInfinityHasNoWinnerOutside) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> numbers(InShape().Count(), NAN);
  for (size_t i = 0; i < numbers.size(); i += 5) numbers[i] = i % 2 == 0 ? -inf : inf;
  Compare(PoolMethod::kMax, Values::Of(InShape(), numbers, dtype()));
}

INSTANTIATE_TEST_SUITE_P(Of, PoolPlanTest,
                         testing::Combine(testing::ValuesIn(kPoolCases),
                                          testing::ValuesIn(StoredTypes())),
                         NameOfCasePool);
INSTANTIATE_TEST_SUITE_P(Streamed, PoolPlanTest,
                         testing::Combine(testing::ValuesIn(kStreamedPools),
                                          testing::Values(DType::kF32)),
                         NameOfCasePool);

TEST(PoolTest, AllNanGivesTheSmallestFloatNoWinnerAndNoGradient) {
  const auto plan = MetaDevice().NewPool(SquarePool(1, 2, 4, 4, 2, 2));
  const Values x = Values::Unset({1, 2, 4, 4}), y = Values::Unset({1, 2, 2, 2});
  const Values mask = Values::Unset({1, 2, 2, 2});
  GuardedBytes kept(plan->WorkspaceBytes());
  plan->Forward(x, y, kept.span());
  EXPECT_THAT(y.ToVector(), Each(-FLT_MAX));
  plan->ArgMax(kept.span(), mask);
  EXPECT_THAT(mask.ToVector(), Each(-1.0f));
  const Values dy = Values::Random({1, 2, 2, 2}, DType::kF32, 1), dx = Values::Unset({1, 2, 4, 4});
  plan->Backward(dy, dx, kept.span());
  EXPECT_THAT(dx.ToVector(), Each(0.0f));
}

TEST(PoolTest, WithReluAWindowWithoutAPositiveValueIsZeroAndHasNoGradient) {
  PoolDesc desc = SquarePool(1, 1, 2, 6, 2, 2);
  desc.relu = true;
  const auto plan = MetaDevice().NewPool(desc);
  const Values x = Values::Of({1, 1, 2, 6}, {-1, -2, 0, -3, 4, -1,  //
                                             -3, -4, -5, NAN, 5, 3});
  const Values y = Values::Unset({1, 1, 1, 3}), mask = Values::Unset({1, 1, 1, 3});
  GuardedBytes kept(plan->WorkspaceBytes());
  plan->Forward(x, y, kept.span());
  EXPECT_THAT(y.ToVector(), ElementsAre(0, 0, 5));
  plan->ArgMax(kept.span(), mask);
  EXPECT_THAT(mask.ToVector(), ElementsAre(-1, -1, 10));
  const Values dy = Values::Of({1, 1, 1, 3}, {7, 8, 9}), dx = Values::Unset({1, 1, 2, 6});
  plan->Backward(dy, dx, kept.span());
  EXPECT_THAT(dx.ToVector(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0));
}

TEST(PoolTest, EmptyLastWindowIsNanForAverageAndUnwonForMax) {
  PoolDesc desc = SquarePool(1, 1, 6, 6, 1, 5);
  desc.out_h = desc.out_w = 3;  // the third window starts at 10
  const auto max = MetaDevice().NewPool(desc);
  const Values x = Values::Random({1, 1, 6, 6}, DType::kF32, 1), y = Values::Unset({1, 1, 3, 3});
  GuardedBytes kept(max->WorkspaceBytes());
  max->Forward(x, y, kept.span());
  EXPECT_EQ(y[8], -FLT_MAX);
  max->ArgMax(kept.span(), y);
  EXPECT_EQ(y[8], -1);
  EXPECT_EQ(y[4], 35);
  desc.method = PoolMethod::kAverage;
  MetaDevice().NewPool(desc)->Forward(x, y, {});
  EXPECT_TRUE(std::isnan(y[8]));
  EXPECT_EQ(y[4], x[35]);
}

TEST(PoolTest, KeepsWinnersInOneByteAndOnlyForTraining) {
  PoolDesc desc = SquarePool(2, 20, 24, 24, 2, 2);
  EXPECT_EQ(MetaDevice().NewPool(desc)->WorkspaceBytes(), 2u * 20 * 12 * 12);
  desc.training = false;
  const auto plan = MetaDevice().NewPool(desc);
  EXPECT_EQ(plan->WorkspaceBytes(), 0u);
  const Values x = Values::Random(desc.InShape(), DType::kF32, 1);
  const Values y = Values::Unset(desc.OutShape()), want = Values::Unset(desc.OutShape());
  plan->Forward(x, y, {});
  MakeReferencePool(desc)->Forward(x.Host(), want.Host(), {});
  EXPECT_EQ(y.ToVector(), want.ToVector());
}

TEST(PoolTest, RefusesWindowsOfPaddingOnly) {
  PoolDesc desc = SquarePool(1, 1, 6, 6, 2, 2);
  desc.pad_w = 2;
  EXPECT_THAT([&] { MetaDevice().NewPool(desc); },
              ThrowsMessage<Error>(HasSubstr("a pad of 0 x 2 with a kernel of 2 x 2 makes windows "
                                             "that hold padding only")));
}

TEST(PoolTest, RefusesLengthsBelowTheirLeast) {
  PoolDesc desc = SquarePool(1, 1, 6, 6, 2, 2);
  desc.stride_w = 0;
  EXPECT_THAT([&] { MetaDevice().NewPool(desc); },
              ThrowsMessage<Error>(HasSubstr("the horizontal stride is 0; it must be at least 1")));
  desc = SquarePool(1, 1, 6, 6, 2, 2);
  desc.kernel_h = 0;
  EXPECT_THAT([&] { MetaDevice().NewPool(desc); },
              ThrowsMessage<Error>(HasSubstr("the kernel's height is 0")));
}

TEST(PoolTest, RefusesAWorkspaceThatIsTooSmallAndOtherShapes) {
  TRAINER_CPU_ONLY("the words are those of its plan");
  const PoolDesc desc = SquarePool(1, 4, 6, 6, 2, 2);
  const auto plan = MetaDevice().NewPool(desc);
  const Values x = Values::Unset(desc.InShape()), y = Values::Unset(desc.OutShape());
  EXPECT_THAT([&] { plan->Forward(x, y, {}); }, ThrowsMessage<Error>(HasSubstr("with 36 bytes")));
  GuardedBytes kept(plan->WorkspaceBytes());
  EXPECT_THAT([&] { plan->Forward(y, y, kept.span()); },
              ThrowsMessage<Error>(HasSubstr("got 1 4 3 3 (36) -> 1 4 3 3 (36)")));
}

TEST(PoolTest, AverageHasNoWinners) {
  PoolDesc desc = SquarePool(1, 4, 6, 6, 2, 2);
  desc.method = PoolMethod::kAverage;
  const auto plan = MetaDevice().NewPool(desc);
  const Values mask = Values::Unset(desc.OutShape());
  EXPECT_THAT([&] { plan->ArgMax({}, mask); },
              ThrowsMessage<Error>(HasSubstr("an average pool has no winners")));
}

TEST(PoolTest, AGpuRefusesImagesBeyond32Bits) {
  if (!TestsOnGpu()) GTEST_SKIP() << "about kernels";
  const PoolDesc desc{
      .batch = 1, .channels = 1, .in_h = 1 << 15, .in_w = 1 << 15, .out_h = 1, .out_w = 1};
  EXPECT_THAT([&] { MakeTestDevice()->NewPool(desc); },
              ThrowsMessage<Error>(HasSubstr("the images have 2^30 pixels or channels, or more")));
}

}  // namespace
}  // namespace trainer
