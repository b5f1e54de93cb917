#include "run_board.h"

#include "packet.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

static_assert(std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<double>::is_always_lock_free);

// Numbers of a tally as they travel.
template <class Visit>
void VisitCounts(Tally& tally, const Visit& visit) {
  for (std::atomic<int64_t>* const count :
       {&tally.delivered, &tally.done, &tally.steps, &tally.exchanges, &tally.bytes,
        &tally.staleness, &tally.oldest, &tally.dropped}) {
    visit(*count);
  }
}

void Put(Tally& tally, Packet* packet) {
  VisitCounts(tally, [&](const std::atomic<int64_t>& count) { packet->Put(count.load()); });
  packet->Put(tally.weight.load());
}

// The request for numbers that is answered last, behind what belongs to the answer.
void Get(PacketReader* reader, Tally* tally) {
  int64_t delivered = 0;
  VisitCounts(*tally, [&](std::atomic<int64_t>& count) {
    const auto value = reader->Get<int64_t>();
    if (&count == &tally->delivered) {
      delivered = value;
    } else {
      count = value;
    }
  });
  tally->weight = reader->Get<double>();
  tally->delivered = delivered;
}

}  // namespace

RunBoard::RunBoard(SharedWindow& peers, const Rank& replica)
    : peers_(peers), replica_(replica), home_(peers.IsNear(0)) {
  // A copy is one rank's alone.
  const auto boards = static_cast<size_t>(home_ ? 1 : replica.size);
  const auto ranks = static_cast<size_t>(replica.size);
  const size_t own = home_ ? 0 : static_cast<size_t>(replica.rank);
  words_ = reinterpret_cast<Words*>(peers.Allocate(sizeof(Words) * boards)) + own;
  tallies_ = reinterpret_cast<Tally*>(peers.Allocate(sizeof(Tally) * ranks * boards)) + own * ranks;
  if (peers.post() == nullptr) return;
  kind_ = peers.post()->Serve([this](int from, std::span<const std::byte> request,
                                     Rpc::Bytes* reply) { return Answer(from, request, reply); });
}

int64_t RunBoard::TakeStep() { return home_ ? words_->taken.fetch_add(1) : Exchange(true, false); }

void RunBoard::StopAll() {
  if (words_->stop.exchange(1) == 0) Update();
}

void RunBoard::WishSnapshot() {
  if (home_) {
    words_->snapshot = 1;
  } else {
    Exchange(false, true);
  }
}

void RunBoard::Update() {
  if (!home_) Exchange(false, false);
}

void RunBoard::UpdateNowAndThen() {
  constexpr int64_t kInterval = 5'000'000;  // nanoseconds
  if (!home_ && MonotonicNs() - updated_ > kInterval) Exchange(false, false);
}

// Of rank 0.
bool RunBoard::Answer(int from, std::span<const std::byte> request, Rpc::Bytes* reply) const {
  PacketReader asked(request);
  const auto takes_step = asked.Get<int64_t>();
  if (asked.Get<int64_t>() != 0) words_->snapshot = 1;
  if (asked.Get<int64_t>() != 0) words_->stop = 1;
  Get(&asked, &tally(from));
  Packet packet;
  packet.Put(takes_step != 0 ? words_->taken.fetch_add(1) : int64_t{0});
  for (const std::atomic<int64_t>* const word :
       {&words_->taken, &words_->stop, &words_->requests, &words_->over}) {
    packet.Put(word->load());
  }
  for (int rank = 0; rank < replica_.size; ++rank) Put(tally(rank), &packet);
  *reply = packet.Take();
  return true;
}

int64_t RunBoard::Exchange(bool takes_step, bool wishes_snapshot) {
  Packet packet;
  packet.Put(int64_t{takes_step}).Put(int64_t{wishes_snapshot}).Put(words_->stop.load());
  Put(tally(replica_.rank), &packet);
  const Rpc::Bytes reply = peers_.post()->Ask(0, kind_, packet.Take());
  PacketReader told(reply);
  const auto step = told.Get<int64_t>();
  for (std::atomic<int64_t>* const word :
       {&words_->taken, &words_->stop, &words_->requests, &words_->over}) {
    *word = told.Get<int64_t>();
  }
  Tally unused{};
  for (int rank = 0; rank < replica_.size; ++rank) {
    Get(&told, rank == replica_.rank ? &unused : &tally(rank));
  }
  updated_ = MonotonicNs();
  return step;
}

}  // namespace trainer
