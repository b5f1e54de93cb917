#pragma once
// A running average of the weights beside the weights themselves, for tests.

#include <span>

#include "trainer/backend/device_floats.h"
#include "trainer/backend/segments.h"
#include "trainer/net/net.h"

namespace trainer {

// After update t (counted from 1): average = d_t average + (1 - d_t) w, where
// d_t = min(ema_decay, (1 + t) / (10 + t)). It begins as the first weights; the lower d_t of the
// first updates keeps those, which are random, from weighing on it for 1 / (1 - ema_decay)
// iterations. Source of that: the ExponentialMovingAverage of TensorFlow; needs t alone, so that a
// resumed run goes on alike. What no gradient moves, a batch norm's statistics above all, has no
// average: readers of the averaged weights see it as it is. Used by one thread.
class WeightAverage {
 public:
  // The average of `net`'s parameters, which begins as they are. `device` and the net must outlive
  // it; its memory is one float per weight that is trained.
  WeightAverage(float decay, const Device& device, const Net& net);

  // After an update; `updates` have been done with it.
  void Add(int updates);

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
  Segments averages_;
  bool in_use_ = false;  // the average is in the memory of the weights
};

}  // namespace trainer
