#include "apart.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <thread>

#include "packet.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

constexpr int64_t kLookInterval = 100'000'000;  // nanoseconds
constexpr int64_t kPatience = 60'000'000'000;   // likewise
constexpr std::chrono::microseconds kApartPause{200};

}  // namespace

ApartStrategy::ApartStrategy(const SolverSpec& spec) : spec_(spec) {}

void ApartStrategy::Prepare(const StrategySeat& seat) {
  seat_ = &seat;
  replica_ = seat.group.replica();
  if (seat.peers == nullptr) {
    throw Error(ErrorCode::kUnavailable, spec_.Where("strategy"),
                Join("strategy '", spec_.proto.strategy(),
                     "' needs ranks that exchange data at any time, but these ranks cannot; start "
                     "them with --ranks or mpirun"));
  }
  numbers_.emplace(seat);
  gone_.resize(Index(ranks()));
  board_ = std::make_unique<RunBoard>(peers(), replica_);
  if (LaysDown()) places_ = ShareFloats(peers().IsNear(0) ? numbers_->all() * Index(ranks()) : 0);
  if (LaysDown() && peers().post() != nullptr) {
    kind_ = peers().post()->Serve([this](int from, std::span<const std::byte> request, auto*) {
      PacketReader reader(request);
      const auto begin = reader.Get<int64_t>();
      std::ranges::copy(reader.Floats(), Place(from).begin() + begin);
      return true;
    });
  }
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
  if (rank() == 0) board_->SetTaken(int64_t{workers()} * (updates + 1));
  peers().GoApart(rank() >= workers());
}

bool ApartStrategy::IsAnyAtWork() const {
  bool any = false;
  for (int other = 0; other < workers(); ++other) any = any || IsAtWork(other);
  return any && !board_->IsOver();
}

void ApartStrategy::AfterStep(int) {
  peers().ThrowIfFailed();
  const int64_t steps = tally(rank()).steps.fetch_add(1) + 1;
  LookForDead();
  Exchange(steps);
  const int64_t asked = board_->requests();
  if (asked == tally(rank()).delivered) return;
  LayDown();
  tally(rank()).delivered = asked;
  board_->Update();
}

int ApartStrategy::NextIteration(int iter) {
  const int64_t step = board_->TakeStep();
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
  if (own.stop) board_->StopAll();
  if (own.snapshot) board_->WishSnapshot();
  return {board_->Stops(), rank() == 0 && board_->TakeSnapshotWish()};
}

void ApartStrategy::End(bool stopped) {
  if (stopped) board_->StopAll();
  LayDown();
  tally(rank()).done = 1;  // from here on nobody waits for its steps
  board_->Update();
  if (rank() != 0) return;
  board_->SetTaken(int64_t{workers()} * spec_.proto.max_iter());
  for (int other = 1; other < ranks(); ++other) {
    AwaitRank(other, [&] { return tally(other).done != 0; });
  }
  board_->SetOver();
}

// A rank that ends with an error ends rank 0, too: none may before it has written.
void ApartStrategy::Part() {
  if (peers().post() != nullptr) {
    float here = 1;
    seat_->group.Sum({&here, 1});
    return;
  }
  if (rank() == 0) board_->SetParted();
  while (!board_->IsParted() && !peers().HasEnded(0)) {
    LookAround();
    std::this_thread::sleep_for(kApartPause);
  }
}

void ApartStrategy::LookAround() {
  peers().ThrowIfFailed();
  board_->UpdateNowAndThen();
  LookForDead();
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
                       ", which stored weights, has ended without an error message. Resume from "
                       "the newest snapshot (--resume=auto)"));
    }
    gone_[Index(other)] = true;
    if (rank() != 0) continue;
    LOG(WARNING) << peers().NameOf(other) << " has ended without an error message after "
                 << tally(other).steps.load()
                 << " steps; the other ranks continue and take over its remaining steps";
  }
}

// Returns, too, where the rank is gone, or silent for a minute.
template <class Ready>
void ApartStrategy::AwaitRank(int rank, const Ready& ready) {
  int64_t waited = 0, seen = MonotonicNs();
  while (!ready() && IsAtWork(rank)) {
    LookAround();
    std::this_thread::sleep_for(kApartPause);
    const int64_t now = MonotonicNs();
    waited += std::min(now - seen, kLookInterval);  // longer, this process was stopped itself
    seen = now;
    if (waited < kPatience) continue;
    LOG(WARNING) << peers().NameOf(rank)
                 << " has been silent for a minute: the other ranks no longer wait for it";
    return;
  }
}

std::span<float> ApartStrategy::Place(int rank) const {
  return places_.subspan(numbers_->all() * Index(rank), numbers_->all());
}

// In a consensus the weights of this rank are those that were put aside.
void ApartStrategy::LayDown() {
  if (!LaysDown()) return;
  tally(rank()).weight = OwnWeight();
  if (!peers().IsNear(0)) return SendNumbers();
  const std::span<float> place = Place(rank());
  numbers_->Read(place);
  if (swapped_) std::ranges::copy(own_, place.begin());
}

// Of a rank of another machine, which makes no consensus.
void ApartStrategy::SendNumbers() {
  VisitMessages(numbers_->all(), [&](size_t begin, size_t end) {
    Packet packet;
    packet.Put(static_cast<int64_t>(begin));
    numbers_->Read(packet.Floats(end - begin), begin);
    peers().post()->Ask(0, kind_, packet.Take());
  });
}

void ApartStrategy::Collect() {
  const int64_t asked = board_->RequestNumbers();
  LayDown();
  tally(0).delivered = asked;
  for (int other = 1; other < ranks(); ++other) {
    AwaitRank(other, [&] { return tally(other).delivered == asked; });
  }
}

std::span<const float> ApartStrategy::LaidDown(int rank) const {
  const bool there = tally(rank).delivered == board_->requests() || tally(rank).done != 0;
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
              " steps of other ranks on average, ", oldest, " at most",
              dropped > 0 ? Join("; ", dropped, " late gradients dropped") : "");
}

}  // namespace trainer
