// Tests which implementation is chosen, and the reasons that the others give. A file adds a
// candidate without editing a list: this one adds a convolution for one unusual description.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/conv_images.h"
#include "backend/plan_testing.h"
#include "conv_kernels.h"
#include "support/test_device.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

// The stub registers like a library's convolution, and sets y = 7.
constexpr int64_t kStubOutputs = 4099;

class StubForward final : public ConvForward {
 public:
  explicit StubForward(const ConvDesc& desc) : count_(desc.OutShape().Count()) {}
  std::string Name() const override { return "stub"; }
  size_t ScratchBytes() const override { return 0; }
  void Run(const void*, const float*, const float*, void* y, std::span<std::byte>) override {
    std::fill_n(static_cast<float*>(y), count_, 7.0f);
  }

 private:
  int64_t count_;
};

KernelOrReason<ConvForward> TakeStub(const Device& device, const ConvDesc& desc) {
  if (device.kind() != DeviceKind::kCpu) return Unsupported{"this is not the CPU"};
  if (desc.out_channels != kStubOutputs) return Unsupported{"it takes 4099 outputs only"};
  return std::make_unique<StubForward>(desc);
}

const RegisterConvKernel<ConvForward> kStub({DeviceKind::kCpu, priority::kOwn - 1, "stub",
                                             TakeStub});

TEST(CandidatesTest, OneMoreFileAddsAConvolution) {
  TRAINER_CPU_ONLY("whose candidates it names");
  const auto device = MakeCpuDevice(1);
  const ConvDesc desc = ImageConv(1, 3, 4, 4, kStubOutputs, 3);
  const auto plan = device->NewConv(desc);
  EXPECT_THAT(plan->kernel(), StartsWith("stub, data gradient "));
  const Values x = Values::Random(desc.InShape(), DType::kF32, 1);
  const Values weight = Values::Random(desc.WeightShape(), DType::kF32, 2);
  const Values bias = Values::Random({kStubOutputs}, DType::kF32, 3);
  const Values y = Values::Unset(desc.OutShape());
  GuardedBytes scratch(plan->ScratchBytes());
  plan->Forward(x, weight.f32(), bias.f32(), y, scratch.span());
  EXPECT_EQ(y[0], 7);
  EXPECT_EQ(y[y.size() - 1], 7);
}

TEST(CandidatesTest, WhoDeclinesSaysWhy) {
  TRAINER_CPU_ONLY("whose candidates it names");
  const auto device = MakeCpuDevice(1);
  const auto plan = device->NewConv(ImageConv(1, 16, 8, 8, 16, 3, 2, 1));
  EXPECT_THAT(plan->skipped_kernels(),
              AllOf(Contains("forward: stub: it takes 4099 outputs only"),
                    Contains("forward: own depthwise: the groups do not have one input and one "
                             "output channel each"),
                    Contains(HasSubstr("forward: own Winograd: ")),
                    Contains("data gradient: onednn transposed: the stride is not 1"),
                    Contains(HasSubstr("weight gradient: own segments: ")),
                    Not(Contains(HasSubstr("onednn: "))), Not(Contains(HasSubstr("reference")))));
}

TEST(CandidatesTest, ReferenceLoopsComeLastAndTakeEverything) {
  TRAINER_CPU_ONLY("whose candidates it names");
  const auto device = MakeCpuDevice(1);
  ConvDesc desc = ImageConv(1, 1, 2, 2, 1, 1);
  desc.in = desc.kernel = desc.stride = desc.dilation = {1, 1, 1, 1};
  desc.pad = {0, 0, 0, 0};
  const auto plan = device->NewConv(desc);
  EXPECT_EQ(plan->kernel(), "reference loops");
  EXPECT_THAT(plan->skipped_kernels(),
              Contains("weight gradient: onednn: it supports up to 3 spatial axes, not 4"));
  std::string last;
  for (const auto& one : KernelRegistry<ConvDesc, ConvBackwardData>::Get().all()) {
    if (one.device == DeviceKind::kCpu) last = one.name;
  }
  EXPECT_EQ(last, "reference loops");
}

TEST(CandidatesTest, ProductsAndPoolsAreChosenTheSameWay) {
  TRAINER_CPU_ONLY("whose candidates it names");
  const auto device = MakeCpuDevice(1);
  const auto product = device->NewGemm({.m = 4, .n = 4, .k = 4, .trans_b = true});
  EXPECT_THAT(product->kernel(), StartsWith("onednn matmul"));
  EXPECT_THAT(product->skipped_kernels(),
              ElementsAre(StartsWith("own product: "),
                          "onednn sgemm: matmul is faster with a transposed second matrix"));
  const auto pool = device->NewPool({.batch = 1,
                                     .channels = 1,
                                     .in_h = 2,
                                     .in_w = 2,
                                     .out_h = 1,
                                     .out_w = 1,
                                     .kernel_h = 2,
                                     .kernel_w = 2});
  EXPECT_EQ(pool->kernel(), "channel vectors");
  EXPECT_THAT(pool->skipped_kernels(), IsEmpty());
}

struct NoDesc {};
std::string Describe(const NoDesc&) { return "nothing"; }
struct Nothing {
  int from;
};
using Few = KernelRegistry<NoDesc, Nothing>;

KernelOrReason<Nothing> TakeFirst(const Device&, const NoDesc&) {
  return Unsupported{"it is the first"};
}
KernelOrReason<Nothing> TakeSecond(const Device&, const NoDesc&) {
  return Unsupported{"it is the second"};
}
KernelOrReason<Nothing> TakeThird(const Device&, const NoDesc&) {
  return std::make_unique<Nothing>(Nothing{3});
}

TEST(CandidatesTest, RanksDecideWhoIsAskedFirst) {
  TRAINER_CPU_ONLY("whose candidates it names");
  const auto device = MakeCpuDevice(1);
  Few few;
  few.Add({DeviceKind::kCpu, 30, "third", TakeThird});
  few.Add({DeviceKind::kCpu, 10, "first", TakeFirst});
  few.Add({DeviceKind::kCuda, 5, "of another device", TakeThird});
  few.Add({DeviceKind::kCpu, 20, "second", TakeSecond});
  const ChosenKernel<Nothing> chosen = few.Choose(*device, {}, "a test");
  EXPECT_EQ(chosen.made->from, 3);
  EXPECT_THAT(chosen.declined, ElementsAre("first: it is the first", "second: it is the second"));
  EXPECT_THAT(
      [&] {
        few.Add({DeviceKind::kCpu, 20, "twin", TakeThird});
      },
      ThrowsMessage<Error>(HasSubstr("'twin' and 'second' are candidates of one rank")));
}

TEST(CandidatesTest, WhereAllDeclineTheErrorHasTheirReasons) {
  TRAINER_CPU_ONLY("whose candidates it names");
  const auto device = MakeCpuDevice(1);
  Few few;
  few.Add({DeviceKind::kCpu, 10, "first", TakeFirst});
  few.Add({DeviceKind::kCpu, 20, "second", TakeSecond});
  EXPECT_THAT([&] { few.Choose(*device, {}, "a test"); },
              ThrowsMessage<Error>(
                  HasSubstr("a test: this device has no implementation for it (first: it is the "
                            "first; second: it is the second)")));
}

}  // namespace
}  // namespace trainer
