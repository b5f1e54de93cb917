// The weight gradient of a convolution from the winners of the max pool after it, compared with the
// gradients of the reference pool and the reference convolution.

#include <gmock/gmock.h>

#include <algorithm>
#include <ostream>

#include "backend/conv_images.h"
#include "backend/plan_testing.h"
#include "backend/pool_images.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/base/error/error.h"

namespace trainer {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct PooledConvCase {
  const char* name;
  ConvDesc conv;
  int64_t kernel, stride, pad = 0;  // of the pool
  bool relu = false;
  int threads = 2;
};
void PrintTo(const PooledConvCase& c, std::ostream* out) { *out << c.name; }

namespace {

// Returns a pool of the convolution's output.
PoolDesc PoolOf(const ConvDesc& conv, int64_t kernel, int64_t stride, int64_t pad = 0) {
  const std::vector<int64_t> in = conv.Out();
  return SquarePool(conv.batch, conv.out_channels, in[0], in[1], kernel, stride, pad);
}

ConvDesc With(ConvDesc desc, std::vector<int64_t> kernel, std::vector<int64_t> stride,
              std::vector<int64_t> pad, std::vector<int64_t> dilation) {
  desc.kernel = std::move(kernel);
  desc.stride = std::move(stride);
  desc.pad = std::move(pad);
  desc.dilation = std::move(dilation);
  return desc;
}

const PooledConvCase kPooledConvCases[] = {
    {.name = "lenet", .conv = ImageConv(9, 1, 28, 28, 20, 5), .kernel = 2, .stride = 2},
    {.name = "cifar",
     .conv = ImageConv(5, 3, 32, 32, 32, 5, 1, 2),
     .kernel = 3,
     .stride = 2,
     .relu = true},
    {.name = "one_image_on_three_threads",
     .conv = ImageConv(1, 3, 20, 24, 33, 3, 1, 1),
     .kernel = 3,
     .stride = 2,
     .relu = true,
     .threads = 3},
    {.name = "pad_of_the_pool",
     .conv = ImageConv(3, 2, 13, 11, 9, 5, 1, 2),
     .kernel = 3,
     .stride = 2,
     .pad = 1},
    {.name = "strides_and_dilation",
     .conv = With(ImageConv(4, 4, 23, 26, 17, 3), {4, 5}, {2, 3}, {2, 1}, {2, 1}),
     .kernel = 2,
     .stride = 2,
     .relu = true},
    {.name = "rows_of_thirty_floats",
     .conv = WithoutBias(ImageConv(2, 3, 26, 26, 12, 10)),
     .kernel = 4,
     .stride = 3},
    {.name = "thirteen_rows_of_52_floats",
     .conv = ImageConv(2, 4, 24, 24, 8, 13, 1, 4),
     .kernel = 3,
     .stride = 3},
    {.name = "windows_with_gaps",
     .conv = ImageConv(2, 1, 19, 17, 16, 7),
     .kernel = 1,
     .stride = 3,
     .relu = true},
};

class PooledConvTest : public testing::TestWithParam<PooledConvCase> {
 protected:
  void SetUp() override {
    TRAINER_CPU_ONLY("it has this kernel");
    if (DetectCpuIsa() == CpuIsa::kBase) GTEST_SKIP() << "no AVX2";
  }
};

TEST_P(PooledConvTest, MatchesTheGradientsOfThePoolAndTheConvolution) {
  const PooledConvCase& c = GetParam();
  PoolDesc pool_desc = PoolOf(c.conv, c.kernel, c.stride, c.pad);
  pool_desc.relu = c.relu;
  const auto device = MakeCpuDevice(c.threads);
  const auto plan = device->NewPooledConvGradient(c.conv, pool_desc);
  ASSERT_NE(plan, nullptr);
  const auto conv = MakeReferenceConv(c.conv);
  const auto pool = device->NewPool(pool_desc), reference_pool = MakeReferencePool(pool_desc);

  const Values x = Values::Random(c.conv.InShape(), DType::kF32, 1);
  const Values weight = Values::Random(c.conv.WeightShape(), DType::kF32, 2);
  const Values bias = Values::Random({c.conv.out_channels}, DType::kF32, 3);
  const Values y = Values::Unset(c.conv.OutShape()), pooled = Values::Unset(pool_desc.OutShape());
  conv->Forward(x, weight.f32(), bias.f32(), y, {});
  GuardedBytes winners(pool->WorkspaceBytes()), kept(reference_pool->WorkspaceBytes());
  pool->Forward(y, pooled, winners.span());
  reference_pool->Forward(y, pooled, kept.span());

  const Values dpooled = Values::Random(pool_desc.OutShape(), DType::kF32, 4);
  const Values dy = Values::Unset(c.conv.OutShape());
  reference_pool->Backward(dpooled, dy, kept.span());
  const Values want = Values::Random(c.conv.WeightShape(), DType::kF32, 5);
  const Values want_bias = Values::Random({c.conv.out_channels}, DType::kF32, 6);
  const Values got = Values::Of(c.conv.WeightShape(), want.ToVector());
  const Values got_bias = Values::Of({c.conv.out_channels}, want_bias.ToVector());
  conv->BackwardWeight(x, dy, want.f32(), want_bias.f32(), {});

  GuardedBytes scratch(plan->ScratchBytes());
  std::fill(scratch.span().begin(), scratch.span().end(), std::byte{0xFF});  // NaN
  plan->Run(x, dpooled, winners.span(), got.f32(), c.conv.bias ? got_bias.f32() : nullptr,
            scratch.span());
  constexpr float kBound = 3e-6f;  // of sums of up to 1,300 products in another order
  ExpectClose(got, want, kBound, "dweight");
  if (c.conv.bias) ExpectClose(got_bias, want_bias, kBound, "dbias");
  EXPECT_TRUE(scratch.Intact());

  const Values again = Values::Random(c.conv.WeightShape(), DType::kF32, 5);
  plan->Run(x, dpooled, winners.span(), again.f32(), nullptr, scratch.span());
  EXPECT_EQ(again.ToVector(), got.ToVector()) << "two runs differ";
}

INSTANTIATE_TEST_SUITE_P(Of, PooledConvTest, testing::ValuesIn(kPooledConvCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(PooledConvGradientTest, LeavesOtherShapesToTheGradientOfTheOutput) {
  TRAINER_CPU_ONLY("it has this kernel");
  if (DetectCpuIsa() == CpuIsa::kBase) GTEST_SKIP() << "no AVX2";
  const auto refuses = [](const ConvDesc& conv, PoolDesc pool, PoolMethod method) {
    pool.method = method;
    return MetaDevice().NewPooledConvGradient(conv, pool) == nullptr;
  };
  const auto max = PoolMethod::kMax;
  const ConvDesc good = ImageConv(2, 4, 24, 24, 8, 5);
  EXPECT_FALSE(refuses(good, PoolOf(good, 2, 2), max));
  EXPECT_TRUE(refuses(good, PoolOf(good, 2, 2), PoolMethod::kAverage));
  EXPECT_TRUE(refuses(good, PoolOf(good, 2, 1), max)) << "almost all outputs win";
  EXPECT_TRUE(refuses(good, PoolOf(good, 16, 4), max)) << "winners do not fit bytes";
  const ConvDesc five = ImageConv(2, 5, 24, 24, 8, 5), seven = ImageConv(2, 4, 24, 24, 7, 5);
  EXPECT_TRUE(refuses(five, PoolOf(five, 2, 2), max)) << "five inputs";
  EXPECT_TRUE(refuses(seven, PoolOf(seven, 2, 2), max)) << "seven outputs";
  const ConvDesc large = ImageConv(2, 3, 224, 224, 64, 7, 2, 3);
  EXPECT_TRUE(refuses(large, PoolOf(large, 3, 2), max)) << "a table larger than the caches";
  ConvDesc bf16 = good;
  bf16.dtype = DType::kBF16;
  EXPECT_TRUE(refuses(bf16, PoolOf(bf16, 2, 2), max));
}

TEST(PooledConvGradientTest, RefusesOtherShapesThanPlanned) {
  TRAINER_CPU_ONLY("it has this kernel");
  if (DetectCpuIsa() == CpuIsa::kBase) GTEST_SKIP() << "no AVX2";
  const ConvDesc conv = ImageConv(2, 1, 12, 12, 8, 5);
  const PoolDesc pool = PoolOf(conv, 2, 2);
  const auto plan = MetaDevice().NewPooledConvGradient(conv, pool);
  const Values x = Values::Unset(conv.InShape()), dy = Values::Unset(pool.OutShape());
  EXPECT_THAT([&] { plan->Run(dy, dy, {}, nullptr, nullptr, {}); },
              ThrowsMessage<Error>(HasSubstr("convolution (input)")));
  EXPECT_THAT([&] { plan->Run(x, x, {}, nullptr, nullptr, {}); },
              ThrowsMessage<Error>(HasSubstr("pooling (output gradient)")));
}

}  // namespace
}  // namespace trainer
