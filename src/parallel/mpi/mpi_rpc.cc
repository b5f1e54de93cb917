#include "mpi/mpi_rpc.h"

#include <cstring>
#include <utility>

#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

constexpr int kRpcTag = 3;
constexpr int64_t kLifeInterval = 1'000'000'000;  // nanoseconds

}  // namespace

// Makes IsOpen return true, so that the other thread calls Poll from now on.
int MpiRpc::Register(Handler answer) {
  const std::lock_guard lock(answering_);
  handlers_.push_back(std::move(answer));
  open_ = true;
  return static_cast<int>(handlers_.size()) - 1;
}

void MpiRpc::Unregister() {
  const std::lock_guard lock(answering_);
  handlers_.clear();
}

// Only queues the request; the thread that calls MPI sends it in Poll.
uint64_t MpiRpc::CallAsync(int rank, int method, Bytes request) {
  uint64_t call = 0;
  {
    const std::lock_guard lock(mutex_);
    call = ++calls_;
    awaited_[call] = rank;
    outbox_.push_back(
        {rank, {Form::kQuestion, static_cast<uint32_t>(method), call}, std::move(request)});
  }
  wake_();
  return call;
}

// Checks for a failure five times a second. Each call may be waited for once.
Rpc::Bytes MpiRpc::Wait(uint64_t call) {
  std::unique_lock lock(mutex_);
  if (const auto awaited = awaited_.find(call); awaited != awaited_.end()) {
    const Waiting waiting(*this, awaited->second);
    while (awaited_.contains(call)) {
      lock.unlock();
      check_();
      lock.lock();
      if (!awaited_.contains(call)) break;
      arrived_.wait_for(lock, std::chrono::milliseconds(200));
    }
  }
  auto reply = replies_.extract(call);
  return std::move(reply.mapped());
}

MpiRpc::Waiting::Waiting(MpiRpc& post, int rank) : status_(post.status_) {
  status_.remote_wait_rank = rank;
  status_.remote_wait_since = MonotonicNs();
}

MpiRpc::Waiting::~Waiting() { status_.remote_wait_since = 0; }

// Sends a message, in fragments if it is too long for one.
void MpiRpc::Send(Envelope envelope) {
  auto begin = envelope.bytes.begin();
  while (static_cast<size_t>(envelope.bytes.end() - begin) > most_bytes_) {
    const auto end = begin + static_cast<std::ptrdiff_t>(most_bytes_);
    SendFragment(envelope.rank, {Form::kFragment, 0, 0}, Bytes(begin, end));
    begin = end;
  }
  envelope.bytes.erase(envelope.bytes.begin(), begin);
  SendFragment(envelope.rank, envelope.header, std::move(envelope.bytes));
}

// Sends bytes with their header in one message of MPI.
void MpiRpc::SendFragment(int rank, const Header& header, Bytes bytes) {
  const size_t size = bytes.size();
  bytes.resize(size + sizeof(Header));
  std::memcpy(bytes.data() + size, &header, sizeof(Header));
  mpi_.SendDetached(std::move(bytes), rank, kRpcTag);
}

// Returns whether the message is complete; if so, puts its earlier fragments in front. If not,
// keeps the bytes as fragments of their sender.
bool MpiRpc::JoinFragments(Envelope* envelope) {
  const bool is_fragment = envelope->header.form == Form::kFragment;
  if (!is_fragment && !begun_.contains(envelope->rank)) return true;
  Bytes& all = begun_[envelope->rank];
  all.insert(all.end(), envelope->bytes.begin(), envelope->bytes.end());
  if (is_fragment) return false;
  envelope->bytes = std::move(all);
  begun_.erase(envelope->rank);
  return true;
}

// Sends the requests that CallAsync has queued.
void MpiRpc::SendQueued() {
  std::vector<Envelope> envelopes;
  {
    const std::lock_guard lock(mutex_);
    envelopes.swap(outbox_);
  }
  for (Envelope& envelope : envelopes) Send(std::move(envelope));
}

