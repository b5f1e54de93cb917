#pragma once
// The exponential moving average (EMA) of the weights, which tests use.

#include <span>

#include "trainer/backend/loops/tensor_list.h"
#include "trainer/backend/memory/device_array.h"
#include "trainer/net/net.h"

namespace trainer {

// After update t (counted from 1), average = d_t average + (1 - d_t) w with d_t = min(ema_decay, (1
// + t) / (10 + t)), see EmaKeep. d_t depends on t alone, so a resumed run continues in the same
// way. The average starts as the initial weights. Weights that no gradient moves, such as the
// statistics of batch norm, have no average: readers of the averaged weights see them unchanged.
// Used by one thread.
class EmaWeights {
 public:
  // Allocates the average of `net`'s parameters, one float per trained weight, and sets it to their
  // present values. `device` and `net` must outlive the object.
  EmaWeights(float decay, const Device& device, const Net& net);

  // Moves the average. Called after each update that did not write it itself; `updates` is the
  // number of updates so far.
  void Add(int updates);
  // Returns a pointer to each parameter's average, in the order of Net::params(); null for a
  // parameter without one.
  std::vector<float*> PerParam() const;

  // Sets the average to the present weights.
  void Restart();
  // Returns all averages, on the device, in the same layout on each rank.
  std::span<float> numbers() { return memory_.span(); }
  // Writes the net with the averaged weights to *proto, whose memory is reused.
  void ToProto(caffe::NetParameter* proto);

  // While a Scope exists, the nets compute with the averaged weights, or with the raw ones if
  // `averaged` is false (which allows nesting): constructor and destructor swap the two in memory.
  // A null average changes nothing.
  class Scope {
   public:
    Scope(EmaWeights* average, bool averaged);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    EmaWeights* ema_;  // null if nothing was swapped
  };

 private:
  void Swap();

  float decay_;
  const Device& device_;
  const Net& net_;
  DeviceFloats memory_;
  TensorList averages_;
  bool in_use_ = false;  // whether average and weights are swapped now
};

}  // namespace trainer
