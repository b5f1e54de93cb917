#include "trainer/net/graph.h"

#include <algorithm>
#include <vector>

namespace trainer {

bool NodeSignature::AgreesWith(const NodeSignature& other) const {
  const auto same = [](const Output& a, const Output& b) {
    return a.dtype == b.dtype && a.view_of == b.view_of && a.persists == b.persists &&
           a.kept == b.kept;
  };
  return in == other.in && std::ranges::equal(out, other.out, same) && in_place == other.in_place &&
         state_bytes == other.state_bytes && constants == other.constants && params == other.params;
}

std::vector<ValueId> Graph::WithViews(ValueId value) const {
  std::vector<ValueId> all = {value};
  for (size_t i = 0; i < all.size(); ++i) {
    for (const NodeId reader : values[all[i]].consumers) {
      for (const ValueId out : nodes[reader].out) {
        const bool known = std::ranges::find(all, out) != all.end();
        if (values[out].view_of == all[i] && !known) all.push_back(out);
      }
    }
  }
  return all;
}

}  // namespace trainer
