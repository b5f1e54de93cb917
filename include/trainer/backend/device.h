#pragma once
// A device computes and owns memory. Its library primitives come as plans: objects that choose
// descriptors and algorithms once, when made, so that their calls only compute.

#include <cstddef>
#include <memory>
#include <string>

#include "trainer/backend/batch_norm.h"
#include "trainer/backend/conv.h"
#include "trainer/backend/copy.h"
#include "trainer/backend/gemm.h"
#include "trainer/backend/lrn.h"
#include "trainer/backend/pool.h"
#include "trainer/backend/softmax.h"
#include "trainer/backend/sums.h"

namespace trainer {

enum class DeviceKind { kCpu, kCuda };

// Calls are queued in order; on the CPU they are done when they return. One thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // "CPU, 2 threads, AVX-512"
  virtual std::string Describe() const = 0;

  // `bytes` of memory aligned to 64, its content undefined. Throws kResource, saying how much.
  virtual void* Allocate(size_t bytes) const = 0;
  virtual void Free(void* memory) const = 0;
  virtual void CopyToDevice(void* to, const void* host, size_t bytes) const = 0;
  virtual void CopyToHost(void* host, const void* from, size_t bytes) const = 0;
  virtual void Zero(void* memory, size_t bytes) const = 0;
  // Returns when all that was queued is done.
  virtual void Synchronize() const = 0;
  // The queue's native handle (cudaStream_t), or null on the CPU.
  virtual void* Stream() const { return nullptr; }

  // Each throws kConfig when the description makes no sense and kUnavailable when no
  // implementation of this device takes it.
  virtual std::unique_ptr<GemmPlan> MakeGemm(const GemmDesc& desc) const = 0;
  virtual std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& desc) const = 0;
  virtual std::unique_ptr<PoolPlan> MakePool(const PoolDesc& desc) const = 0;
  virtual std::unique_ptr<BatchNormPlan> MakeBatchNorm(const BatchNormDesc& desc) const = 0;
  virtual std::unique_ptr<LrnPlan> MakeLrn(const LrnDesc& desc) const = 0;
  virtual std::unique_ptr<SoftmaxPlan> MakeSoftmax(const SoftmaxDesc& desc) const = 0;

  // What needs no plan. Copies between two places of this device.
  virtual void Copy(const CopyDesc& desc, const void* from, void* to) const = 0;
  // Copies `from` into `to`, of the same count, whose storage type may be another.
  virtual void Convert(const ConstTensor& from, const Tensor& to) const = 0;
  // to[c] += the sum over channel c of x, of x * times where `times` is not null: `to` is f32, the
  // tensors are of one type. The order of the additions depends on the shape alone.
  virtual void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x,
                              const ConstTensor* times, float* to) const = 0;

  // kPartials floats of the device for what a reduction leaves between its two kernels; null on the
  // CPU. The next reduction in the queue may use them again.
  static constexpr int64_t kPartials = 1024;
  virtual float* Partials() const { return nullptr; }
};

// The CPU with `threads` threads (AvailableThreads() when 0). Sets the process's OpenMP team.
std::unique_ptr<Device> MakeCpuDevice(int threads = 0);

}  // namespace trainer
