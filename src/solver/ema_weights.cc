#include "ema_weights.h"

#include "trainer/net/weights.h"
#include "trainer/optim/ema.h"

namespace trainer {

namespace {

size_t LearnedCount(const Net& net) {
  int64_t count = 0;
  for (const Param* param : net.params()) {
    count += param->grad == nullptr ? 0 : ParamStore::PaddedCount(param->count());
  }
  return static_cast<size_t>(count);
}

std::vector<TensorTuple> ListAverages(const Net& net, float* next) {
  std::vector<TensorTuple> list;
  for (const Param* param : net.params()) {
    if (param->grad == nullptr) continue;
    list.push_back({param->count(), {next, param->weight}});
    next += ParamStore::PaddedCount(param->count());
  }
  return list;
}

}  // namespace

EmaWeights::EmaWeights(float decay, const Device& device, const Net& net)
    : decay_(decay),
      device_(device),
      net_(net),
      memory_(device, LearnedCount(net)),
      averages_(device, ListAverages(net, memory_.data())) {
  Restart();
}

void EmaWeights::Restart() { StartEma(device_, averages_); }

void EmaWeights::Add(int updates) { UpdateEma(device_, EmaKeep(decay_, updates), averages_); }

std::vector<float*> EmaWeights::PerParam() const {
  std::vector<float*> places;
  int next = 0;
  for (const Param* param : net_.params()) {
    places.push_back(param->grad == nullptr ? nullptr : averages_[next++].array[0]);
  }
  return places;
}

void EmaWeights::Swap() {
  SwapEma(device_, averages_);
  in_use_ = !in_use_;
}

void EmaWeights::ToProto(caffe::NetParameter* proto) {
  const Scope averaged(this, true);
  WeightsTo(net_, false, proto);
}

EmaWeights::Scope::Scope(EmaWeights* average, bool averaged)
    : ema_(average != nullptr && average->in_use_ != averaged ? average : nullptr) {
  if (ema_ != nullptr) ema_->Swap();
}

EmaWeights::Scope::~Scope() {
  if (ema_ != nullptr) ema_->Swap();
}

}  // namespace trainer
