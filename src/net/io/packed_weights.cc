#include "trainer/net/packed_weights.h"

#include <algorithm>
#include <map>

#include "trainer/backend/loops/multi_tensor.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

constexpr size_t kWeightCopiesAlignment = 64;

size_t CopyBytes(const PackedLayout& form) {
  const size_t bytes = static_cast<size_t>(form.Count()) * SizeOf(form.dtype);
  return (bytes + kWeightCopiesAlignment - 1) / kWeightCopiesAlignment * kWeightCopiesAlignment;
}

// A layer that reads a packed weight, and its layout. If layers share a weight, only layers that
// want the layout of the first one read the packed weight.
struct Taker {
  Layer* layer;
  const Param* param;
  PackedLayout form;
};

std::vector<Taker> FindTakers(const Graph& graph) {
  std::vector<Taker> takers;
  for (const Node& node : graph.nodes) {
    if (node.fused_into || node.params.empty()) continue;
    const Param* const param = node.params[0];
    const std::optional<PackedLayout> form = node.layer->packed_layout();
    if (!form) continue;
    const auto first = std::ranges::find(takers, param, &Taker::param);
    if (first == takers.end() || first->form == *form)
      takers.push_back({node.layer.get(), param, *form});
  }
  return takers;
}

// Leaves the weights unchanged: only the copies are written.
struct Stay {
  HD void operator()(float&) const {}
};
struct AllStay {
  HD Stay operator()(int) const { return {}; }
};

}  // namespace

size_t PackedWeightBytes(const Graph& graph) {
  std::map<const Param*, size_t> bytes;
  for (const Taker& taker : FindTakers(graph)) bytes[taker.param] = CopyBytes(taker.form);
  size_t sum = 0;
  for (const auto& [param, of_param] : bytes) sum += of_param;
  return sum;
}

PackedWeights::PackedWeights(Net& net) : device_(net.device()), by_param_(net.params().size()) {
  const size_t bytes = PackedWeightBytes(net.graph());
  if (bytes == 0) return;
  memory_ = static_cast<std::byte*>(device_.Allocate(bytes));
  std::byte* next = memory_;
  std::vector<TensorTuple> weights;
  std::vector<PackedWeight> copies;
  for (const Taker& taker : FindTakers(net.graph())) {
    const auto found = std::ranges::find(net.params(), taker.param);
    PackedWeight& copy = by_param_[static_cast<size_t>(found - net.params().begin())];
    if (copy.to == nullptr) {
      copy = {next, taker.form};
      next += CopyBytes(taker.form);
      weights.push_back({taker.param->count(), {taker.param->weight}});
      copies.push_back(copy);
    }
    taker.layer->UsePackedWeight(copy.to, &valid_);
    users_.push_back(taker.layer);
  }
  weights_.emplace(device_, std::move(weights));
  list_.emplace(device_, copies);
}

PackedWeights::~PackedWeights() {
  for (Layer* const user : users_) user->UsePackedWeight(nullptr, nullptr);
  if (memory_ != nullptr) device_.Free(memory_);
}

void PackedWeights::Write() {
  if (empty()) return;
  MultiTensorApply<1>(device_, *weights_, 0, weights_->size(), AllStay(), list_->data());
}

}  // namespace trainer
