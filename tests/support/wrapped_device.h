#pragma once

#include <memory>

#include "trainer/backend/device.h"

namespace trainer {

// The CPU, for tests that refuse, count or change some of its calls.
class WrappedDevice : public Device {
 public:
  DeviceKind kind() const override { return cpu_->kind(); }
  std::string Describe() const override { return cpu_->Describe(); }
  void* Allocate(size_t bytes) const override { return cpu_->Allocate(bytes); }
  void Free(void* memory) const override { cpu_->Free(memory); }
  void CopyToDevice(void* to, const void* host, size_t bytes) const override {
    cpu_->CopyToDevice(to, host, bytes);
  }
  void CopyToHost(void* host, const void* from, size_t bytes) const override {
    cpu_->CopyToHost(host, from, bytes);
  }
  void Fill(void* memory, unsigned char value, size_t bytes) const override {
    cpu_->Fill(memory, value, bytes);
  }
  void Synchronize() const override { cpu_->Synchronize(); }
  std::unique_ptr<GemmPlan> MakeGemm(const GemmDesc& d) const override { return cpu_->MakeGemm(d); }
  std::unique_ptr<ConvPlan> MakeConv(const ConvDesc& d) const override { return cpu_->MakeConv(d); }
  std::unique_ptr<PoolPlan> MakePool(const PoolDesc& d) const override { return cpu_->MakePool(d); }
  std::unique_ptr<BatchNormPlan> MakeBatchNorm(const BatchNormDesc& d) const override {
    return cpu_->MakeBatchNorm(d);
  }
  std::unique_ptr<LrnPlan> MakeLrn(const LrnDesc& d) const override { return cpu_->MakeLrn(d); }
  std::unique_ptr<SoftmaxPlan> MakeSoftmax(const SoftmaxDesc& d) const override {
    return cpu_->MakeSoftmax(d);
  }
  void Copy(const CopyDesc& desc, const void* from, void* to) const override {
    cpu_->Copy(desc, from, to);
  }
  void Convert(const ConstTensor& from, const Tensor& to) const override {
    cpu_->Convert(from, to);
  }
  void AddChannelSums(const ChannelSumsDesc& desc, const ConstTensor& x, const ConstTensor* times,
                      float* to) const override {
    cpu_->AddChannelSums(desc, x, times, to);
  }

 protected:
  explicit WrappedDevice(int threads = 1) : cpu_(MakeCpuDevice(threads)) {}

 private:
  std::unique_ptr<Device> cpu_;
};

}  // namespace trainer
