#include "async_strategy.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <thread>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

constexpr int64_t kLookInterval = 100'000'000;  // nanoseconds
constexpr int64_t kPatience = 60'000'000'000;   // nanoseconds
constexpr std::chrono::microseconds kPollPause{200};

}  // namespace

AsyncStrategy::AsyncStrategy(const SolverSpec& spec)
    : Strategy({.synchronous = false, .asynchronous = true, .only_own_updates = false}),
      spec_(spec) {}

// Allocates the coordinator, the slots for published states and what AllocateShared adds. Throws
// kUnavailable for ranks without a shared window.
void AsyncStrategy::Connect() {
  rank_ = context().group.rank();
  if (context().window == nullptr) {
    throw Error(ErrorCode::kUnavailable, spec_.Where("strategy"),
                Join("strategy '", spec_.proto.strategy(),
                     "' needs ranks that exchange data at any time, but these ranks cannot; start "
                     "them with --ranks or mpirun"));
  }
  state_.emplace(context());
  lost_.resize(Index(ranks()));
  coordinator_ = std::make_unique<Coordinator>(window(), rank_);
  if (HasLocalState())
    published_.emplace(window(), rank(), 0, state_->all() * Index(ranks()), ranks());
  AllocateShared();
}

// Restores weights, optimizer state and mixing weight.
void AsyncStrategy::LoadRank(const std::string& state) {
  if (state.empty()) return;  // the rank was lost when the snapshot was made
  std::vector<float> all(state_->all() + 1);
  ReadFloats(state, all);
  set_mixing_weight(static_cast<double>(all.back()));
  state_->Write(std::span<const float>(all).first(state_->all()));
}

// Starts the step counter after the first step of each worker, which no worker claims.
void AsyncStrategy::Begin(int updates) {
  if (rank() == 0) coordinator_->SetGlobalStep(int64_t{workers()} * (updates + 1));
  window().EnterAsync(rank() >= workers());
}

bool AsyncStrategy::AnyActive() const {
  bool any = false;
  for (int other = 0; other < workers(); ++other) any = any || IsActive(other);
  return any && !coordinator_->IsFinished();
}

// Claims the next step, exchanges with other ranks, and publishes this rank's state if rank 0 has
// requested it.
int AsyncStrategy::AfterStep(int iter) {
  const int next = NextIteration(iter);
  window().ThrowIfFailed();
  const int64_t steps = stats(rank()).steps.fetch_add(1) + 1;
  DetectDeadRanks();
  Exchange(steps);
  const int64_t asked = coordinator_->requests();
  if (asked == stats(rank()).answered_request) return next;
  PublishState();
  stats(rank()).answered_request = asked;
  coordinator_->Update();
  return next;
}

// Claims a global step and returns its iteration; max_iter if all steps are claimed. On rank 0, see
// LastDue.
int AsyncStrategy::NextIteration(int iter) {
  const int64_t step = coordinator_->NextStep();
  const int64_t all = int64_t{workers()} * spec_.proto.max_iter();
  if (step >= all) return spec_.proto.max_iter();
  const auto next = static_cast<int>(step / workers());
  return rank() == 0 ? LastDue(iter, next) : next;
}

// Returns the iteration with which rank 0 continues: the last one up to `next` in which a test or a
// snapshot is due, or else a display, or `next` if nothing is due. Rank 0's steps may lead past
// such iterations; it then counts as earlier than the other ranks until its next step.
int AsyncStrategy::LastDue(int iter, int next) const {
  const caffe::SolverParameter& solver = spec_.proto;
  const auto last = [&](int interval) {
    const int due = interval > 0 ? next / interval * interval : 0;
    return due > iter ? due : INT_MAX;
  };
  const int must = std::min(last(solver.test_interval()), last(solver.snapshot()));
  const int due = must < INT_MAX ? must : last(solver.display());
  return std::min(next, due);
}

// Passes this rank's requests on. All ranks see a stop; only rank 0 sees a request for a snapshot.
Strategy::Requests AsyncStrategy::Agree(const Requests& own) {
  if (own.stop) coordinator_->RequestStop();
  if (own.snapshot) coordinator_->RequestSnapshot();
  return {coordinator_->Stops(), rank() == 0 && coordinator_->TakeSnapshotRequest()};
}

// Publishes this rank's last state and marks it as done. Rank 0 then ends the steps of the others,
// waits for them and finishes the run.
void AsyncStrategy::Finish(bool stopped) {
  if (stopped) coordinator_->RequestStop();
  PublishState();
  stats(rank()).done = 1;  // no rank waits for this one's steps from here on
  coordinator_->Update();
  if (rank() != 0) return;
  coordinator_->SetGlobalStep(int64_t{workers()} * spec_.proto.max_iter());
  for (int other = 1; other < ranks(); ++other) {
    AwaitRank(other, [&] { return stats(other).done != 0; });
  }
  coordinator_->SetFinished();
}

// Waits until rank 0 has written its files. All ranks stay that long, because a rank that fails
// also ends rank 0.
void AsyncStrategy::Release() {
  if (window().rpc() != nullptr) {
    context().group.Barrier();
    return;
  }
  if (rank() == 0) coordinator_->SetReleased();
  while (!coordinator_->IsReleased() && !window().IsDead(0)) {
    PollPeers();
    std::this_thread::sleep_for(kPollPause);
  }
}

