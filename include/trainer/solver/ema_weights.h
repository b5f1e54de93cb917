#pragma once
// The exponential moving average (EMA) of the weights, for tests.

#include <span>

#include "trainer/backend/loops/tensor_list.h"
#include "trainer/backend/memory/device_array.h"
#include "trainer/net/net.h"

namespace trainer {

// After update t (counted from 1): average = d_t average + (1 - d_t) w, where d_t = min(ema_decay,
// (1 + t) / (10 + t)), see EmaKeep. That depends on t alone, so a resumed run continues in the same
// way. The average starts as the initial weights. Weights that no gradient moves, such as the
// statistics of batch norm, have no average: readers of the averaged weights see them unchanged.
// Used by one thread.
class EmaWeights {
 public:
  // Allocates the average of `net`'s parameters, one float per trained weight, and sets it to them.
  // `device` and the net must outlive it.
  EmaWeights(float decay, const Device& device, const Net& net);

  // Called after an update that did not write the averages itself; `updates` counts it.
  void Add(int updates);
  // The averages of each parameter, in the order of Net::params(); null for a parameter without.
  std::vector<float*> PerParam() const;

  // Sets the average to the present weights.
  void Restart();
  // All averages, on the device, in the same layout on each rank.
  std::span<float> numbers() { return memory_.span(); }
  // Writes the net with the averaged weights to *proto, whose memory is reused.
  void ToProto(caffe::NetParameter* proto);

  // While one lives, the nets compute with the averaged weights, or, if nested, with the raw ones
  // again: the two are exchanged in memory. A null average changes nothing.
  class Scope {
   public:
    Scope(EmaWeights* average, bool averaged);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    EmaWeights* ema_;  // null if nothing was exchanged
  };

 private:
  void Swap();

  float decay_;
  const Device& device_;
  const Net& net_;
  DeviceFloats memory_;
  TensorList averages_;
  bool in_use_ = false;  // average and weights are exchanged
};

}  // namespace trainer
