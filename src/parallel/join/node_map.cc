#include "join/node_map.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
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

std::vector<std::vector<int>> NodeMap::Rails() const {
  size_t rails = ranks.front().size();
  for (const std::vector<int>& of_node : ranks) rails = std::min(rails, of_node.size());
  std::vector<std::vector<int>> partners(rails);
  for (size_t rail = 0; rail < rails; ++rail) {
    for (const std::vector<int>& of_node : ranks) partners[rail].push_back(of_node[rail]);
  }
  return partners;
}

std::string NodeMap::WhyNotTreeOrder() const {
  const size_t each = ranks.front().size();
  for (size_t n = 0; n < ranks.size() && nodes() > 1; ++n) {
    const std::vector<int>& of_node = ranks[n];
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

NodeMap MapNodes(const std::vector<RankAddress>& addresses, int rank, bool alone) {
  NodeMap map;
  std::vector<std::string> machines;
  for (size_t r = 0; r < addresses.size(); ++r) {
    const std::string machine = alone ? std::to_string(r) : std::string(addresses[r].machine);
    const auto found = std::ranges::find(machines, machine);
    const auto node = static_cast<size_t>(found - machines.begin());
    if (found == machines.end()) {
      machines.push_back(machine);
      map.ranks.emplace_back();
    }
    if (static_cast<int>(r) == rank) {
      map.node = static_cast<int>(node);
      map.local = static_cast<int>(map.ranks[node].size());
    }
    map.ranks[node].push_back(static_cast<int>(r));
  }
  return map;
}

}  // namespace trainer
