#pragma once
// Copies of a training net's weights in the dtype and order in which its layers multiply by them.
// The update writes them together with the weights, which saves a conversion kernel in each pass of
// each layer.

#include <optional>
#include <vector>

#include "trainer/backend/loops/tensor_list.h"
#include "trainer/backend/primitives/packed_weight.h"
#include "trainer/net/net.h"

namespace trainer {

// Returns the bytes of the copies that the layers of a compiled graph want.
size_t PackedWeightBytes(const Graph& graph);

// Used by one thread. Layers read these copies only within a Scope; in all other passes they
// convert the weights themselves.
class PackedWeights {
 public:
  // Allocates a copy of each weight that a layer wants packed. The net must outlive the object.
  explicit PackedWeights(Net& net);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  bool empty() const { return memory_ == nullptr; }
  // In the order of Net::params(); `to` is null for a parameter without a copy.
  const std::vector<PackedWeight>& by_param() const { return by_param_; }

  // Enqueues that all copies are written from the present weights.
  void Write();
  // While a Scope exists, layers read the copies, which must match the weights.
  class Scope {
   public:
    explicit Scope(PackedWeights& copies) : copies_(copies) { copies_.valid_ = true; }
    ~Scope() { copies_.valid_ = false; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PackedWeights& copies_;
  };

 private:
  const Device& device_;
  std::vector<PackedWeight> by_param_;
  std::vector<Layer*> users_;
  std::byte* memory_ = nullptr;
  bool valid_ = false;
  std::optional<TensorList> weights_;  // the weights that have copies
  std::optional<PackedWeightList> list_;
};

}  // namespace trainer
