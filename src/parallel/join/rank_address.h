#pragma once
// The addresses by which ranks find out which of them share a node.

#include <string>
#include <vector>

#include "trainer/parallel/topology.h"

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

// Returns the topology as rank `rank` sees it. With `alone`, each rank counts as a node of its own.
Topology TopologyOf(const std::vector<RankAddress>& addresses, int rank, bool alone);

}  // namespace trainer
