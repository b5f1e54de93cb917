#include "trainer/net/graph.h"

#include <algorithm>
#include <vector>

namespace trainer {

Tensor Graph::Find(const std::string& blob) const {
  const auto found = latest_by_name.find(blob);
  if (found == latest_by_name.end()) return {};
  return {nullptr, values[found->second].shape, values[found->second].dtype};
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
