#include "join/join_ranks.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "join/rank_address.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

// Creates or opens the control block of this node: its first rank creates it and announces the
// descriptor, and the others map it. Collective. Returns whether all ranks of all nodes have opened
// theirs.
bool OpenBlock(Mpi& mpi, const std::vector<RankAddress>& addresses, JoinedRank* joined) {
  const Topology& topology = joined->topology;
  RankAddress address = addresses[static_cast<size_t>(topology.rank.rank)];
  const int local_size = topology.local_size();
  const auto first = static_cast<size_t>(topology.node_ranks().front());
  if (topology.local_rank == 0) {
    joined->block.emplace(SharedSegment(ControlBlock::Bytes(local_size)), local_size);
    for (int local = 0; local < local_size; ++local) {
      const int rank = topology.node_ranks()[static_cast<size_t>(local)];
      joined->block->status(local).rank = rank;
      joined->block->status(local).process = addresses[static_cast<size_t>(rank)].process;
    }
    address.fd = joined->block->fd();
  }
  const RankAddress of_first = FromBytes(mpi.AllGather(ToBytes(address))[first]);
  bool open = true;
  if (topology.local_rank != 0) {
    try {
      joined->block.emplace(
          SharedSegment(of_first.process, of_first.fd, ControlBlock::Bytes(local_size)),
          local_size);
    } catch (const Error&) {
      open = false;
    }
  }
  for (const std::string& other : mpi.AllGather(open ? "1" : "0")) open = open && other == "1";
  if (open) joined->block->CloseDescriptor();
  return open;
}

}  // namespace

JoinedRank JoinForked(const LaunchEnvironment& environment) {
  JoinedRank joined;
  joined.block.emplace(SharedSegment(environment.fd, ControlBlock::Bytes(environment.count)),
                       environment.count);
  std::vector<RankAddress> addresses(static_cast<size_t>(environment.count), OwnAddress());
  for (int rank = 0; rank < environment.count; ++rank) {
    addresses[static_cast<size_t>(rank)].process = joined.block->status(rank).process;
  }
  joined.topology = TopologyOf(addresses, environment.rank, false);
  unsetenv("TRAINER_WORLD");
  return joined;
}

JoinedRank JoinMpi(Mpi& mpi) {
  std::vector<RankAddress> addresses;
  for (const std::string& bytes : mpi.AllGather(ToBytes(OwnAddress()))) {
    addresses.push_back(FromBytes(bytes));
  }
  JoinedRank joined;
  joined.topology = TopologyOf(addresses, mpi.rank(), false);
  if (!OpenBlock(mpi, addresses, &joined)) {
    joined.topology = TopologyOf(addresses, mpi.rank(), true);
    OpenBlock(mpi, addresses, &joined);
  }
  return joined;
}

}  // namespace trainer
