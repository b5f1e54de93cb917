#include "trainer/solver/weight_average.h"

#include <algorithm>

#include "trainer/net/weights.h"
#include "trainer/rules/average.h"

namespace trainer {

namespace {

size_t LearnedCount(const Net& net) {
  int64_t count = 0;
  for (const Param* param : net.params()) count += param->grad == nullptr ? 0 : param->count();
  return static_cast<size_t>(count);
}

}  // namespace

WeightAverage::WeightAverage(float decay, const Device& device, const Net& net)
    : decay_(decay), device_(device), net_(net), memory_(device, LearnedCount(net)) {
  float* next = memory_.data();
  for (Param* param : net.params()) {
    if (param->grad == nullptr) continue;
    entries_.push_back({param, next});
    next += param->count();
  }
  Restart();
}

void WeightAverage::Restart() {
  for (const Entry& e : entries_) {
    StartAverage(device_, e.param->count(), e.average, e.param->weight);
  }
}

void WeightAverage::Add(int updates) {
  const float keep =
      std::min(decay_, static_cast<float>(1 + updates) / static_cast<float>(10 + updates));
  for (const Entry& e : entries_) {
    BlendAverage(device_, keep, e.param->count(), e.average, e.param->weight);
  }
}

void WeightAverage::Swap() {
  for (const Entry& e : entries_) {
    SwapAverage(device_, e.param->count(), e.average, e.param->weight);
  }
  in_use_ = !in_use_;
}

void WeightAverage::ToProto(caffe::NetParameter* proto) {
  const Scope averaged(this, true);
  WeightsTo(net_, false, proto);
}

WeightAverage::Scope::Scope(WeightAverage* average, bool averaged)
    : average_(average != nullptr && average->in_use_ != averaged ? average : nullptr) {
  if (average_ != nullptr) average_->Swap();
}

WeightAverage::Scope::~Scope() {
  if (average_ != nullptr) average_->Swap();
}

}  // namespace trainer
