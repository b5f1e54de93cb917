#include "coordinator.h"

#include "message.h"
#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

static_assert(std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<double>::is_always_lock_free);

// Visits the counters in the order in which messages carry them.
template <class Visit>
void VisitCounts(WorkerStats& tally, const Visit& visit) {
  for (std::atomic<int64_t>* const count :
       {&tally.answered_request, &tally.done, &tally.steps, &tally.exchanges, &tally.bytes,
        &tally.staleness, &tally.max_staleness, &tally.gradients_dropped}) {
    visit(*count);
  }
}

// Appends a rank's counters to a message.
void Put(WorkerStats& tally, MessageWriter* message) {
  VisitCounts(tally, [&](const std::atomic<int64_t>& count) { message->Put(count.load()); });
  message->Put(tally.weight.load());
}

// Reads a rank's counters from a message. Stores answered_request last: a rank that sees it expects
// the other counters, and the state, to be in place.
void Get(MessageReader* reader, WorkerStats* tally) {
  int64_t answered_request = 0;
  VisitCounts(*tally, [&](std::atomic<int64_t>& count) {
    const auto value = reader->Get<int64_t>();
    if (&count == &tally->answered_request) {
      answered_request = value;
    } else {
      count = value;
    }
  });
  tally->weight = reader->Get<double>();
  tally->answered_request = answered_request;
}

}  // namespace

Coordinator::Coordinator(SharedWindow& window, const Rank& rank)
    : window_(window), rank_(rank), is_home_(window.IsSameNode(0)) {
  // On other nodes each rank has a copy of its own.
  const auto copies = static_cast<size_t>(is_home_ ? 1 : rank.size);
  const auto ranks = static_cast<size_t>(rank.size);
  const size_t own = is_home_ ? 0 : static_cast<size_t>(rank.rank);
  words_ = reinterpret_cast<Words*>(window.Allocate(sizeof(Words) * copies)) + own;
  stats_ = reinterpret_cast<WorkerStats*>(window.Allocate(sizeof(WorkerStats) * ranks * copies)) +
           own * ranks;
  if (window.rpc() == nullptr) return;
  method_ =
      window.rpc()->Register([this](int from, std::span<const std::byte> request,
                                    Rpc::Bytes* reply) { return Answer(from, request, reply); });
}

int64_t Coordinator::NextStep() {
  return is_home_ ? words_->global_step.fetch_add(1) : Exchange(true, false);
}

void Coordinator::RequestStop() {
  if (words_->stop.exchange(1) == 0) Update();
}

void Coordinator::RequestSnapshot() {
  if (is_home_) {
    words_->snapshot = 1;
  } else {
    Exchange(false, true);
  }
}

void Coordinator::Update() {
  if (!is_home_) Exchange(false, false);
}

void Coordinator::UpdateIfStale() {
  constexpr int64_t kInterval = 5'000'000;  // nanoseconds
  if (!is_home_ && MonotonicNs() - updated_ > kInterval) Exchange(false, false);
}

// Runs on rank 0: stores another rank's counters and requests, claims a step for it if it asks for
// one, and replies with the shared words and all ranks' counters.
bool Coordinator::Answer(int from, std::span<const std::byte> request, Rpc::Bytes* reply) const {
  MessageReader asked(request);
  const auto claims_step = asked.Get<int64_t>();
  if (asked.Get<int64_t>() != 0) words_->snapshot = 1;
  if (asked.Get<int64_t>() != 0) words_->stop = 1;
  Get(&asked, &stats(from));
  MessageWriter message;
  message.Put(claims_step != 0 ? words_->global_step.fetch_add(1) : int64_t{0});
  for (const std::atomic<int64_t>* const word :
       {&words_->global_step, &words_->stop, &words_->requests, &words_->finished}) {
    message.Put(word->load());
  }
  for (int rank = 0; rank < rank_.size; ++rank) Put(stats(rank), &message);
  *reply = message.Take();
  return true;
}

int64_t Coordinator::Exchange(bool claims_step, bool wants_snapshot) {
  MessageWriter message;
  message.Put(int64_t{claims_step}).Put(int64_t{wants_snapshot}).Put(words_->stop.load());
  Put(stats(rank_.rank), &message);
  const Rpc::Bytes reply = window_.rpc()->Call(0, method_, message.Take());
  MessageReader told(reply);
  const auto step = told.Get<int64_t>();
  for (std::atomic<int64_t>* const word :
       {&words_->global_step, &words_->stop, &words_->requests, &words_->finished}) {
    *word = told.Get<int64_t>();
  }
  WorkerStats unused{};
  for (int rank = 0; rank < rank_.size; ++rank) {
    Get(&told, rank == rank_.rank ? &unused : &stats(rank));
  }
  updated_ = MonotonicNs();
  return step;
}

}  // namespace trainer
