#pragma once
// A device computes and owns memory. Its library primitives come as plans: objects that choose
// descriptors and algorithms once, when made, so that their calls only compute.

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <string>

#include "trainer/backend/primitives/batch_norm.h"
#include "trainer/backend/primitives/channel_sums.h"
#include "trainer/backend/primitives/conv.h"
#include "trainer/backend/primitives/gemm.h"
#include "trainer/backend/primitives/lrn.h"
#include "trainer/backend/primitives/pool.h"
#include "trainer/backend/primitives/softmax.h"
#include "trainer/backend/primitives/strided_copy.h"

namespace trainer {

class GraphCapture;

enum class DeviceKind { kCpu, kCuda };

// Copies to a device beside its computations: data for the next pass while this one runs. Calls are
// queued in order, and the two queues wait for each other only where they are told to. One thread
// at a time.
class CopyStream {
 public:
  // Ends when the copies queued so far are done.
  virtual ~CopyStream() = default;
  // `host` is Device::PinnedMemory, and holds still until WaitForCopies returned.
  virtual void CopyToDevice(void* to, const void* host, size_t bytes) = 0;
  // Computations queued from now on start when the copies queued so far are done.
  virtual void ComputeWaitsForCopies() = 0;
  // Copies queued from now on start when the computations queued so far are done, which read the
  // memory that is to be written.
  virtual void CopiesWaitForCompute() = 0;
  // Returns when the copies queued so far are done.
  virtual void WaitForCopies() = 0;
};

// A copy to the host that the host waits for later, one at a time. One thread.
class AsyncReadback {
 public:
  // Ends when a copy that was started is done.
  virtual ~AsyncReadback() = default;
  // Queues the copy behind the computations queued so far. `host` is Device::PinnedMemory, and is
  // nobody else's until Wait returned.
  virtual void Start(void* host, const void* from, size_t bytes) = 0;
  // Returns when the copy is done; at once where none was started.
  virtual void Wait() = 0;
};

// Calls are queued in order; on the CPU they are done when they return. One thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // "CPU, 2 threads, AVX-512"
  virtual std::string Describe() const = 0;

  // Whether calls return before their work is done, so that a host which reads a number waits for
  // all that was queued before: reads are then gathered, put off or left out. Unless overridden, of
  // every device but the CPU.
  virtual bool IsAsync() const { return kind() != DeviceKind::kCpu; }
  // Whether batches should come as the bytes that they were stored as, to be made numbers of here:
  // the way to the device is slower than its memory. Unless overridden, where it IsAsync.
  virtual bool PrefersUint8() const { return IsAsync(); }
  // Whether its loops and plans take tensors of `type`. Where they do not take f16, bf16 stands in:
  // of the same size, and wider in range. Unless overridden, every type but f16.
  virtual bool SupportsDtype(DType type) const { return type != DType::kF16; }
  // Bytes that Allocate could give now: what is free on a device of its own. Unless overridden, all
  // memory of this machine, whose system makes room.
  virtual size_t AvailableBytes() const;

  // `bytes` of memory aligned to 64, its content undefined. Throws kResource, saying how much.
  virtual void* Allocate(size_t bytes) const = 0;
  // What was queued before may still use it.
  virtual void Free(void* memory) const = 0;
  // `host` may change as soon as the call returns.
  virtual void CopyToDevice(void* to, const void* host, size_t bytes) const = 0;
  // Waits for all that was queued.
  virtual void CopyToHost(void* host, const void* from, size_t bytes) const = 0;
  // Sets each byte to `value`.
  virtual void Memset(void* memory, unsigned char value, size_t bytes) const = 0;
  void Zero(void* memory, size_t bytes) const { Memset(memory, 0, bytes); }
  // Returns when all that was queued is done.
  virtual void Synchronize() const = 0;
  // The queue's native handle (cudaStream_t), or null on the CPU.
  virtual void* Stream() const { return nullptr; }

  // Memory of the host, aligned to 64, from which a CopyStream copies: page-locked where the device
  // asks for that. Any thread; must be given back before the device ends. Unless overridden, the
  // heap's.
  virtual std::pmr::memory_resource& PinnedMemory() const;
  // Unless overridden, one whose copies are done when the calls return.
  virtual std::unique_ptr<CopyStream> NewCopyStream() const;
  // Unless overridden, one that copies when Start is called, by CopyToHost.
  virtual std::unique_ptr<AsyncReadback> NewReadback() const;

  // What records calls of this device, to be queued again and again. Unless overridden, null: the
  // device does not record, or an option tells it not to.
  virtual const GraphCapture* capture() const { return nullptr; }

  // Whether this device computes all of it in one pass, with what the description adds to the plain
  // operation (relu, other). Asked before layers are fused; cheap. Unless overridden, yes.
  virtual bool Supports(const ConvDesc& desc) const;
  virtual bool Supports(const BatchNormDesc& desc) const;

  // Each throws kConfig when the description makes no sense and kUnavailable when no
  // implementation of this device takes it.
  virtual std::unique_ptr<GemmPrimitive> NewGemm(const GemmDesc& desc) const = 0;
  virtual std::unique_ptr<ConvPrimitive> NewConv(const ConvDesc& desc) const = 0;
  virtual std::unique_ptr<PoolPrimitive> NewPool(const PoolDesc& desc) const = 0;
  virtual std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& desc) const = 0;
  virtual std::unique_ptr<LrnPrimitive> NewLrn(const LrnDesc& desc) const = 0;
  virtual std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const SoftmaxDesc& desc) const = 0;

  // What needs no plan. Copies within the memory of this device.
  virtual void Copy(const CopyDesc& desc, const void* from, void* to) const = 0;
  // Copies `from` into `to`, of the same count, whose storage type may be another.
  virtual void Convert(const ConstTensor& from, const Tensor& to) const = 0;
  // to[c] += the sum over channel c of x, of x * times where `times` is not null: `to` is f32, the
  // tensors are of one type. The order of the additions depends on the shape alone.
  virtual void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x,
                              const ConstTensor* times, float* to) const = 0;
  // The gradient of a ReLU, and of the bias before it, in one pass over memory: g = dy where y > 0,
  // else 0; to[c] += the sum of g over channel c. g may be dy; all three are of one type and shape,
  // `to` is f32. False, and nothing done, where that takes two passes: unless overridden, always.
  virtual bool ReluGradAndBiasGrad(const ChannelSumsDesc& /*desc*/, const ConstTensor& /*dy*/,
                                   const ConstTensor& /*y*/, const Tensor& /*g*/,
                                   float* /*to*/) const {
    return false;
  }

  // kReductionScratch floats of the device for what a reduction leaves between its two kernels;
  // null on the CPU. The next reduction in the queue may use them again.
  static constexpr int64_t kReductionScratch = 1 << 16;
  virtual float* ReductionScratch() const { return nullptr; }
};

// The CPU with `threads` threads (AvailableThreads() when 0). Sets the process's OpenMP team.
std::unique_ptr<Device> MakeCpuDevice(int threads = 0);

}  // namespace trainer
