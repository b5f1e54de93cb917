#pragma once
// The parameters of a run. One store serves the training net and its test nets.

#include <deque>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include "trainer/backend/device/device.h"
#include "trainer/layers/layer.h"
#include "trainer/tensor/tensor.h"

namespace trainer {

// One parameter: owned by the first layer that declares it, perhaps used by others under its share
// name. All numbers are f32 on the device, `count` of them, in `layout`'s order.
struct Param {
  std::string key;    // the share name, or "<layer>:<index>"
  std::string layer;  // the owner
  int index = 0;      // its number in the owner
  Shape shape;        // as in files
  ParamLayout layout;
  SourceRef where;
  caffe::FillerParameter filler;
  int owner_node = 0;  // the owner's step in the net that added it
  // The layer of that net whose backward pass is the last to add to the gradient, shared weights
  // and fused layers considered; one past the last layer where none adds anything.
  int final_grad_node = 0;
  float lr_mult = 1, decay_mult = 1;
  bool has_lr_mult = false, has_decay_mult = false;  // written by the user
  bool is_running_stat = false;  // running averages of the batches, see ParamOptions
  float* weight = nullptr;
  float* grad = nullptr;  // null when lr_mult is 0 or nothing trains

  int64_t count() const { return shape.Count(); }
};

// Owns the memory of weights and gradients: one block for each kind and net. The parameters of a
// training net that have a gradient come first, in the order in which backward finishes them (their
// final_grad_node, from the last layer to the first), so that a run of neighbours can be exchanged
// between replicas without copies; gradients and weights are at the same offset in their blocks.
// The other parameters' weights follow, running averages last. Addresses never change.
class ParamStore {
 public:
  // With `gradient_memory`, which must outlive the store, gradients lie there: memory of the host,
  // for a device that computes on it. Likewise the weights of the training net, but for running
  // averages, with `weight_memory`.
  explicit ParamStore(const Device& device, std::pmr::memory_resource* gradient_memory = nullptr,
                      std::pmr::memory_resource* weight_memory = nullptr)
      : device_(device), gradient_memory_(gradient_memory), weight_memory_(weight_memory) {}
  ~ParamStore();
  ParamStore(const ParamStore&) = delete;
  ParamStore& operator=(const ParamStore&) = delete;

  // Null when there is none.
  Param* Find(const std::string& key);
  Param& Add(Param param);

  // Gives memory to the parameters added since the last call; gradients too when `training`, and
  // sets those to zero.
  void Allocate(bool training);

  const Device& device() const { return device_; }
  // Where the weights of the training net lie; null: in the device's own memory.
  std::pmr::memory_resource* weight_memory() const { return weight_memory_; }

  // Between memory and row-major host order.
  void Export(const Param& param, const float* device_values, std::span<float> host) const;
  void Import(const Param& param, std::span<const float> host, float* device_values) const;

  // Sets the gradients of every parameter to zero.
  void ClearGradients();
  // Bytes that the weights of all parameters take, also of those that have no memory yet.
  size_t RequiredBytes() const;
  // Bytes of weights (or of gradients).
  size_t WeightBytes() const { return weight_bytes_; }
  // Floats that a parameter of `count` numbers takes, with the padding after it, which stays zero.
  static int64_t PaddedCount(int64_t count);
  // The memory of all gradients and of all weights of the training net. Element i of the first is
  // the gradient of element i of the second.
  std::span<float> Gradients() const { return gradients_; }
  std::span<float> Weights() const { return weights_; }
  // The running averages that the training net's forward passes write: the last part of Weights(),
  // but with `weight_memory` an array of their own.
  std::span<float> RunningStats() const { return averages_; }

 private:
  struct Block {
    void* memory;
    size_t bytes;
    std::pmr::memory_resource* from;  // null: the device's
  };

  float* AllocateFloats(size_t count, std::pmr::memory_resource* from);

  const Device& device_;
  std::pmr::memory_resource* gradient_memory_;
  std::pmr::memory_resource* weight_memory_;
  std::deque<Param> params_;
  std::map<std::string, Param*> by_key_;
  size_t allocated_ = 0;  // parameters that have memory
  size_t weight_bytes_ = 0;
  std::span<float> weights_, gradients_, averages_;
  std::vector<Block> blocks_;
};

}  // namespace trainer
