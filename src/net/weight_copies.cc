#include "trainer/net/weight_copies.h"

#include <algorithm>
#include <map>

#include "graph.h"
#include "trainer/backend/map_segments.h"

namespace trainer {
namespace {

constexpr size_t kWeightCopiesAlignment = 64;

size_t CopyBytes(const WeightForm& form) {
  const size_t bytes = static_cast<size_t>(form.Count()) * SizeOf(form.dtype);
  return (bytes + kWeightCopiesAlignment - 1) / kWeightCopiesAlignment * kWeightCopiesAlignment;
}

// A layer that reads a copy of a weight, and the form of that. Of layers that share a weight those
// that want it in the form that the first one does.
struct Taker {
  TakesWeightCopy* layer;
  const Param* param;
  WeightForm form;
};

std::vector<Taker> FindTakers(const Graph& graph) {
  std::vector<Taker> takers;
  for (const StepInfo& step : graph.steps) {
    auto* const layer = dynamic_cast<TakesWeightCopy*>(step.layer.get());
    if (layer == nullptr || step.fused_into || step.params().empty()) continue;
    const Param* const param = step.params()[0];
    const std::optional<WeightForm> form = layer->CopyForm();
    if (!form) continue;
    const auto first = std::ranges::find(takers, param, &Taker::param);
    if (first == takers.end() || first->form == *form) takers.push_back({layer, param, *form});
  }
  return takers;
}

// Weights stay: only their copies are written.
struct Stay {
  HD void operator()(float&) const {}
};
struct AllStay {
  HD Stay operator()(int) const { return {}; }
};

}  // namespace

size_t WeightCopyBytes(const Graph& graph) {
  std::map<const Param*, size_t> bytes;
  for (const Taker& taker : FindTakers(graph)) bytes[taker.param] = CopyBytes(taker.form);
  size_t sum = 0;
  for (const auto& [param, of_param] : bytes) sum += of_param;
  return sum;
}

WeightCopies::WeightCopies(Net& net) : device_(net.device()), by_param_(net.params().size()) {
  const size_t bytes = WeightCopyBytes(net.graph());
  if (bytes == 0) return;
  memory_ = static_cast<std::byte*>(device_.Allocate(bytes));
  std::byte* next = memory_;
  std::vector<Segment> weights;
  std::vector<WeightCopy> copies;
  for (const Taker& taker : FindTakers(net.graph())) {
    const auto found = std::ranges::find(net.params(), taker.param);
    WeightCopy& copy = by_param_[static_cast<size_t>(found - net.params().begin())];
    if (copy.to == nullptr) {
      copy = {next, taker.form};
      next += CopyBytes(taker.form);
      weights.push_back({taker.param->count(), {taker.param->weight}});
      copies.push_back(copy);
    }
    taker.layer->UseWeightCopy(copy.to, &holds_);
    users_.push_back(taker.layer);
  }
  weights_.emplace(device_, std::move(weights));
  list_.emplace(device_, copies);
}

WeightCopies::~WeightCopies() {
  for (TakesWeightCopy* const user : users_) user->UseWeightCopy(nullptr, nullptr);
  if (memory_ != nullptr) device_.Free(memory_);
}

void WeightCopies::Write() {
  if (empty()) return;
  UpdateSegments<1>(device_, *weights_, 0, weights_->size(), AllStay(), list_->data());
}

}  // namespace trainer
