// An iteration allocates nothing, because memory is planned before the first one.

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>

#include "solver/small_run.h"
#include "support/late_device.h"
#include "trainer/backend/memory/library_call.h"

namespace {

std::atomic<bool> g_counting{false};
std::atomic<long> g_allocations{0};

void Count() {
  if (g_counting && !trainer::InLibraryCall::Active()) ++g_allocations;
}

}  // namespace

// Every allocation of this program calls these functions, which count and then call the C library's
// own allocator.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t size) {
  Count();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count();
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  Count();
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  Count();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr;
}
void free(void* memory) { __libc_free(memory); }
}

namespace trainer {
namespace {

const std::string kFields =
    "base_lr: 0.01 lr_policy: \"inv\" gamma: 0.01 power: 0.75 momentum: 0.9 weight_decay: 0.001 "
    "clip_gradients: 100 iter_size: 2 average_loss: 4 max_iter: 100 ";

const char kConvNet[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
  dummy_data_param { shape { dim: 8 dim: 1 dim: 28 dim: 28 } shape { dim: 8 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 2 } } }
layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1"
  convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 50 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
  inner_product_param { num_output: 50 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

long AllocationsOf(Solver& solver, int iterations) {
  g_allocations = 0;
  g_counting = true;
  for (int i = 0; i < iterations; ++i) solver.Step();
  g_counting = false;
  return g_allocations;
}

TEST(AllocationTest, TheCounterSeesAnAllocation) {
  g_allocations = 0;
  g_counting = true;
  void* volatile memory = malloc(16);
  g_counting = false;
  free(memory);
  EXPECT_GE(g_allocations, 1);
}

TEST(AllocationTest, IterationsAfterTheSecondAllocateNothing) {
  SmallRun run(kFields, kConvNet);
  run.solver->Step();
  run.solver->Step();
  EXPECT_EQ(AllocationsOf(*run.solver, 10), 0);
}

TEST(AllocationTest, NorDoSchedulesLarcAndAveragesOfWeights) {
  SmallRun run(
      "type: \"AdamW\" base_lr: 0.001 lr_policy: \"cosine\" warmup_iter: 6 momentum: 0.9 "
      "momentum_policy: \"poly\" weight_decay: 0.001 weight_decay_policy: \"poly\" "
      "larc: true larc_policy: \"clip\" ema_decay: 0.9 max_iter: 100 ",
      kConvNet);
  run.solver->Step();
  run.solver->Step();
  EXPECT_EQ(AllocationsOf(*run.solver, 10), 0);
}

TEST(AllocationTest, NorDoIterationsWhoseLossIsReadLate) {
  SmallRun run(kFields, kConvNet, {}, "", std::make_unique<LateDevice>());
  for (int i = 0; i < 3; ++i) run.solver->RunStep(/*async=*/true);
  g_allocations = 0;
  g_counting = true;
  for (int i = 0; i < 10; ++i) run.solver->RunStep(/*async=*/true);
  g_counting = false;
  EXPECT_EQ(g_allocations, 0);
}

}  // namespace
}  // namespace trainer
