#pragma once
// The addresses by which ranks find out who shares a node.

#include <string>
#include <vector>

#include "trainer/parallel/topology.h"

namespace trainer {

// What a rank sends to the others when it joins. Plain bytes of a fixed length.
struct RankAddress {
  char host[64] = {};
  char machine[160] = {};   // the same for ranks that can share memory
  char computer[112] = {};  // the same for ranks of one computer
  int process = 0;
  int fd = -1;  // the control block's, if it is the first rank of its node
};

RankAddress OwnAddress();
std::string ToBytes(const RankAddress& address);
RankAddress FromBytes(const std::string& bytes);

// "rank 1 (node7, process 4711)", for messages.
std::string RankName(int rank, const char* host, int process);

// The topology as `rank` sees it. `alone`: each rank counts as a node of its own.
Topology TopologyOf(const std::vector<RankAddress>& addresses, int rank, bool alone);

}  // namespace trainer
