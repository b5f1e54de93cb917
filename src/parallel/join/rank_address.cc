#include "join/rank_address.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// TRAINER_MACHINE tells machines apart where there is one, for tests.
std::string ComputerName() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const char* const forced = std::getenv("TRAINER_MACHINE");
  return std::string(forced == nullptr ? "" : forced) + " " + boot;
}

// Two containers of one computer may have numbers of processes of their own.
std::string NodeId(const char* host) {
  char space[64] = {};
  [[maybe_unused]] const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  return ComputerName() + " " + host + " " + space;
}

}  // namespace

RankAddress OwnAddress() {
  RankAddress address;
  gethostname(address.host, sizeof address.host - 1);
  const std::string machine = NodeId(address.host), computer = ComputerName();
  machine.copy(address.machine, sizeof address.machine - 1);
  computer.copy(address.computer, sizeof address.computer - 1);
  address.process = getpid();
  return address;
}

std::string RankName(int rank, const char* host, int process) {
  return Join("rank ", rank, " (", EscapeControl(host), ", process ", process, ")");
}

std::string ToBytes(const RankAddress& address) {
  return {reinterpret_cast<const char*>(&address), sizeof address};
}

RankAddress FromBytes(const std::string& bytes) {
  RankAddress address;
  std::memcpy(&address, bytes.data(), sizeof address);
  return address;
}

namespace {

// Counts the ranks of this one's computer, whether or not they can share memory.
void CountRanksOfHost(const std::vector<RankAddress>& addresses, Topology* topology) {
  const auto own = static_cast<size_t>(topology->rank.rank);
  topology->host = addresses[own].computer;
  topology->host_local_size = 0;
  for (size_t r = 0; r < addresses.size(); ++r) {
    if (topology->host != addresses[r].computer) continue;
    if (r == own) topology->host_local_rank = topology->host_local_size;
    ++topology->host_local_size;
  }
}

}  // namespace

Topology TopologyOf(const std::vector<RankAddress>& addresses, int rank, bool alone) {
  Topology topology;
  topology.rank = {rank, static_cast<int>(addresses.size())};
  std::vector<std::string> nodes;
  for (size_t r = 0; r < addresses.size(); ++r) {
    topology.names.push_back(
        RankName(static_cast<int>(r), addresses[r].host, addresses[r].process));
    const std::string id = alone ? std::to_string(r) : std::string(addresses[r].machine);
    const auto found = std::ranges::find(nodes, id);
    const auto node = static_cast<size_t>(found - nodes.begin());
    if (found == nodes.end()) {
      nodes.push_back(id);
      topology.ranks_of_node.emplace_back();
    }
    std::vector<int>& ranks = topology.ranks_of_node[node];
    if (static_cast<int>(r) == rank) {
      topology.node = static_cast<int>(node);
      topology.local_rank = static_cast<int>(ranks.size());
    }
    ranks.push_back(static_cast<int>(r));
  }
  CountRanksOfHost(addresses, &topology);
  return topology;
}

}  // namespace trainer
