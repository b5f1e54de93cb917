#include "trainer/net/broken_pass.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "execute/bindings.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/data_layer.h"
#include "trainer/net/graph.h"
#include "trainer/net/join_replicas.h"

namespace trainer {
namespace {

// Statistics of a value, item by item along its first axis.
struct ItemNumbers {
  int64_t items = 0;
  std::vector<int64_t> bad;  // the items with a value that is not finite
  float first_bad = 0;
  float largest = 0;  // largest absolute value of the finite ones
  int64_t largest_item = 0;
};

class BrokenPass {
 public:
  explicit BrokenPass(const Net& net) : net_(net), graph_(net.graph()) {}

  std::string Describe(const std::function<void(NodeId node)>& run) {
    for (const NodeId id : graph_.nodes.Ids()) {
      const Node& node = graph_.nodes[id];
      if (node.fused_into) continue;
      run(id);
      for (const ValueId out : node.out) {
        ItemNumbers numbers = Look(net_.Value(out));
        if (!numbers.bad.empty()) return Join(WhatBroke(node, numbers), LargestInput(node));
        numbers_[out] = std::move(numbers);
      }
    }
    return "";
  }

 private:
  ItemNumbers Look(const Tensor& value) const {
    std::vector<float> host(static_cast<size_t>(value.Count()));
    net_.ReadNchw(value, host);
    ItemNumbers numbers;
    numbers.items = value.shape.Rank() > 0 ? value.shape[0] : 1;
    const size_t per_item = host.size() / static_cast<size_t>(std::max<int64_t>(numbers.items, 1));
    for (size_t i = 0; i < host.size(); ++i) {
      const auto item = static_cast<int64_t>(i / per_item);
      if (!std::isfinite(host[i])) {
        if (numbers.bad.empty()) numbers.first_bad = host[i];
        if (numbers.bad.empty() || numbers.bad.back() != item) numbers.bad.push_back(item);
      } else if (std::abs(host[i]) > numbers.largest) {
        numbers.largest = std::abs(host[i]);
        numbers.largest_item = item;
      }
    }
    return numbers;
  }

  // Returns the layer that reads records in batches of `items`, or null.
  DataLayer* SourceOf(int64_t items) const {
    for (const Node& node : graph_.nodes) {
      DataLayer* const source = node.layer->data_layer();
      if (source == nullptr || node.out.empty()) continue;
      const Shape& shape = graph_.values[node.out[0]].shape;
      if (shape.Rank() > 0 && shape[0] == items) return source;
    }
    return nullptr;
  }

  // Returns "record '00000012' of data/train_lmdb", or "" if no layer reads records.
  std::string NameOf(int64_t item, int64_t items) const {
    DataLayer* const source = SourceOf(items);
    if (source == nullptr) return "";
    const std::string name = source->RecordName(item, 0);
    return name.empty() ? Join("record ", item, " of the batch") : name;
  }

  std::string WhatBroke(const Node& node, const ItemNumbers& numbers) const {
    const std::string layer = Join("layer '", node.spec.name(), "' (", node.spec.type(), ", ",
                                   node.spec.Where().ToString(), ")");
    const std::string first = NameOf(numbers.bad.front(), numbers.items);
    if (node.in.empty()) {
      return Join("the data has ", numbers.first_bad, " in a value that ", layer, " reads",
                  first.empty() ? "" : ", first in " + first);
    }
    std::string text =
        Join("the first values that are not finite (NaN or infinity) are in the output of ", layer);
    if (first.empty()) return text;
    const size_t bad = numbers.bad.size();
    if (static_cast<int64_t>(bad) == numbers.items) {
      return Join(text, ", in all ", bad, " records of the batch");
    }
    return Join(text, ", in ", bad, " of the ", numbers.items,
                " records of the batch: ", bad > 1 ? "first " : "", first);
  }

  std::string LargestInput(const Node& node) const {
    const ItemNumbers* most = nullptr;
    for (const ValueId in : node.in) {
      const ItemNumbers& numbers = numbers_.at(in);
      if (most == nullptr || numbers.largest > most->largest) most = &numbers;
    }
    if (most == nullptr) return "";
    const std::string record = NameOf(most->largest_item, most->items);
    if (record.empty()) return Join("; the largest value in its input is ", most->largest);
    return Join("; the largest value in its input is ", most->largest, ", in ", record);
  }

  const Net& net_;
  const Graph& graph_;
  std::map<ValueId, ItemNumbers> numbers_;
};

bool CanRepeat(const Net& net) {
  const NetOptions& options = net.graph().options;
  if (net.device().IsAsync() || options.virtual_ranks > 1 || options.activation_slots > 1) {
    return false;
  }
  return std::ranges::none_of(net.graph().nodes,
                              [](const Node& node) { return node.signature.state_bytes > 0; });
}

}  // namespace

std::string DescribeBrokenPass(Net& net) {
  if (!CanRepeat(net)) return "";
  try {
    JoinReplicas(net, {});
    net.bindings_->results().Repeat();
    return BrokenPass(net).Describe(
        [&](NodeId node) { net.RunNode(node, Direction::kForward, /*hook=*/net.hooks_.size()); });
  } catch (const Error&) {
    return "";  // the run must end with the message about the loss, not with this error
  }
}

}  // namespace trainer
