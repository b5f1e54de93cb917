#include "apart.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <new>
#include <thread>

#include "trainer/base/error.h"
#include "trainer/base/spin.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr int64_t kLookInterval = 100'000'000;  // nanoseconds
constexpr int64_t kPatience = 60'000'000'000;   // likewise
constexpr std::chrono::microseconds kPause{200};

static_assert(std::atomic<int64_t>::is_always_lock_free);

}  // namespace

struct ApartStrategy::Board {
  alignas(64) std::atomic<int64_t> taken;  // steps
  alignas(64) std::atomic<uint32_t> stop;
  std::atomic<uint32_t> snapshot;   // asked for
  std::atomic<uint32_t> collected;  // requests of rank 0
};

ApartStrategy::ApartStrategy(const SolverSpec& spec) : spec_(spec) {}

void ApartStrategy::Prepare(const StrategySeat& seat) {
  seat_ = &seat;
  replica_ = seat.group.replica();
  if (seat.peers == nullptr) {
    throw Error(ErrorCode::kUnavailable, spec_.Where("strategy"),
                Join("strategy '", spec_.proto.strategy(),
                     "' needs ranks that share the memory of one machine, which these do not; take "
                     "strategy 'local', which also waits less for the network, or one machine"));
  }
  numbers_.emplace(seat);
  gone_.resize(Index(ranks()));
  board_ = new (peers().Allocate(sizeof(Board))) Board;
  tallies_ = reinterpret_cast<Tally*>(peers().Allocate(sizeof(Tally) * Index(ranks())));
  if (LaysDown()) places_ = ShareFloats(numbers_->all() * Index(ranks()));
  Share();
}

std::span<float> ApartStrategy::ShareFloats(size_t count) const {
  return {reinterpret_cast<float*>(peers().Allocate(std::max<size_t>(1, count) * sizeof(float))),
          count};
}

SharedLock* ApartStrategy::ShareLocks(size_t count) const {
  return reinterpret_cast<SharedLock*>(peers().Allocate(count * sizeof(SharedLock)));
}

void ApartStrategy::RestoreRank(const std::string& state) {
  if (state.empty()) return;  // of a rank that was gone
  std::vector<float> all(numbers_->all() + 1);
  ReadNumbers(state, all);
  TakeWeight(static_cast<double>(all.back()));
  numbers_->Write(std::span<const float>(all).first(numbers_->all()));
}

void ApartStrategy::Start(int updates) {
  if (rank() == 0) board_->taken = int64_t{workers()} * (updates + 1);
  peers().GoApart();
}

bool ApartStrategy::Stops() const { return board_->stop != 0; }

void ApartStrategy::StopAll() { board_->stop = 1; }

bool ApartStrategy::IsAnyAtWork() const {
  bool any = false;
  for (int other = 0; other < workers(); ++other) any = any || IsAtWork(other);
  return any;
}

int64_t ApartStrategy::taken() const { return board_->taken.load(std::memory_order_relaxed); }

void ApartStrategy::AfterStep(int) {
  peers().ThrowIfFailed();
  const int64_t steps = tally(rank()).steps.fetch_add(1) + 1;
  LookForDead();
  Exchange(steps);
  const uint32_t asked = board_->collected.load();
  if (asked != tally(rank()).delivered) {
    LayDown();
    tally(rank()).delivered = asked;
  }
}

int ApartStrategy::NextIteration(int iter) {
  const int64_t step = board_->taken.fetch_add(1);
  const int64_t all = int64_t{workers()} * spec_.proto.max_iter();
  if (step >= all) return spec_.proto.max_iter();
  const auto next = static_cast<int>(step / workers());
  return rank() == 0 ? LastDue(iter, next) : next;
}

// Rank 0 tests, saves and reports in the iterations that are due, though its steps may lead past
// them: it is behind the others until its next step then. `next` where nothing is due.
int ApartStrategy::LastDue(int iter, int next) const {
  const caffe::SolverParameter& solver = spec_.proto;
  const auto last = [&](int interval) {
    const int due = interval > 0 ? next / interval * interval : 0;
    return due > iter ? due : INT_MAX;
  };
  const int must = std::min(last(solver.test_interval()), last(solver.snapshot()));
  const int due = must < INT_MAX ? must : last(solver.display());
  return std::min(next, due);
}

RankWishes ApartStrategy::Agree(const RankWishes& own) {
  if (own.stop) board_->stop = 1;
  if (own.snapshot) board_->snapshot = 1;
  return {board_->stop != 0, rank() == 0 && board_->snapshot.exchange(0) != 0};
}

void ApartStrategy::End(bool stopped) {
  if (stopped) board_->stop = 1;
  LayDown();
  tally(rank()).done = 1;  // from here on nobody waits for its steps
  if (rank() != 0) return;
  board_->taken = int64_t{workers()} * spec_.proto.max_iter();
  for (int other = 1; other < ranks(); ++other) {
    AwaitRank(other, [&] { return tally(other).done != 0; });
  }
}

