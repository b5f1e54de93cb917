#include "join/join_ranks.h"

#include <cstdlib>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

// Returns the number of `rank` among the ranks of its computer, and how many these are, even if
// they cannot share memory.
World::Locals HostRankOf(const std::vector<RankAddress>& addresses, int rank) {
  World::Locals locals;
  locals.machine = addresses[static_cast<size_t>(rank)].computer;
  locals.count = 0;
  for (size_t r = 0; r < addresses.size(); ++r) {
    if (locals.machine != addresses[r].computer) continue;
    if (static_cast<int>(r) == rank) locals.local = locals.count;
    ++locals.count;
  }
  return locals;
}

// Creates or opens the control block of this node: its first rank creates it and announces the
// descriptor, and the others map it. Collective. Returns whether all ranks of all nodes have opened
// theirs.
bool OpenBlock(Mpi& mpi, const std::vector<RankAddress>& addresses, JoinedRank* joined) {
  RankAddress address = addresses[static_cast<size_t>(joined->rank.rank)];
  const auto locals = static_cast<int>(joined->map.own().size());
  const auto first = static_cast<size_t>(joined->map.own().front());
  if (joined->map.local == 0) {
    joined->block.emplace(SharedSegment(ControlBlock::Bytes(locals)), locals);
    for (int local = 0; local < locals; ++local) {
      const int rank = joined->map.own()[static_cast<size_t>(local)];
      joined->block->status(local).rank = rank;
      joined->block->status(local).process = addresses[static_cast<size_t>(rank)].process;
    }
    address.fd = joined->block->fd();
  }
  const RankAddress of_first = FromBytes(mpi.AllGather(ToBytes(address))[first]);
  bool open = true;
  if (joined->map.local != 0) {
    try {
      joined->block.emplace(
          SharedSegment(of_first.process, of_first.fd, ControlBlock::Bytes(locals)), locals);
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
  joined.rank = {environment.rank, environment.count};
  const RankAddress address = OwnAddress();
  std::vector<RankAddress> addresses(static_cast<size_t>(environment.count), address);
  joined.map = MapNodes(addresses, environment.rank, false);
  joined.block.emplace(SharedSegment(environment.fd, ControlBlock::Bytes(environment.count)),
                       environment.count);
  for (int rank = 0; rank < environment.count; ++rank) {
    joined.names.push_back(RankName(rank, address.host, joined.block->status(rank).process));
  }
  joined.locals = {environment.rank, environment.count, address.computer};
  unsetenv("TRAINER_WORLD");
  return joined;
}

JoinedRank JoinMpi(Mpi& mpi) {
  JoinedRank joined;
  joined.rank = {mpi.rank(), mpi.count()};
  std::vector<RankAddress> addresses;
  for (const std::string& bytes : mpi.AllGather(ToBytes(OwnAddress()))) {
    addresses.push_back(FromBytes(bytes));
    const auto rank = static_cast<int>(addresses.size()) - 1;
    joined.names.push_back(RankName(rank, addresses.back().host, addresses.back().process));
  }
  joined.locals = HostRankOf(addresses, mpi.rank());
  joined.map = MapNodes(addresses, mpi.rank(), false);
  if (!OpenBlock(mpi, addresses, &joined)) {
    joined.map = MapNodes(addresses, mpi.rank(), true);
    OpenBlock(mpi, addresses, &joined);
  }
  return joined;
}

}  // namespace trainer
