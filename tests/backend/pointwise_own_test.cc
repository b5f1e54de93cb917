// Tests this project's AVX2 loops for 1 x 1 kernels. conv_test.cc compares them with the reference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/conv_images.h"
#include "backend/plan_testing.h"
#include "support/test_device.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/parallel_for.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ConvDesc InBf16(ConvDesc desc) {
  desc.dtype = DType::kBF16;
  return desc;
}

class OwnPointwiseTest : public testing::Test {
 protected:
  void SetUp() override {
    TRAINER_CPU_ONLY("it has these kernels");
    if (DetectCpuIsa() != CpuIsa::kAvx2) GTEST_SKIP() << "they are chosen with AVX2 alone";
  }
  // Runs the forward pass on `threads` threads, with scratch that starts as NaN.
  static Values Forward(const ConvDesc& desc, int threads, const Values& x) {
    const auto device = MakeCpuDevice(threads);
    const auto plan = device->NewConv(desc);
    EXPECT_THAT(plan->kernel(), StartsWith("own product"));
    const Values weight = Values::Random(desc.WeightShape(), DType::kF32, 2);
    const Values bias = Values::Random({desc.out_channels}, DType::kF32, 3);
    GuardedBytes scratch(plan->ScratchBytes());
    std::fill(scratch.span().begin(), scratch.span().end(), std::byte{0xFF});
    Values y = Values::Unset(desc.OutShape(), desc.dtype);
    plan->Forward(x, weight.f32(), bias.f32(), y, scratch.span());
    EXPECT_TRUE(scratch.Intact());
    return y;
  }
};

TEST_F(OwnPointwiseTest, AreTakenWhereTheyPay) {
  const auto device = MakeCpuDevice(2);
  const auto name = [&](const ConvDesc& desc) { return device->NewConv(desc)->kernel(); };
  const ConvDesc even = ImageConv(4, 64, 14, 14, 32, 1), odd = ImageConv(4, 20, 14, 14, 24, 1);
  EXPECT_THAT(name(even), AllOf(StartsWith("onednn"), EndsWith("weight gradient own product")));
  EXPECT_THAT(name(odd), Not(HasSubstr("own product")));
  const ConvDesc few = ImageConv(4, 32, 14, 14, 48, 1);
  EXPECT_THAT(name(few), Not(HasSubstr("own product")));
  EXPECT_THAT(device->NewConv(few)->skipped_kernels(),
              Contains("weight gradient: own product: there are so few channels that packing them "
                       "costs too much"));
  EXPECT_EQ(name(InBf16(even)), "own product");
  EXPECT_EQ(name(InBf16(odd)), "own product");
  EXPECT_EQ(name(InBf16(ImageConv(4, 64, 14, 14, 32, 1, 2))),
            "own product, data gradient own product scattered, weight gradient own product");
  EXPECT_THAT(name(InBf16(ImageConv(4, 7, 14, 14, 32, 1))), Not(HasSubstr("own product")));
}

TEST_F(OwnPointwiseTest, ForwardDoesNotDependOnTheNumberOfThreads) {
  const ConvDesc desc = InBf16(ImageConv(3, 300, 9, 7, 23, 1));
  const Values x = Values::Random(desc.InShape(), desc.dtype, 1);
  const std::vector<float> want = Forward(desc, 1, x).ToVector();
  for (const int threads : {2, 3}) {
    EXPECT_EQ(Forward(desc, threads, x).ToVector(), want) << threads << " threads";
  }
}

TEST_F(OwnPointwiseTest, RectifiesAndKeepsNaN) {
  ConvDesc desc = InBf16(ImageConv(1, 16, 5, 5, 21, 1));
  const Values x = Values::Random(desc.InShape(), desc.dtype, 1);
  x.Set(0, NAN);
  const Values plain = Forward(desc, 2, x);
  desc.relu = true;
  const Values y = Forward(desc, 2, x);
  for (int64_t i = 0; i < y.size(); ++i) {
    if (i < desc.out_channels) {
      EXPECT_TRUE(std::isnan(y[i])) << i;
    } else {
      EXPECT_EQ(y[i], std::max(0.0f, plain[i])) << i;
    }
  }
}

// Each of four threads computes a part of the channels. Sums of small integers are exact.
TEST_F(OwnPointwiseTest, ThreadsShareALargeWeight) {
  constexpr int64_t kPixels = 3, kChannels = 2048;
  const ConvDesc desc = ImageConv(1, kChannels, kPixels, 1, kChannels, 1);
  const auto device = MakeCpuDevice(4);
  const auto plan = device->NewConv(desc);
  ASSERT_THAT(plan->kernel(), EndsWith("weight gradient own product"));
  std::vector<float> x, dy;
  for (int64_t i = 0; i < kPixels * kChannels; ++i) {
    x.push_back(static_cast<float>(i % 7 - 3));
    dy.push_back(static_cast<float>(i % 5 - 2));
  }
  const Values left = Values::Of(desc.OutShape(), dy), right = Values::Of(desc.InShape(), x);
  const Values dweight = Values::Of(desc.WeightShape(), {}), dbias = Values::Of({kChannels}, {});
  GuardedBytes scratch(plan->ScratchBytes());
  plan->BackwardWeight(right, left, dweight.f32(), dbias.f32(), scratch.span());
  const float* sums = dweight.f32();
  int64_t wrong = 0;
  for (int64_t m = 0; m < kChannels; ++m) {
    const float* d = dy.data() + m;
    EXPECT_EQ(dbias[m], d[0] + d[kChannels] + d[2 * kChannels]);
    for (int64_t c = 0; c < kChannels; ++c) {
      const float* p = x.data() + c;
      wrong += sums[m * kChannels + c] !=
               d[0] * p[0] + d[kChannels] * p[kChannels] + d[2 * kChannels] * p[2 * kChannels];
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(scratch.Intact());
}

}  // namespace
}  // namespace trainer
