#include "trainer/parallel/topology.h"

#include <algorithm>
#include <bit>

#include "trainer/base/text/text.h"

namespace trainer {

std::vector<std::vector<int>> Topology::Rails() const {
  size_t rails = ranks_of_node.front().size();
  for (const std::vector<int>& of_node : ranks_of_node) rails = std::min(rails, of_node.size());
  std::vector<std::vector<int>> partners(rails);
  for (size_t rail = 0; rail < rails; ++rail) {
    for (const std::vector<int>& of_node : ranks_of_node) partners[rail].push_back(of_node[rail]);
  }
  return partners;
}

std::string Topology::WhyNotTreeOrder() const {
  const size_t each = ranks_of_node.front().size();
  for (size_t n = 0; n < ranks_of_node.size() && nodes() > 1; ++n) {
    const std::vector<int>& of_node = ranks_of_node[n];
    if (of_node.size() != each || !std::has_single_bit(each)) {
      return Join("machine ", n, " has ", of_node.size(), " ranks, but machine 0 has ", each,
                  ": all machines need the same number of ranks, a power of two");
    }
    for (size_t i = 0; i < each; ++i) {
      if (of_node[i] == static_cast<int>(n * each + i)) continue;
      return Join("rank ", of_node[i], " is number ", i, " of machine ", n,
                  ": neighbouring ranks must be on one machine (mpirun --map-by slot, srun "
                  "--distribution=block)");
    }
  }
  return "";
}

}  // namespace trainer
