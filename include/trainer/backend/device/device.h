#pragma once
// A device owns memory and runs computations. Library operations are primitives: objects that
// choose descriptors and algorithms once, when they are created, so that their calls only compute.

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/primitives/attention.h"
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

// Copies to a device concurrently with its computations, so that the next batch is copied while
// this pass runs. Calls are queued in order. The copy queue and the compute queue wait for each
// other only where a call below says so. Use from one thread at a time.
class CopyStream {
 public:
  // Waits until the copies queued so far are done.
  virtual ~CopyStream() = default;
  // Queues a copy. `host` must be memory from Device::PinnedMemory and must not change until
  // WaitForCopies returns.
  virtual void CopyToDevice(void* to, const void* host, size_t bytes) = 0;
  // Makes computations queued from now on start after the copies queued so far are done.
  virtual void ComputeWaitsForCopies() = 0;
  // Makes copies queued from now on start after the computations queued so far are done, because
  // these may still read the memory that the copies overwrite.
  virtual void CopiesWaitForCompute() = 0;
  // Returns when the copies queued so far are done.
  virtual void WaitForCopies() = 0;
};

// An asynchronous copy to the host, one at a time. Use from one thread.
class AsyncReadback {
 public:
  // Waits until a started copy is done.
  virtual ~AsyncReadback() = default;
  // Queues the copy after the computations queued so far. `host` must be memory from
  // Device::PinnedMemory that nothing else uses until Wait returns.
  virtual void Start(void* host, const void* from, size_t bytes) = 0;
  // Returns when the copy is done, or at once if no copy was started.
  virtual void Wait() = 0;
};

// Calls are queued in order; on the CPU they are done when they return. Use from one thread at a
// time.
class Device {
 public:
  virtual ~Device() = default;

  // Returns whether loops run on the host or as GPU kernels. Code above the backend asks for
  // properties instead.
  virtual DeviceKind kind() const = 0;
  // Returns a description for the log: "CPU, 2 threads, AVX-512".
  virtual std::string Describe() const = 0;
  // Returns names and versions of the driver and the libraries that a separate device computes
  // with: {"cuDNN", "9.19.0"}. The CPU has none but oneDNN, see onednn_version.h.
  virtual std::vector<std::pair<std::string, std::string>> LibraryVersions() const { return {}; }

  // Returns whether calls return before their work is done. If so, a host that reads a number waits
  // for all work queued before, so callers batch, delay or skip such reads. The default is true for
  // every device but the CPU.
  virtual bool IsAsync() const { return kind() != DeviceKind::kCpu; }
  // Returns whether batches should be sent as the stored bytes and converted to floats on the
  // device, because the path to the device is slower than its memory. The default is IsAsync().
  virtual bool PrefersUint8() const { return IsAsync(); }
  // Returns whether loops and primitives accept tensors of `type`. Callers use bf16 where f16 is
  // not supported: it has the same size and a wider range. The default is every type but f16.
  virtual bool SupportsDtype(DType type) const { return type != DType::kF16; }
  // Returns whether the processor multiplies 16-bit values itself. If not, they are converted to
  // floats first, so they save memory but no time. The default is true.
  virtual bool Multiplies16Bit() const { return true; }
  // Returns the bytes that Allocate could return now: the free memory of a separate device. The
  // default is all memory of this machine, because the system can make room for it.
  virtual size_t AvailableBytes() const;

  // Returns `bytes` of memory aligned to 64 bytes, with undefined content. Throws kResource with
  // the size that was asked for.
  virtual void* Allocate(size_t bytes) const = 0;
  // Frees memory of Allocate. Work queued before may still use the memory.
  virtual void Free(void* memory) const = 0;
  // Queues a copy from the host. `host` may change as soon as the call returns.
  virtual void CopyToDevice(void* to, const void* host, size_t bytes) const = 0;
  // Returns when `host` holds the data, after all queued work.
  virtual void CopyToHost(void* host, const void* from, size_t bytes) const = 0;
  // Queues work that sets each byte to `value`.
  virtual void Memset(void* memory, unsigned char value, size_t bytes) const = 0;
  void Zero(void* memory, size_t bytes) const { Memset(memory, 0, bytes); }
  // Returns when all queued work is done.
  virtual void Synchronize() const = 0;
  // Returns the queue's native handle (cudaStream_t), or null on the CPU.
  virtual void* Stream() const { return nullptr; }

