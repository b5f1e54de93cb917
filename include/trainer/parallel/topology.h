#pragma once
// The position of a rank among the ranks of a run.

#include <string>
#include <vector>

#include "trainer/base/ranks/rank.h"

namespace trainer {

// Ranks of one node share its memory. Nodes are numbered in the order of their first ranks.
struct Topology {
  Rank rank;
  std::vector<std::string> names;               // by rank: "rank 1 (node7, process 4711)"
  std::vector<std::vector<int>> ranks_of_node;  // by node
  int node = 0;                                 // this rank's node
  int local_rank = 0;                           // its number on the node
  // Its number among the ranks of its host, even if they cannot share memory. Ranks choose their
  // GPUs by it.
  int host_local_rank = 0, host_local_size = 1;
  std::string host;  // identifies the host

  int nodes() const { return static_cast<int>(ranks_of_node.size()); }
  const std::vector<int>& node_ranks() const { return ranks_of_node[static_cast<size_t>(node)]; }
  int local_size() const { return static_cast<int>(node_ranks().size()); }
  const std::string& name() const { return names[static_cast<size_t>(rank.rank)]; }
  // Returns, as [rail][node], the ranks that take part in all-reduces between nodes. There are as
  // many rails as the smallest node has ranks.
  std::vector<std::vector<int>> Rails() const;
  // Numbers are added over the ranks of a node, then over the nodes. Returns a sentence if this
  // order differs from a binary tree over all ranks; else "". It is such a tree if each node has
  // the same number of consecutive ranks, a power of two.
  std::string WhyNotTreeOrder() const;
};

}  // namespace trainer
