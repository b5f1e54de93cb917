#pragma once
// Copies of a training net's weights in the form that its layers multiply by: in their storage type
// and order. An update writes them along with the weights that it moves, in place of a kernel in
// each pass of each layer.

#include <optional>
#include <vector>

#include "trainer/backend/segments.h"
#include "trainer/backend/weight_copy.h"
#include "trainer/net/net.h"

namespace trainer {

// Used by one thread. Layers go by them only where the owner says so, and by copies of their own
// in all other passes.
class WeightCopies {
 public:
  // Takes memory for each weight that a layer wants copied. The net must outlive it.
  explicit WeightCopies(Net& net);
  ~WeightCopies();
  WeightCopies(const WeightCopies&) = delete;
  WeightCopies& operator=(const WeightCopies&) = delete;

  bool empty() const { return memory_ == nullptr; }
  // In the order of Net::params(); one that is empty where there is none.
  const std::vector<WeightCopy>& by_param() const { return by_param_; }

  // Queues that they are written from the weights as they are.
  void Write();
  // While one lives the copies are those of the weights, and layers read them. Of null: nothing.
  class Scope {
   public:
    explicit Scope(WeightCopies* copies) : copies_(copies) { Set(true); }
    ~Scope() { Set(false); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    void Set(bool hold) {
      if (copies_ != nullptr) copies_->holds_ = hold;
    }
    WeightCopies* copies_;
  };

 private:
  const Device& device_;
  std::vector<WeightCopy> by_param_;
  std::vector<TakesWeightCopy*> users_;
  std::byte* memory_ = nullptr;
  bool holds_ = false;
  std::optional<Segments> weights_;  // of which there are copies
  std::optional<WeightCopyList> list_;
};

}  // namespace trainer