  // Returns host memory aligned to 64 bytes, from which a CopyStream copies; it is page-locked
  // where the device needs that. Thread-safe. All blocks must be returned before the device is
  // destroyed. The default is the heap.
  virtual std::pmr::memory_resource& PinnedMemory() const;
  // Creates a queue of copies. The default is a stream whose copies are done when the calls return.
  virtual std::unique_ptr<CopyStream> NewCopyStream() const;
  // Creates a readback. The default copies with CopyToHost when Start is called.
  virtual std::unique_ptr<AsyncReadback> NewReadback() const;

  // Returns the object that captures calls of this device as a graph, which can be launched again.
  // The default is null: the device cannot capture, or an option disables it.
  virtual const GraphCapture* capture() const { return nullptr; }

  // Returns whether this device computes all of it in one pass, with what the description adds to
  // the plain operation (relu, other). Asked before layers are fused; cheap. The default is true.
  virtual bool Supports(const ConvDesc& desc) const;
  virtual bool Supports(const BatchNormDesc& desc) const;

  // Each throws kConfig if the description is invalid and kUnavailable if no implementation of this
  // device supports it.
  virtual std::unique_ptr<GemmPrimitive> NewGemm(const GemmDesc& desc) const = 0;
  virtual std::unique_ptr<ConvPrimitive> NewConv(const ConvDesc& desc) const = 0;
  virtual std::unique_ptr<PoolPrimitive> NewPool(const PoolDesc& desc) const = 0;
  // Makes the weight gradient of a convolution that only a max pool of this device reads, or
  // returns null, the default, if the device has none that is faster than the gradient through the
  // convolution's output.
  virtual std::unique_ptr<PooledConvGradient> NewPooledConvGradient(
      const ConvDesc& /*conv*/, const PoolDesc& /*pool*/) const {
    return nullptr;
  }
  virtual std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& desc) const = 0;
  virtual std::unique_ptr<LrnPrimitive> NewLrn(const LrnDesc& desc) const = 0;
  virtual std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const SoftmaxDesc& desc) const = 0;
  virtual std::unique_ptr<AttentionPrimitive> NewAttention(const AttentionDesc& desc) const = 0;

  // Copies within the memory of this device, as CopyDesc defines it. This and the following
  // operations need no primitive.
  virtual void Copy(const CopyDesc& desc, const void* from, void* to) const = 0;
  // Copies `from` into `to`, which must have the same count; the storage types may differ.
  virtual void Convert(const ConstTensor& from, const Tensor& to) const = 0;
  // Adds to to[c] the sum over channel c of x, or of x * times if `times` is not null. `to` is f32;
  // the tensors have one type. The order of the additions depends only on the shape.
  virtual void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x,
                              const ConstTensor* times, float* to) const = 0;
  // Computes the gradient of a ReLU, and of the bias before it, in one pass over memory: g = dy
  // where y > 0, else 0; to[c] += the sum of g over channel c. g may be dy; all three are of one
  // type and shape, `to` is f32. Returns false and does nothing where that takes two passes; this
  // is the default.
  virtual bool ReluGradAndBiasGrad(const ChannelSumsDesc& /*desc*/, const ConstTensor& /*dy*/,
                                   const ConstTensor& /*y*/, const Tensor& /*g*/,
                                   float* /*to*/) const {
    return false;
  }

  static constexpr int64_t kReductionScratch = 1 << 16;
  // Returns memory of kReductionScratch floats on the device for the partial sums that a reduction
  // passes from its first kernel to its second; null on the CPU. The next reduction in the queue
  // reuses it.
  virtual float* ReductionScratch() const { return nullptr; }
};

}  // namespace trainer
