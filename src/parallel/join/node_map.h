#pragma once
// Which ranks are on which node.

#include <string>
#include <vector>

namespace trainer {

// What a rank sends to the others when it joins. Plain bytes of a fixed length.
struct RankAddress {
  char host[64] = {};
  char machine[160] = {};  // the same for ranks that can share memory
  char computer[112] =
      {};  // the same for ranks of one computer, which may not be able to share memory
  int process = 0;
  int fd = -1;  // the control block's, if it is the first rank of its node
};

RankAddress OwnAddress();
std::string ToBytes(const RankAddress& address);
RankAddress FromBytes(const std::string& bytes);

// "rank 1 (node7, process 4711)", for messages.
std::string RankName(int rank, const char* host, int process);

// Nodes are numbered in the order of their first ranks.
struct NodeMap {
  std::vector<std::vector<int>> ranks;  // by machine
  int node = 0;                         // this rank's machine
  int local = 0;                        // its number there

  int nodes() const { return static_cast<int>(ranks.size()); }
  const std::vector<int>& own() const { return ranks[static_cast<size_t>(node)]; }
  // [rail][node]: the rank that takes part in all-reduces between nodes. There are as many rails as
  // the smallest node has ranks.
  std::vector<std::vector<int>> Rails() const;
  // Numbers are added over the ranks of a node, then over the nodes. Returns a sentence if that is
  // not a binary tree over all ranks, which requires that each node has the same number of
  // consecutive ranks, a power of two; else "".
  std::string WhyNotTreeOrder() const;
};

// `alone`: each rank counts as a node of its own.
NodeMap MapNodes(const std::vector<RankAddress>& addresses, int rank, bool alone);

}  // namespace trainer
