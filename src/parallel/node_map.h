#pragma once
// Which ranks are on one machine.

#include <string>
#include <vector>

namespace trainer {

// What a rank tells the others when it joins. Plain bytes, all of one length.
struct RankCard {
  char host[64] = {};
  char machine[160] = {};   // equal for ranks that can share memory
  char computer[112] = {};  // the same where they cannot
  int process = 0;
  int fd = -1;  // of the machine's block, of its first rank
};

RankCard OwnCard();
std::string ToBytes(const RankCard& card);
RankCard FromBytes(const std::string& bytes);

// "rank 1 (node7, process 4711)", for messages.
std::string RankName(int rank, const char* host, int process);

// Machines are numbered in the order of their first ranks.
struct NodeMap {
  std::vector<std::vector<int>> ranks;  // by machine
  int node = 0;                         // this rank's machine
  int local = 0;                        // its number there

  int nodes() const { return static_cast<int>(ranks.size()); }
  const std::vector<int>& own() const { return ranks[static_cast<size_t>(node)]; }
  // [lane][machine]: the rank that takes part in sums between machines. As many lanes as the
  // smallest machine has ranks.
  std::vector<std::vector<int>> Lanes() const;
  // Sums are added over the ranks of a machine, then over the machines. A sentence where that is no
  // binary tree over all ranks, which needs machines with equally many neighbouring ranks, a power
  // of two; else "".
  std::string WhyNoTree() const;
};

// `alone`: each rank counts as a machine of its own.
NodeMap MapNodes(const std::vector<RankCard>& cards, int rank, bool alone);

}  // namespace trainer
