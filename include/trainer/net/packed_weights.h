#pragma once
// Copies of a training net's weights in the form that its layers multiply by: in their storage type
// and order. An update writes them along with the weights that it moves, in place of a kernel in
// each pass of each layer.

#include <optional>
#include <vector>

#include "trainer/backend/loops/tensor_list.h"
#include "trainer/backend/primitives/packed_weight.h"
#include "trainer/net/net.h"

namespace trainer {

// Used by one thread. Layers go by them only where the owner says so, and by copies of their own
// in all other passes.
class PackedWeights {
 public:
  // Takes memory for each weight that a layer wants copied. The net must outlive it.
  explicit PackedWeights(Net& net);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  bool empty() const { return memory_ == nullptr; }
  // In the order of Net::params(); one that is empty where there is none.
  const std::vector<PackedWeight>& by_param() const { return by_param_; }

  // Queues that they are written from the weights as they are.
  void Write();
  // While one lives the copies are those of the weights, and layers read them. Of null: nothing.
  class Scope {
   public:
    explicit Scope(PackedWeights* copies) : copies_(copies) { Set(true); }
    ~Scope() { Set(false); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    void Set(bool hold) {
      if (copies_ != nullptr) copies_->valid_ = hold;
    }
    PackedWeights* copies_;
  };

 private:
  const Device& device_;
  std::vector<PackedWeight> by_param_;
  std::vector<Layer*> users_;
  std::byte* memory_ = nullptr;
  bool valid_ = false;
  std::optional<TensorList> weights_;  // of which there are copies
  std::optional<PackedWeightList> list_;
};

}  // namespace trainer
