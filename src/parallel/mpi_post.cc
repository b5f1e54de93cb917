#include "mpi_post.h"

#include <cstring>
#include <utility>

#include "trainer/base/thread/spin.h"

namespace trainer {
namespace {

constexpr int kPostTag = 3;
constexpr int64_t kLifeInterval = 1'000'000'000;  // nanoseconds

}  // namespace

int MpiPost::Serve(Answer answer) {
  const std::lock_guard lock(answering_);
  answers_.push_back(std::move(answer));
  open_ = true;
  return static_cast<int>(answers_.size()) - 1;
}

void MpiPost::Forget() {
  const std::lock_guard lock(answering_);
  answers_.clear();
}

uint64_t MpiPost::Begin(int rank, int kind, Bytes request) {
  uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++tickets_;
    awaited_[ticket] = rank;
    outbox_.push_back(
        {rank, {Form::kQuestion, static_cast<uint32_t>(kind), ticket}, std::move(request)});
  }
  wake_();
  return ticket;
}

Rpc::Bytes MpiPost::Await(uint64_t ticket) {
  std::unique_lock lock(mutex_);
  if (const auto awaited = awaited_.find(ticket); awaited != awaited_.end()) {
    const Waiting waiting(*this, awaited->second);
    while (awaited_.contains(ticket)) {
      lock.unlock();
      check_();
      lock.lock();
      if (!awaited_.contains(ticket)) break;
      arrived_.wait_for(lock, std::chrono::milliseconds(200));
    }
  }
  auto reply = replies_.extract(ticket);
  return std::move(reply.mapped());
}

MpiPost::Waiting::Waiting(MpiPost& post, int rank) : slot_(post.slot_) {
  slot_.link_rank = rank;
  slot_.link_since = MonotonicNs();
}

MpiPost::Waiting::~Waiting() { slot_.link_since = 0; }

void MpiPost::Post(Letter letter) {
  auto begin = letter.bytes.begin();
  while (static_cast<size_t>(letter.bytes.end() - begin) > most_bytes_) {
    const auto end = begin + static_cast<std::ptrdiff_t>(most_bytes_);
    PostPart(letter.rank, {Form::kPart, 0, 0}, Bytes(begin, end));
    begin = end;
  }
  letter.bytes.erase(letter.bytes.begin(), begin);
  PostPart(letter.rank, letter.label, std::move(letter.bytes));
}

void MpiPost::PostPart(int rank, const Label& label, Bytes bytes) {
  const size_t size = bytes.size();
  bytes.resize(size + sizeof(Label));
  std::memcpy(bytes.data() + size, &label, sizeof(Label));
  mpi_.Post(std::move(bytes), rank, kPostTag);
}

// False where more parts of it follow, to which this one is kept.
bool MpiPost::IsWhole(Letter* letter) {
  const bool is_part = letter->label.form == Form::kPart;
  if (!is_part && !begun_.contains(letter->rank)) return true;
  Bytes& all = begun_[letter->rank];
  all.insert(all.end(), letter->bytes.begin(), letter->bytes.end());
  if (is_part) return false;
  letter->bytes = std::move(all);
  begun_.erase(letter->rank);
  return true;
}

void MpiPost::SendWaiting() {
  std::vector<Letter> letters;
  {
    const std::lock_guard lock(mutex_);
    letters.swap(outbox_);
  }
  for (Letter& letter : letters) Post(std::move(letter));
}

bool MpiPost::TakeAll() {
  bool any = false;
  Letter letter;
  while (mpi_.TakePosted(kPostTag, &letter.rank, &letter.bytes)) {
    const size_t size = letter.bytes.size() - sizeof(Label);
    std::memcpy(&letter.label, letter.bytes.data() + size, sizeof(Label));
    letter.bytes.resize(size);
    if (IsWhole(&letter)) Take(std::move(letter));
    letter = {};
    any = true;
  }
  return any;
}

void MpiPost::Take(Letter letter) {
  switch (letter.label.form) {
    case Form::kQuestion:
      questions_.push_back(std::move(letter));
      break;
    case Form::kReply: {
      const std::lock_guard lock(mutex_);
      awaited_.erase(letter.label.ticket);
      replies_[letter.label.ticket] = std::move(letter.bytes);
      arrived_.notify_all();
      break;
    }
    case Form::kAreYouThere: {
      // One that waits itself is kept by another.
      const bool waits = slot_.waiting_since != 0 || slot_.link_since != 0;
      Post({letter.rank, {Form::kHere, slot_.progress, waits ? 1u : 0u}, {}});
      break;
    }
    case Form::kPart:  // joined by IsWhole
      break;
    case Form::kHere:
      if (letter.rank != slot_.link_rank || slot_.link_since == 0) break;
      if (letter.label.ticket != 0 || letter.label.number != progress_) {
        slot_.link_since = MonotonicNs();
      }
      progress_ = letter.label.number;
      break;
  }
}

bool MpiPost::AnswerAll() {
  const std::lock_guard lock(answering_);
  bool any = false;
  for (auto question = questions_.begin(); question != questions_.end();) {
    Bytes reply;
    const auto kind = static_cast<size_t>(question->label.number);
    if (kind >= answers_.size() || !answers_[kind](question->rank, question->bytes, &reply)) {
      ++question;
      continue;
    }
    any = true;
    Post({question->rank, {Form::kReply, 0, question->label.ticket}, std::move(reply)});
    question = questions_.erase(question);
  }
  return any;
}

void MpiPost::AskForLife(int64_t now) {
  const int64_t since = slot_.link_since;
  if (since == 0 || now - since < kLifeInterval || now - asked_ < kLifeInterval) return;
  asked_ = now;
  Post({slot_.link_rank, {Form::kAreYouThere, 0, 0}, {}});
}

// MPI makes progress where it is asked. So it is asked often while something is under way, and else
// as seldom as an asking rank can wait: each question costs the core that computes some
// microseconds.
std::chrono::nanoseconds MpiPost::Poll() {
  using std::chrono::microseconds;
  constexpr int64_t kBusy = 5'000'000;  // nanoseconds
  const int64_t now = MonotonicNs();
  SendWaiting();
  const bool took = TakeAll(), answered = AnswerAll();
  AskForLife(now);
  const bool gone = mpi_.PostsDone();
  if (took || answered || !gone) busy_ = now;
  const bool waits = slot_.link_since != 0 || !questions_.empty();
  if (waits || !gone) return microseconds(20);
  return now - busy_ < kBusy ? microseconds(50) : microseconds(300);
}

void MpiPost::Drain() {
  const int64_t end = MonotonicNs() + kLifeInterval;
  while (!mpi_.PostsDone() && MonotonicNs() < end) TakeAll();
  TakeAll();
}

}  // namespace trainer
