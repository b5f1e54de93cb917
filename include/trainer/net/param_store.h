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

// One parameter. The first layer that declares it owns it; others may share it by its share name.
// It has count() f32 values on the device, in the order of `layout`.
struct Param {
  std::string key;    // the share name, or "<layer>:<index>"
  std::string layer;  // the owning layer
  int index = 0;      // index among the owner's parameters
  Shape shape;        // as in weight files
  ParamLayout layout;
  SourceRef where;
  caffe::FillerParameter filler;
  int owner_node = 0;  // the owner's node in the net that added it
  // The node of that net whose backward is the last to add to the gradient, with weight sharing and
  // fusion taken into account; the number of nodes if none adds to it.
  int final_grad_node = 0;
  float lr_mult = 1, decay_mult = 1;
  bool has_lr_mult = false, has_decay_mult = false;  // set by the user
  // is_frozen: a layer that uses the parameter is frozen, so lr_mult is 0. was_frozen: it was
  // frozen until unfreeze_at.
  bool is_frozen = false, was_frozen = false;
  bool is_learnable = true;      // false for statistics
  bool is_running_stat = false;  // running statistics of the batches: see ParamOptions
  float* weight = nullptr;
  float* grad = nullptr;  // null if lr_mult is 0 or the net is not trained

  int64_t count() const { return shape.Count(); }
};

// Owns the memory of weights and gradients: one allocation for each kind and net. The parameters of
// a training net with a gradient come first, in the order in which backward finishes them (by
// final_grad_node, from the last layer to the first), so that neighbouring gradients can be reduced
// over ranks without copies; weights and gradients have the same offset in their allocations. The
// weights of other parameters follow, and running statistics come last. Addresses never change.
class ParamStore {
 public:
  // `gradient_memory`, if not null, must outlive the store and allocates the gradients in host
  // memory, for a device that computes there. `weight_memory` does the same for the weights of the
  // training net, except running statistics.
  explicit ParamStore(const Device& device, std::pmr::memory_resource* gradient_memory = nullptr,
                      std::pmr::memory_resource* weight_memory = nullptr)
      : device_(device), gradient_memory_(gradient_memory), weight_memory_(weight_memory) {}
  ~ParamStore() { Clear(); }
  ParamStore(const ParamStore&) = delete;
  ParamStore& operator=(const ParamStore&) = delete;

  // Returns null if there is none.
  Param* Find(const std::string& key);
  Param& Add(Param param);

  // Allocates memory for the parameters added since the last call, and with `training` also zeroed
  // gradients for them.
  void Allocate(bool training);

  // Removes all parameters and frees their memory. No net may use them any more.
  void Clear();

  const Device& device() const { return device_; }
  // The allocator of the training net's weights; null: the device's own.
  std::pmr::memory_resource* weight_memory() const { return weight_memory_; }

  // Copy between device memory and the host in row-major order.
  void Export(const Param& param, const float* device_values, std::span<float> host) const;
  void Import(const Param& param, std::span<const float> host, float* device_values) const;

  // Sets the gradients of every parameter to zero.
  void ClearGradients();
  // Returns the bytes of the weights of all parameters, including those without memory so far.
  size_t RequiredBytes() const;
  // Returns the bytes of the allocated weights; gradients need at most as many.
  size_t WeightBytes() const { return weight_bytes_; }
  // Returns the number of floats of a parameter with `count` values, with padding, which stays
  // zero.
  static int64_t PaddedCount(int64_t count);
  // All gradients and all weights of the training net. Element i of the first is the gradient of
  // element i of the second.
  std::span<float> Gradients() const { return gradients_; }
  std::span<float> Weights() const { return weights_; }
  // The running statistics that forward passes of the training net write. They are the last part of
  // Weights(), or with `weight_memory` an array of their own.
  std::span<float> RunningStats() const { return averages_; }

 private:
  struct Block {
    void* memory;
    size_t bytes;
    std::pmr::memory_resource* from;  // null: the device's allocator
  };

  float* AllocateFloats(size_t count, std::pmr::memory_resource* from);

  const Device& device_;
  std::pmr::memory_resource* gradient_memory_;
  std::pmr::memory_resource* weight_memory_;
  std::deque<Param> params_;
  std::map<std::string, Param*> by_key_;
  size_t allocated_ = 0;  // number of parameters that have memory
  size_t weight_bytes_ = 0;
  std::span<float> weights_, gradients_, averages_;
  std::vector<Block> blocks_;
};

}  // namespace trainer