void AsyncStrategy::PollPeers() {
  window().ThrowIfFailed();
  coordinator_->UpdateIfStale();
  DetectDeadRanks();
}

// Marks ranks whose processes have ended as lost. Looks at most every 100 ms, and only on this
// node. Throws kPeerLost if a dedicated server has ended, because it alone has its weights.
void AsyncStrategy::DetectDeadRanks() {
  if (MonotonicNs() - looked_ < kLookInterval) return;
  looked_ = MonotonicNs();
  for (int other = 0; other < ranks(); ++other) {
    if (other == rank() || !IsActive(other) || !window().IsDead(other)) continue;
    if (stats(other).done != 0) continue;
    if (other >= workers()) {
      throw Error(ErrorCode::kPeerLost,
                  Join(window().NameOf(other),
                       ", which stored weights, has ended without an error message. Resume from "
                       "the newest snapshot (--resume=auto)"));
    }
    lost_[Index(other)] = true;
    if (rank() != 0) continue;
    LOG(WARNING) << window().NameOf(other) << " has ended without an error message after "
                 << stats(other).steps.load()
                 << " steps; the other ranks continue and take over its remaining steps";
  }
}

// Waits until ready(), but no longer than until the rank is lost or was silent for a minute.
template <class Ready>
void AsyncStrategy::AwaitRank(int rank, const Ready& ready) {
  int64_t waited = 0, seen = MonotonicNs();
  while (!ready() && IsActive(rank)) {
    PollPeers();
    std::this_thread::sleep_for(kPollPause);
    const int64_t now = MonotonicNs();
    waited += std::min(now - seen, kLookInterval);  // longer: this process was suspended
    seen = now;
    if (waited < kPatience) continue;
    LOG(WARNING) << window().NameOf(rank)
                 << " has been silent for a minute: the other ranks no longer wait for it";
    return;
  }
}

std::span<float> AsyncStrategy::Slot(int rank) const {
  return published_->floats().subspan(state_->all() * Index(rank), state_->all());
}

// Stores this rank's state for rank 0. During a consensus, which only rank 0 enters, publishes its
// own weights.
void AsyncStrategy::PublishState() {
  if (!HasLocalState()) return;
  stats(rank()).weight = mixing_weight();
  published_->Store(rank(), *state_);
  if (!own_weights().empty()) std::ranges::copy(own_weights(), Slot(rank()).begin());
}

void AsyncStrategy::Collect() {
  const int64_t asked = coordinator_->RequestStates();
  PublishState();
  stats(0).answered_request = asked;
  for (int other = 1; other < ranks(); ++other) {
    AwaitRank(other, [&] { return stats(other).answered_request == asked; });
  }
}

std::span<const float> AsyncStrategy::PublishedState(int rank) const {
  const bool there =
      stats(rank).answered_request == coordinator_->requests() || stats(rank).done != 0;
  return there && !IsLost(rank) ? Slot(rank) : std::span<float>();
}

// Returns the published state of each rank, with the messages to it that are in flight, and its
// mixing weight. A lost rank has an empty record.
std::vector<std::string> AsyncStrategy::SaveRanks() {
  if (rank() != 0 || !HasLocalState()) return {};
  Collect();
  std::vector<std::string> states;
  for (int other = 0; other < ranks(); ++other) {
    const std::span<const float> laid = PublishedState(other);
    states.emplace_back();
    if (laid.empty()) continue;
    std::vector<float> numbers(laid.begin(), laid.end());
    numbers.push_back(
        static_cast<float>(AddInFlight(other, std::span(numbers).first(state_->weights()))));
    states.back() = BytesOf(numbers);
  }
  return states;
}

size_t AsyncStrategy::MaxStateBytes() const {
  return HasLocalState() ? Index(ranks()) * (state_->all() + 1) * sizeof(float) : 0;
}

void AsyncStrategy::CountExchange(int64_t bytes, int64_t staleness) {
  WorkerStats& own = stats(rank());
  ++own.exchanges;
  own.bytes += bytes;
  own.staleness += staleness;
  own.max_staleness = std::max<int64_t>(own.max_staleness, staleness);
}

std::string AsyncStrategy::Describe() const {
  int64_t exchanges = 0, bytes = 0, staleness = 0, max_staleness = 0, gradients_dropped = 0;
  std::string steps;
  for (int other = 0; other < ranks(); ++other) {
    const WorkerStats& of = stats(other);
    exchanges += of.exchanges;
    bytes += of.bytes;
    staleness += of.staleness;
    gradients_dropped += of.gradients_dropped;
    max_staleness = std::max<int64_t>(max_staleness, of.max_staleness);
    steps += Join(other == 0 ? "" : ", ", of.steps.load());
  }
  const auto count = static_cast<double>(std::max<int64_t>(1, exchanges));
  const double mean = static_cast<double>(staleness) / count;
  return Join(
      "Strategy ", spec_.proto.strategy(), ": steps by rank ", steps, "; ", exchanges,
      " exchanges, ", bytes / 1024, " KiB sent; staleness ", mean,
      " steps of other ranks on average, ", max_staleness, " at most",
      gradients_dropped > 0 ? Join("; ", gradients_dropped, " late gradients dropped") : "");
}

}  // namespace trainer
