// Checks that plans allocate memory only when they are created, never when they are called.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "backend/plan_testing.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/memory/library_call.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

void* Counted(size_t bytes) {
  if (counting && !trainer::InLibraryCall::Active()) ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return Counted(bytes); }
void* operator new[](size_t bytes) { return Counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace trainer {
namespace {

// Counts allocations of the second equal call, because the first may create what a library caches.
template <class F>
int AllocationsOf(F call) {
  call();
  allocations = 0;
  counting = true;
  call();
  counting = false;
  return allocations;
}

ConvDesc Conv(int64_t channels, int64_t outputs) {
  return {.batch = 4,
          .in_channels = channels,
          .out_channels = outputs,
          .in = {12, 12},
          .kernel = {5, 5},
          .stride = {1, 1},
          .pad = {2, 2},
          .dilation = {1, 1}};
}

class AllocationTest : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override { TRAINER_CPU_ONLY("an emulated GPU allocates for what is queued"); }

  const Device& device_ = MetaDevice();
};

TEST_P(AllocationTest, ConvolutionCallsAllocateNothing) {
  for (ConvDesc desc : {Conv(20, 50), Conv(32, 32)}) {
    desc.dtype = GetParam();
    const auto plan = device_.NewConv(desc);
    const Values x = Values::Random(desc.InShape(), desc.dtype, 1);
    const Values y = Values::Random(desc.OutShape(), desc.dtype, 2);
    const Values weight = Values::Random(desc.WeightShape(), DType::kF32, 3);
    const Values bias = Values::Random({desc.out_channels}, DType::kF32, 4);
    const Tensor in = x, out = y;
    GuardedBytes scratch(plan->ScratchBytes());
    EXPECT_EQ(0, AllocationsOf([&] {
                plan->Forward(in, weight.f32(), bias.f32(), out, scratch.span());
                plan->BackwardWeight(in, out, weight.f32(), bias.f32(), scratch.span());
                plan->BackwardData(out, weight.f32(), in, scratch.span());
              }))
        << plan->kernel();
  }
}

TEST_P(AllocationTest, PoolCallsAllocateNothing) {
  for (const PoolMethod method : {PoolMethod::kMax, PoolMethod::kAverage}) {
    const PoolDesc desc{.method = method,
                        .batch = 4,
                        .channels = 40,
                        .in_h = 24,
                        .in_w = 24,
                        .out_h = 12,
                        .out_w = 12,
                        .kernel_h = 3,
                        .kernel_w = 3,
                        .stride_h = 2,
                        .stride_w = 2,
                        .dtype = GetParam()};
    const auto plan = device_.NewPool(desc);
    const Values x = Values::Random(desc.InShape(), desc.dtype, 1);
    const Values y = Values::Random(desc.OutShape(), desc.dtype, 2);
    const Tensor in = x, out = y;
    GuardedBytes kept(plan->WorkspaceBytes());
    EXPECT_EQ(0, AllocationsOf([&] {
                plan->Forward(in, out, kept.span());
                plan->Backward(out, in, kept.span());
              }));
  }
}

TEST_P(AllocationTest, ProductCallsAllocateNothing) {
  for (const bool trans_b : {false, true}) {
    const GemmDesc desc{.m = 64, .n = 50, .k = 80, .trans_b = trans_b, .dtype = GetParam()};
    const auto plan = device_.NewGemm(desc);
    const Values a = Values::Random({64, 80}, desc.dtype, 1);
    const Values b = Values::Random({80, 50}, desc.dtype, 2);
    const Values c = Values::Unset({64, 50});
    const Tensor left = a, right = b;
    GuardedBytes scratch(plan->ScratchBytes());
    EXPECT_EQ(0, AllocationsOf(
                     [&] { plan->Run(left.data, right.data, nullptr, c.f32(), scratch.span()); }));
  }
}

TEST(AllocationCounterTest, SeesOursAndNotTheLibrarys) {
  EXPECT_EQ(1, AllocationsOf([] { delete new volatile int; }));
  EXPECT_EQ(0, AllocationsOf([] {
              const InLibraryCall mark;
              delete new volatile int;
            }));
}

INSTANTIATE_TEST_SUITE_P(Cpu, AllocationTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

}  // namespace
}  // namespace trainer
