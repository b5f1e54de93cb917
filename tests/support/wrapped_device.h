#pragma once

#include <memory>

#include "support/test_device.h"

namespace trainer {

// Wraps the tests' device, for devices that refuse, count or change some of its calls.
class WrappedDevice : public Device {
 public:
  DeviceKind kind() const override { return inner_->kind(); }
  std::string Describe() const override { return inner_->Describe(); }
  bool IsAsync() const override { return inner_->IsAsync(); }
  bool PrefersUint8() const override { return inner_->PrefersUint8(); }
  size_t AvailableBytes() const override { return inner_->AvailableBytes(); }
  void* Allocate(size_t bytes) const override { return inner_->Allocate(bytes); }
  void Free(void* memory) const override { inner_->Free(memory); }
  void CopyToDevice(void* to, const void* host, size_t bytes) const override {
    inner_->CopyToDevice(to, host, bytes);
  }
  void CopyToHost(void* host, const void* from, size_t bytes) const override {
    inner_->CopyToHost(host, from, bytes);
  }
  void Memset(void* memory, unsigned char value, size_t bytes) const override {
    inner_->Memset(memory, value, bytes);
  }
  void Synchronize() const override { inner_->Synchronize(); }
  void* Stream() const override { return inner_->Stream(); }
  std::pmr::memory_resource& PinnedMemory() const override { return inner_->PinnedMemory(); }
  std::unique_ptr<CopyStream> NewCopyStream() const override { return inner_->NewCopyStream(); }
  std::unique_ptr<AsyncReadback> NewReadback() const override { return inner_->NewReadback(); }
  bool Supports(const ConvDesc& d) const override { return inner_->Supports(d); }
  bool Supports(const BatchNormDesc& d) const override { return inner_->Supports(d); }
  std::unique_ptr<GemmPrimitive> NewGemm(const GemmDesc& d) const override {
    return inner_->NewGemm(d);
  }
  std::unique_ptr<ConvPrimitive> NewConv(const ConvDesc& d) const override {
    return inner_->NewConv(d);
  }
  std::unique_ptr<PoolPrimitive> NewPool(const PoolDesc& d) const override {
    return inner_->NewPool(d);
  }
  std::unique_ptr<PooledConvGradient> NewPooledConvGradient(const ConvDesc& conv,
                                                            const PoolDesc& pool) const override {
    return inner_->NewPooledConvGradient(conv, pool);
  }
  std::unique_ptr<BatchNormPrimitive> NewBatchNorm(const BatchNormDesc& d) const override {
    return inner_->NewBatchNorm(d);
  }
  std::unique_ptr<LrnPrimitive> NewLrn(const LrnDesc& d) const override {
    return inner_->NewLrn(d);
  }
  std::unique_ptr<SoftmaxPrimitive> NewSoftmax(const SoftmaxDesc& d) const override {
    return inner_->NewSoftmax(d);
  }
  std::unique_ptr<AttentionPrimitive> NewAttention(const AttentionDesc& d) const override {
    return inner_->NewAttention(d);
  }
  void Copy(const CopyDesc& desc, const void* from, void* to) const override {
    inner_->Copy(desc, from, to);
  }
  void Convert(const ConstTensor& from, const Tensor& to) const override {
    inner_->Convert(from, to);
  }
  void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x, const ConstTensor* times,
                      float* to) const override {
    inner_->AddChannelSums(desc, x, times, to);
  }
  float* ReductionScratch() const override { return inner_->ReductionScratch(); }

 protected:
  explicit WrappedDevice(int threads = 1) : inner_(MakeTestDevice(threads)) {}

 private:
  std::unique_ptr<Device> inner_;
};

}  // namespace trainer
