#pragma once
// A running average of the weights beside the weights themselves, for tests.

#include <span>

#include "trainer/backend/loops/tensor_list.h"
#include "trainer/backend/memory/device_array.h"
#include "trainer/net/net.h"

namespace trainer {

// After update t (counted from 1): average = d_t average + (1 - d_t) w, where
// d_t = min(ema_decay, (1 + t) / (10 + t)), see AverageKeeps; that needs t alone, so that a resumed
// run goes on alike. It begins as the first weights. What no gradient moves, a batch norm's
// statistics above all, has no average: readers of the averaged weights see it as it is. Used by
// one thread.
class WeightAverage {
 public:
  // The average of `net`'s parameters, which begins as they are. `device` and the net must outlive
  // it; its memory is one float per weight that is trained.
  WeightAverage(float decay, const Device& device, const Net& net);

  // After an update that did not write the averages itself; `updates` have been done with it.
  void Add(int updates);
  // Where those of each parameter lie, in the order of Net::params(); null for one without.
  std::vector<float*> PerParam() const;

  // Becomes what the weights are.
  void Restart();
  // All averages, on the device; the same layout for each replica.
  std::span<float> numbers() { return memory_.span(); }
  // The net with the averaged weights, into a message whose memory is used again.
  void ToProto(caffe::NetParameter* proto);

  // While one lives, the nets compute with the averaged weights (or, within such a time, with the
  // raw ones again): the two are exchanged in memory. A null average changes nothing.
  class Scope {
   public:
    Scope(WeightAverage* average, bool averaged);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WeightAverage* average_;  // null when nothing was changed
  };

 private:
  void Swap();

  float decay_;
  const Device& device_;
  const Net& net_;
  DeviceFloats memory_;
  TensorList averages_;
  bool in_use_ = false;  // the average is in the memory of the weights
};

}  // namespace trainer
