#pragma once

#include <memory>

#include "support/test_device.h"

namespace trainer {

// The device of the tests, for those that refuse, count or change some of its calls.
class WrappedDevice : public Device {
 public:
  DeviceKind kind() const override { return inner_->kind(); }
  std::string Describe() const override { return inner_->Describe(); }
  bool RunsLater() const override { return inner_->RunsLater(); }
  bool PrefersBytes() const override { return inner_->PrefersBytes(); }
  size_t FreeBytes() const override { return inner_->FreeBytes(); }
  void* Allocate(size_t bytes) const override { return inner_->Allocate(bytes); }
  void Free(void* memory) const override { inner_->Free(memory); }
  void CopyToDevice(void* to, const void* host, size_t bytes) const override {
    inner_->CopyToDevice(to, host, bytes);
  }
  void CopyToHost(void* host, const void* from, size_t bytes) const override {
    inner_->CopyToHost(host, from, bytes);
  }
  void Fill(void* memory, unsigned char value, size_t bytes) const override {
    inner_->Fill(memory, value, bytes);
  }
  void Synchronize() const override { inner_->Synchronize(); }
  void* Stream() const override { return inner_->Stream(); }
  std::pmr::memory_resource& HostMemory() const override { return inner_->HostMemory(); }
  std::unique_ptr<CopyQueue> MakeCopyQueue() const override { return inner_->MakeCopyQueue(); }
  std::unique_ptr<HostRead> MakeHostRead() const override { return inner_->MakeHostRead(); }
  bool Supports(const ConvDesc& d) const override { return inner_->Supports(d); }
  bool Supports(const BatchNormDesc& d) const override { return inner_->Supports(d); }
  std::unique_ptr<GemmPlan> MakeGemm(const GemmDesc& d) const override {
    return inner_->MakeGemm(d);
  }
  std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& d) const override {
    return inner_->MakeConv(d);
  }
  std::unique_ptr<PoolPlan> MakePool(const PoolDesc& d) const override {
    return inner_->MakePool(d);
  }
  std::unique_ptr<BatchNormPlan> MakeBatchNorm(const BatchNormDesc& d) const override {
    return inner_->MakeBatchNorm(d);
  }
  std::unique_ptr<LrnPlan> MakeLrn(const LrnDesc& d) const override { return inner_->MakeLrn(d); }
  std::unique_ptr<SoftmaxPlan> MakeSoftmax(const SoftmaxDesc& d) const override {
    return inner_->MakeSoftmax(d);
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
  float* Partials() const override { return inner_->Partials(); }

 protected:
  explicit WrappedDevice(int threads = 1) : inner_(MakeTestDevice(threads)) {}

 private:
  std::unique_ptr<Device> inner_;
};

}  // namespace trainer
