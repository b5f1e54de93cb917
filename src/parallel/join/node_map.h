#pragma once
// Says which ranks are on which node.

#include <string>
#include <vector>

namespace trainer {

// A rank sends this to the others when it joins. Plain bytes of a fixed length.
struct RankAddress {
  char host[64] = {};
  char machine[160] = {};   // equal for ranks that can share memory
  char computer[112] = {};  // equal for ranks of one computer
  int process = 0;
  int fd = -1;  // of the control block, if this is the first rank of its node
};

// Returns the address of this process, without a descriptor.
RankAddress OwnAddress();
// Converts an address to the message that a rank sends.
std::string ToBytes(const RankAddress& address);
// Converts the message of a rank to its address.
RankAddress FromBytes(const std::string& bytes);

// Returns "rank 1 (node7, process 4711)", for messages.
std::string RankName(int rank, const char* host, int process);

// The ranks by node, as rank `rank` of MapNodes sees them. Nodes are numbered in the order of their
// first ranks.
struct NodeMap {
  std::vector<std::vector<int>> ranks;  // by node
  int node = 0;                         // this rank's node
  int local = 0;                        // this rank's number on its node

  int nodes() const { return static_cast<int>(ranks.size()); }
  const std::vector<int>& own() const { return ranks[static_cast<size_t>(node)]; }
  // Returns, as [rail][node], the ranks that take part in all-reduces between nodes. There are as
  // many rails as the smallest node has ranks.
  std::vector<std::vector<int>> Rails() const;
  // Numbers are added over the ranks of a node, then over the nodes. Returns a sentence if this
  // order differs from a binary tree over all ranks; else "". It is such a tree if each node has
  // the same number of consecutive ranks, a power of two.
  std::string WhyNotTreeOrder() const;
};

// Groups the ranks into nodes for rank `rank`. With `alone`, each rank counts as a node of its own.
NodeMap MapNodes(const std::vector<RankAddress>& addresses, int rank, bool alone);

}  // namespace trainer