// Receives and processes all messages that have arrived. Returns whether there were any.
bool MpiRpc::ReceiveAll() {
  bool any = false;
  Envelope envelope;
  while (mpi_.TryReceive(kRpcTag, &envelope.rank, &envelope.bytes)) {
    const size_t size = envelope.bytes.size() - sizeof(Header);
    std::memcpy(&envelope.header, envelope.bytes.data() + size, sizeof(Header));
    envelope.bytes.resize(size);
    if (JoinFragments(&envelope)) ProcessMessage(std::move(envelope));
    envelope = {};
    any = true;
  }
  return any;
}

// Processes one complete message: keeps a request for AnswerAll, gives a reply to Wait, replies to
// a ping. A pong is a sign of life if its sender has made progress since the last one, or waits for
// another rank.
void MpiRpc::ProcessMessage(Envelope envelope) {
  switch (envelope.header.form) {
    case Form::kQuestion:
      questions_.push_back(std::move(envelope));
      break;
    case Form::kReply: {
      const std::lock_guard lock(mutex_);
      awaited_.erase(envelope.header.call);
      replies_[envelope.header.call] = std::move(envelope.bytes);
      arrived_.notify_all();
      break;
    }
    case Form::kPing: {
      // The pong says whether this rank waits itself: then another rank delays it.
      const bool waits = status_.waiting_since != 0 || status_.remote_wait_since != 0;
      Send({envelope.rank, {Form::kPong, status_.progress, waits ? 1u : 0u}, {}});
      break;
    }
    case Form::kFragment:  // joined by JoinFragments
      break;
    case Form::kPong:
      if (envelope.rank != status_.remote_wait_rank || status_.remote_wait_since == 0) break;
      if (envelope.header.call != 0 || envelope.header.number != progress_) {
        status_.remote_wait_since = MonotonicNs();
      }
      progress_ = envelope.header.number;
      break;
  }
}

// Runs the handlers of all open requests and sends their replies. A request stays open if its
// handler cannot answer yet or is not registered. Returns whether any was answered.
bool MpiRpc::AnswerAll() {
  const std::lock_guard lock(answering_);
  bool any = false;
  for (auto question = questions_.begin(); question != questions_.end();) {
    Bytes reply;
    const auto method = static_cast<size_t>(question->header.number);
    if (method >= handlers_.size() || !handlers_[method](question->rank, question->bytes, &reply)) {
      ++question;
      continue;
    }
    any = true;
    Send({question->rank, {Form::kReply, 0, question->header.call}, std::move(reply)});
    question = questions_.erase(question);
  }
  return any;
}

// Pings the rank for which this one waits, at most once a second, if it has given no sign of life
// for a second.
void MpiRpc::PingAwaitedRank(int64_t now) {
  const int64_t since = status_.remote_wait_since;
  if (since == 0 || now - since < kLifeInterval || now - asked_ < kLifeInterval) return;
  asked_ = now;
  Send({status_.remote_wait_rank, {Form::kPing, 0, 0}, {}});
}

// MPI makes progress only when it is polled, and each poll costs the core that computes some
// microseconds. It is therefore polled often while something is in flight, and otherwise only as
// often as a calling rank can bear to wait.
std::chrono::nanoseconds MpiRpc::Poll() {
  using std::chrono::microseconds;
  constexpr int64_t kBusy = 5'000'000;  // nanoseconds
  const int64_t now = MonotonicNs();
  SendQueued();
  const bool took = ReceiveAll(), answered = AnswerAll();
  PingAwaitedRank(now);
  const bool gone = mpi_.SendsDone();
  if (took || answered || !gone) busy_ = now;
  const bool waits = status_.remote_wait_since != 0 || !questions_.empty();
  if (waits || !gone) return microseconds(20);
  return now - busy_ < kBusy ? microseconds(50) : microseconds(300);
}

void MpiRpc::Drain() {
  const int64_t end = MonotonicNs() + kLifeInterval;
  while (!mpi_.SendsDone() && MonotonicNs() < end) ReceiveAll();
  ReceiveAll();
}

}  // namespace trainer
