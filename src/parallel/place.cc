#include "place.h"

#include <cstdlib>

#include "trainer/base/error/error.h"

namespace trainer {
namespace {

// By the computer itself, whatever divides its ranks.
World::Locals LocalsOf(const std::vector<RankCard>& cards, int rank) {
  World::Locals locals;
  locals.machine = cards[static_cast<size_t>(rank)].computer;
  locals.count = 0;
  for (size_t r = 0; r < cards.size(); ++r) {
    if (locals.machine != cards[r].computer) continue;
    if (static_cast<int>(r) == rank) locals.local = locals.count;
    ++locals.count;
  }
  return locals;
}

// Makes or opens the block of this machine. Whether all ranks of all machines have theirs.
bool OpenBlock(MpiLibrary& mpi, const std::vector<RankCard>& cards, Place* place) {
  RankCard card = cards[static_cast<size_t>(place->replica.rank)];
  const auto locals = static_cast<int>(place->map.own().size());
  const auto first = static_cast<size_t>(place->map.own().front());
  if (place->map.local == 0) {
    place->block.emplace(SharedMemory(NodeBlock::Bytes(locals)), locals);
    for (int local = 0; local < locals; ++local) {
      const int rank = place->map.own()[static_cast<size_t>(local)];
      place->block->slot(local).rank = rank;
      place->block->slot(local).process = cards[static_cast<size_t>(rank)].process;
    }
    card.fd = place->block->fd();
  }
  const RankCard of_first = FromBytes(mpi.AllGather(ToBytes(card))[first]);
  bool open = true;
  if (place->map.local != 0) {
    try {
      place->block.emplace(SharedMemory(of_first.process, of_first.fd, NodeBlock::Bytes(locals)),
                           locals);
    } catch (const Error&) {
      open = false;
    }
  }
  for (const std::string& other : mpi.AllGather(open ? "1" : "0")) open = open && other == "1";
  if (open) place->block->CloseDescriptor();
  return open;
}

}  // namespace

Place JoinOwn(const RankEnvironment& environment) {
  Place place;
  place.replica = {environment.rank, environment.count};
  const RankCard card = OwnCard();
  std::vector<RankCard> cards(static_cast<size_t>(environment.count), card);
  place.map = MapNodes(cards, environment.rank, false);
  place.block.emplace(SharedMemory(environment.fd, NodeBlock::Bytes(environment.count)),
                      environment.count);
  for (int rank = 0; rank < environment.count; ++rank) {
    place.names.push_back(RankName(rank, card.host, place.block->slot(rank).process));
  }
  place.locals = {environment.rank, environment.count, card.computer};
  unsetenv("TRAINER_WORLD");
  return place;
}

Place JoinMpi(MpiLibrary& mpi) {
  Place place;
  place.replica = {mpi.rank(), mpi.count()};
  std::vector<RankCard> cards;
  for (const std::string& bytes : mpi.AllGather(ToBytes(OwnCard()))) {
    cards.push_back(FromBytes(bytes));
    const auto rank = static_cast<int>(cards.size()) - 1;
    place.names.push_back(RankName(rank, cards.back().host, cards.back().process));
  }
  place.locals = LocalsOf(cards, mpi.rank());
  place.map = MapNodes(cards, mpi.rank(), false);
  if (!OpenBlock(mpi, cards, &place)) {
    place.map = MapNodes(cards, mpi.rank(), true);
    OpenBlock(mpi, cards, &place);
  }
  return place;
}

}  // namespace trainer
