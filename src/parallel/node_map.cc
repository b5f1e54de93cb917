#include "node_map.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace trainer {
namespace {

// TRAINER_MACHINE tells machines apart where there is one, for tests.
std::string ComputerName() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const char* const wish = std::getenv("TRAINER_MACHINE");
  return std::string(wish == nullptr ? "" : wish) + " " + boot;
}

// Two containers of one computer may have numbers of processes of their own.
std::string MachineName(const char* host) {
  char space[64] = {};
  [[maybe_unused]] const ssize_t length = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  return ComputerName() + " " + host + " " + space;
}

}  // namespace

RankCard OwnCard() {
  RankCard card;
  gethostname(card.host, sizeof card.host - 1);
  const std::string machine = MachineName(card.host), computer = ComputerName();
  machine.copy(card.machine, sizeof card.machine - 1);
  computer.copy(card.computer, sizeof card.computer - 1);
  card.process = getpid();
  return card;
}

std::string ToBytes(const RankCard& card) {
  return {reinterpret_cast<const char*>(&card), sizeof card};
}

RankCard FromBytes(const std::string& bytes) {
  RankCard card;
  std::memcpy(&card, bytes.data(), sizeof card);
  return card;
}

std::vector<std::vector<int>> NodeMap::Lanes() const {
  size_t lanes = ranks.front().size();
  for (const std::vector<int>& of_node : ranks) lanes = std::min(lanes, of_node.size());
  std::vector<std::vector<int>> partners(lanes);
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (const std::vector<int>& of_node : ranks) partners[lane].push_back(of_node[lane]);
  }
  return partners;
}

NodeMap MapNodes(const std::vector<RankCard>& cards, int rank, bool alone) {
  NodeMap map;
  std::vector<std::string> machines;
  for (size_t r = 0; r < cards.size(); ++r) {
    const std::string machine = alone ? std::to_string(r) : std::string(cards[r].machine);
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