void ApartStrategy::LookForDead() {
  if (MonotonicNs() - looked_ < kLookInterval) return;
  looked_ = MonotonicNs();
  for (int other = 0; other < ranks(); ++other) {
    if (other == rank() || !IsAtWork(other) || !peers().HasEnded(other)) continue;
    if (tally(other).done != 0) continue;
    if (other >= workers()) {
      throw Error(ErrorCode::kPeerLost,
                  Join(peers().NameOf(other),
                       ", which held weights, has ended without an error "
                       "message. Go on from the newest snapshot (--resume=auto)"));
    }
    gone_[Index(other)] = true;
    if (rank() != 0) continue;
    LOG(WARNING) << peers().NameOf(other) << " has ended without a word after "
                 << tally(other).steps.load()
                 << " steps, and is left behind: the others make those that it would have made";
  }
}

// Returns, too, where the rank is gone, or silent for a minute.
template <class Ready>
void ApartStrategy::AwaitRank(int rank, const Ready& ready) {
  int64_t waited = 0, seen = MonotonicNs();
  while (!ready() && IsAtWork(rank)) {
    peers().ThrowIfFailed();
    LookForDead();
    std::this_thread::sleep_for(kPause);
    const int64_t now = MonotonicNs();
    waited += std::min(now - seen, kLookInterval);  // longer, this process was stopped itself
    seen = now;
    if (waited < kPatience) continue;
    LOG(WARNING) << peers().NameOf(rank) << " has been silent for a minute: it is not waited for";
    return;
  }
}

std::span<float> ApartStrategy::Place(int rank) const {
  return places_.subspan(numbers_->all() * Index(rank), numbers_->all());
}

// In a consensus the weights of this rank are those that were put aside.
void ApartStrategy::LayDown() {
  if (!LaysDown()) return;
  const std::span<float> place = Place(rank());
  numbers_->Read(place);
  if (swapped_) std::ranges::copy(own_, place.begin());
  tally(rank()).weight = OwnWeight();
}

void ApartStrategy::Collect() {
  const uint32_t asked = board_->collected.fetch_add(1) + 1;
  LayDown();
  tally(0).delivered = asked;
  for (int other = 1; other < ranks(); ++other) {
    AwaitRank(other, [&] { return tally(other).delivered.load() == asked; });
  }
}

std::span<const float> ApartStrategy::LaidDown(int rank) const {
  const bool there = tally(rank).delivered == board_->collected || tally(rank).done != 0;
  return there && !IsGone(rank) ? Place(rank) : std::span<float>();
}

void ApartStrategy::Swap(std::span<const float> weights) {
  own_.resize(weights.size());
  numbers_->Read(own_);
  numbers_->Write(weights);
  swapped_ = true;
}

void ApartStrategy::LeaveConsensus() {
  if (swapped_) numbers_->Write(own_);
  swapped_ = false;
}

std::vector<std::string> ApartStrategy::RankStates() {
  if (rank() != 0 || !LaysDown()) return {};
  Collect();
  std::vector<std::string> states;
  for (int other = 0; other < ranks(); ++other) {
    const std::span<const float> laid = LaidDown(other);
    states.emplace_back();
    if (laid.empty()) continue;
    std::vector<float> numbers(laid.begin(), laid.end());
    numbers.push_back(
        static_cast<float>(Settle(other, std::span(numbers).first(numbers_->weights()))));
    states.back() = BytesOf(numbers);
  }
  return states;
}

size_t ApartStrategy::StateBytes() const {
  return LaysDown() ? Index(ranks()) * (numbers_->all() + 1) * sizeof(float) : 0;
}

void ApartStrategy::NoteExchange(int64_t bytes, int64_t staleness) {
  Tally& own = tally(rank());
  ++own.exchanges;
  own.bytes += bytes;
  own.staleness += staleness;
  own.oldest = std::max<int64_t>(own.oldest, staleness);
}

std::string ApartStrategy::Describe() const {
  int64_t exchanges = 0, bytes = 0, staleness = 0, oldest = 0, dropped = 0;
  std::string steps;
  for (int other = 0; other < ranks(); ++other) {
    const Tally& of = tally(other);
    exchanges += of.exchanges;
    bytes += of.bytes;
    staleness += of.staleness;
    dropped += of.dropped;
    oldest = std::max<int64_t>(oldest, of.oldest);
    steps += Join(other == 0 ? "" : ", ", of.steps.load());
  }
  const auto count = static_cast<double>(std::max<int64_t>(1, exchanges));
  const double mean = static_cast<double>(staleness) / count;
  return Join("Strategy ", spec_.proto.strategy(), ": steps by rank ", steps, "; ", exchanges,
              " exchanges, ", bytes / 1024, " KiB sent; staleness ", mean,
              " steps of others on average, ", oldest, " at most",
              dropped > 0 ? Join("; ", dropped, " late gradients left out") : "");
}

}  // namespace trainer
