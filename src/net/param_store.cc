#include "trainer/net/param_store.h"

#include <cstring>

#include "trainer/tensor/plain_order.h"

namespace trainer {
namespace {

constexpr int64_t kAlign = 16;  // floats: one cache line

int64_t Padded(int64_t count) { return (count + kAlign - 1) / kAlign * kAlign; }

}  // namespace

ParamStore::~ParamStore() {
  for (void* block : blocks_) device_.Free(block);
}

Param* ParamStore::Find(const std::string& key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

Param& ParamStore::Add(Param param) {
  Param& added = params_.emplace_back(std::move(param));
  by_key_[added.key] = &added;
  return added;
}

size_t ParamStore::PlannedBytes() const {
  int64_t count = 0;
  for (const Param& param : params_) count += Padded(param.count());
  return static_cast<size_t>(count) * sizeof(float);
}

float* ParamStore::AllocateFloats(size_t count) {
  const size_t bytes = count * sizeof(float);
  blocks_.push_back(device_.Allocate(bytes));
  device_.Zero(blocks_.back(), bytes);
  return static_cast<float*>(blocks_.back());
}

void ParamStore::Allocate(bool training) {
  int64_t weights = 0, grads = 0;
  for (size_t i = allocated_; i < params_.size(); ++i) {
    weights += Padded(params_[i].count());
    if (training && params_[i].lr_mult != 0) grads += Padded(params_[i].count());
  }
  if (weights == 0) return;
  float* weight = AllocateFloats(static_cast<size_t>(weights));
  float* grad = grads > 0 ? AllocateFloats(static_cast<size_t>(grads)) : nullptr;
  weight_bytes_ += static_cast<size_t>(weights) * sizeof(float);
  if (training) {
    weights_ = {weight, static_cast<size_t>(weights)};
    gradients_ = {grad, static_cast<size_t>(grads)};
  }
  for (size_t i = params_.size(); i-- > allocated_;) {
    Param& param = params_[i];
    param.weight = weight;
    weight += Padded(param.count());
    if (!training || param.lr_mult == 0) continue;
    param.grad = grad;
    grad += Padded(param.count());
  }
  allocated_ = params_.size();
}

void ParamStore::Export(const Param& param, const float* device_values,
                        std::span<float> host) const {
  const ParamLayout& layout = param.layout;
  if (layout.channels <= 1) {
    device_.CopyToHost(host.data(), device_values, host.size_bytes());
    return;
  }
  std::vector<float> memory(host.size());
  device_.CopyToHost(memory.data(), device_values, host.size_bytes());
  TransposeMatrices(memory, host, layout.height * layout.width, layout.channels);
}

void ParamStore::Import(const Param& param, std::span<const float> host,
                        float* device_values) const {
  const ParamLayout& layout = param.layout;
  if (layout.channels <= 1) {
    device_.CopyToDevice(device_values, host.data(), host.size_bytes());
    return;
  }
  std::vector<float> memory(host.size());
  TransposeMatrices(host, memory, layout.channels, layout.height * layout.width);
  device_.CopyToDevice(device_values, memory.data(), host.size_bytes());
}

void ParamStore::ClearGradients() {
  if (!gradients_.empty()) device_.Zero(gradients_.data(), gradients_.size_bytes());
}

}  // namespace trainer
