#include "trainer/backend/device/cpu_device.h"

#include <cstring>
#include <new>

#include "conv_kernels.h"
#include "cpu/ops.h"
#include "cpu/plans.h"
#include "desc_checks.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/loops/parallel_for.h"
#include "trainer/backend/memory/scratch_layout.h"
#include "trainer/base/error/error.h"
#include "trainer/base/process/huge_pages.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/thread_team.h"
#include "trainer/base/thread/threads.h"

namespace trainer {
namespace {

const char* IsaName() {
  switch (DetectCpuIsa()) {
    case CpuIsa::kAvx512:
      return "AVX-512";
    case CpuIsa::kAvx2:
      return "AVX2";
    default:
      return "SSE2";
  }
}

// The Device that computes on the host, with the process's team of threads.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) : threads_(threads) {}

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string Describe() const override {
    return Join("CPU, ", threads_, threads_ == 1 ? " thread, " : " threads, ", IsaName());
  }

  bool Multiplies16Bit() const override { return HasBf16Instructions(); }

  void* Allocate(size_t bytes) const override {
    void* memory = ::operator new (bytes, std::align_val_t{kMemoryAlign}, std::nothrow);
    if (memory == nullptr) {
      throw Error(ErrorCode::kResource,
                  Join("cannot allocate ", bytes >> 20, " MiB of host memory (", bytes,
                       " bytes); lower batch_size or request more memory"));
    }
    AdviseHugePages(memory, bytes);
    return memory;
  }
  void Free(void* memory) const override {
    ::operator delete (memory, std::align_val_t{kMemoryAlign});
  }
  void CopyToDevice(void* to, const void* host, size_t bytes) const override {
    if (bytes > 0) std::memcpy(to, host, bytes);
  }
  void CopyToHost(void* host, const void* from, size_t bytes) const override {
    if (bytes > 0) std::memcpy(host, from, bytes);
  }
  void Memset(void* memory, unsigned char value, size_t bytes) const override {
    if (bytes > 0) std::memset(memory, value, bytes);
  }
  void Synchronize() const override {}

  std::unique_ptr<GemmPrimitive> NewGemm(const GemmDesc& desc) const override {
    CheckGemm(desc);
    return ChoosePrimitive<GemmPrimitive>(*this, desc, "matrix product");
  }
  std::unique_ptr<ConvPrimitive> NewConv(const ConvDesc& desc) const override {
    CheckConv(desc);
    return ChooseConv(*this, desc);
  }
  std::unique_ptr<PooledConvGradient> NewPooledConvGradient(const ConvDesc& conv,
                                                            const PoolDesc& pool) const override {
    return cpu::NewPooledConvGradient(conv, pool);
  }
  std::unique_ptr<PoolPrimitive> NewPool(const PoolDesc& desc) const override {
    CheckPool(desc);
    return ChoosePrimitive<PoolPrimitive>(*this, desc, "pooling");
  }
  std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& desc) const override {
    CheckBatchNorm(desc);
    return cpu::NewBatchNorm(desc);
  }
  std::unique_ptr<LrnPrimitive> NewLrn(const LrnDesc& desc) const override {
    CheckLrn(desc);
    return ChoosePrimitive<LrnPrimitive>(*this, desc, "LRN");
  }
  std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const SoftmaxDesc& desc) const override {
    CheckSoftmax(desc);
    return cpu::NewSoftmax(desc);
  }
  std::unique_ptr<AttentionPrimitive> NewAttention(const AttentionDesc& desc) const override {
    CheckAttention(desc);
    return cpu::NewAttention(desc);
  }

  void Copy(const CopyDesc& desc, const void* from, void* to) const override {
    cpu::Copy(desc, from, to);
  }
  void Convert(const ConstTensor& from, const Tensor& to) const override { cpu::Convert(from, to); }
  void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x, const ConstTensor* times,
                      float* to) const override {
    cpu::AddChannelSums(desc, x, times, to);
  }

 private:
  int threads_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(int threads) {
  if (threads < 0) {
    throw Error(ErrorCode::kConfig, Join("a device of ", threads, " threads; use 1 or more, or 0 ",
                                         "for as many as this process may use"));
  }
  const int count = threads > 0 ? threads : AvailableThreads();
  SetTeamSize(count);
  return std::make_unique<CpuDevice>(count);
}

}  // namespace trainer
