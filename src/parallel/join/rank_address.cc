#include "join/rank_address.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns a name that all processes of one computer share. Tests set TRAINER_MACHINE to make one
// computer look like several.
std::string ComputerName() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const char* const forced = std::getenv("TRAINER_MACHINE");
  return std::string(forced == nullptr ? "" : forced) + " " + boot;
}

// Returns a name that only ranks with access to each other's memory share. Includes the PID
// namespace: containers of one computer may number processes differently, and ranks open each
// other's memory by process number.
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

Topology TopologyOf(const std::vector<RankAddress>& addresses, int rank, bool alone) {
  Topology topology;
  topology.rank = {rank, static_cast<int>(addresses.size())};
  topology.host = addresses[static_cast<size_t>(rank)].computer;
  topology.host_local_size = 0;
  std::vector<std::string> nodes;
  for (size_t r = 0; r < addresses.size(); ++r) {
    const RankAddress& address = addresses[r];
    topology.names.push_back(RankName(static_cast<int>(r), address.host, address.process));
    const std::string id = alone ? std::to_string(r) : std::string(address.machine);
    const auto found = std::ranges::find(nodes, id);
    const auto node = static_cast<size_t>(found - nodes.begin());
    if (found == nodes.end()) {
      nodes.push_back(id);
      topology.ranks_of_node.emplace_back();
    }
    if (static_cast<int>(r) == rank) {
      topology.node = static_cast<int>(node);
      topology.local_rank = static_cast<int>(topology.ranks_of_node[node].size());
      topology.host_local_rank = topology.host_local_size;
    }
    topology.ranks_of_node[node].push_back(static_cast<int>(r));
    if (topology.host == address.computer) ++topology.host_local_size;
  }
  return topology;
}

}  // namespace trainer
