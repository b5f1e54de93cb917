#include "trainer/net/param_store.h"

#include <algorithm>

#include "trainer/tensor/nchw_order.h"

namespace trainer {
namespace {

constexpr size_t kParamStoreAlignment = 64;
constexpr size_t kScratchFloats = size_t{1} << 16;

}  // namespace

int64_t ParamStore::PaddedCount(int64_t count) {
  constexpr int64_t kLine = 16;  // floats in a cache line
  return (count + kLine - 1) / kLine * kLine;
}

void ParamStore::Clear() {
  for (const Block& block : blocks_) {
    if (block.from != nullptr) {
      block.from->deallocate(block.memory, block.bytes, kParamStoreAlignment);
    } else {
      device_.Free(block.memory);
    }
  }
  blocks_.clear();
  by_key_.clear();
  params_.clear();
  allocated_ = weight_bytes_ = 0;
  weights_ = gradients_ = averages_ = {};
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

size_t ParamStore::RequiredBytes() const {
  int64_t count = 0;
  for (const Param& param : params_) count += PaddedCount(param.count());
  return static_cast<size_t>(count) * sizeof(float);
}

float* ParamStore::AllocateFloats(size_t count, std::pmr::memory_resource* from) {
  const size_t bytes = count * sizeof(float);
  void* memory =
      from == nullptr ? device_.Allocate(bytes) : from->allocate(bytes, kParamStoreAlignment);
  blocks_.push_back({memory, bytes, from});
  device_.Zero(memory, bytes);
  return static_cast<float*>(memory);
}

void ParamStore::Allocate(bool training) {
  const auto learns = [&](const Param* param) { return training && param->lr_mult != 0; };
  std::vector<Param*> fresh;
  for (size_t i = params_.size(); i-- > allocated_;) fresh.push_back(&params_[i]);
  const auto rest = std::ranges::stable_partition(fresh, learns);
  std::ranges::stable_sort(fresh.begin(), rest.begin(), std::greater<>(), &Param::final_grad_node);
  const auto averages =
      std::ranges::stable_partition(rest, std::logical_not<>(), &Param::is_running_stat);
  int64_t weights = 0, grads = 0, tail = 0;
  for (const Param* param : fresh) {
    weights += PaddedCount(param->count());
    if (learns(param)) grads += PaddedCount(param->count());
  }
  for (const Param* param : averages) tail += PaddedCount(param->count());
  if (weights == 0) return;
  const bool apart = training && weight_memory_ != nullptr;
  float* weight = AllocateFloats(static_cast<size_t>(apart ? weights - tail : weights),
                                 apart ? weight_memory_ : nullptr);
  float* average =
      apart ? AllocateFloats(static_cast<size_t>(tail), nullptr) : weight + (weights - tail);
  float* grad =
      grads > 0 ? AllocateFloats(static_cast<size_t>(grads), training ? gradient_memory_ : nullptr)
                : nullptr;
  weight_bytes_ += static_cast<size_t>(weights) * sizeof(float);
  if (training) {
    weights_ = {weight, static_cast<size_t>(apart ? weights - tail : weights)};
    gradients_ = {grad, static_cast<size_t>(grads)};
    averages_ = {average, static_cast<size_t>(tail)};
  }
  for (Param* param : fresh) {
    float*& next = param->is_running_stat ? average : weight;
    param->weight = next;
    next += PaddedCount(param->count());
    if (!learns(param)) continue;
    param->grad = grad;
    grad += PaddedCount(param->count());
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
  // Transposes a few matrices at a time in scratch that fits the cache: touching new memory for all
  // of them takes longer than the copy.
  const int64_t rows = layout.height * layout.width;
  const auto matrix = static_cast<size_t>(rows * layout.channels);
  const size_t most = std::max<size_t>(1, kScratchFloats / matrix) * matrix;
  std::vector<float> memory(std::min(most, host.size()));
  for (size_t at = 0; at < host.size(); at += most) {
    const std::span<float> part = host.subspan(at, std::min(most, host.size() - at));
    device_.CopyToHost(memory.data(), device_values + at, part.size_bytes());
    TransposeMatrices(std::span(memory).first(part.size()), part, rows, layout.channels);
  }
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
