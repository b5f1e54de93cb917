#include "execute/pass_results.h"

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

struct Increment {
  uint32_t* pass;
  HD void operator()(int64_t) const { ++*pass; }
};

struct LayOutWord {
  uint64_t *words, *to;
  int64_t fault_words;
  uint32_t* counts;  // or null
  HD void operator()(int64_t i) const {
    to[i] = words[i];
    if (i < fault_words) words[i] = InputErrorFlag::kNone;
    if (i == 0 && counts != nullptr) ++*counts;
  }
};

}  // namespace

PassResults::PassResults(const Device& device, int nodes, int64_t losses)
    : device_(device), nodes_(static_cast<size_t>(nodes)) {
  const size_t words = nodes_ + static_cast<size_t>(losses + 1) / 2;
  slots_.reserve(Net::kMaxInFlight);
  for (int i = 0; i < Net::kMaxInFlight; ++i) slots_.emplace_back(device, words);
  const size_t bytes = words * sizeof(uint64_t);
  fault_words_ = static_cast<uint64_t*>(device_.Allocate(2 * bytes + sizeof(uint64_t)));
  losses_ = reinterpret_cast<float*>(fault_words_ + nodes_);
  published_ = fault_words_ + words;
  pass_.on_device = reinterpret_cast<uint32_t*>(published_ + words);
  static_assert(InputErrorFlag::kNone == ~uint64_t{0}, "Fill writes it byte by byte");
  device_.Memset(fault_words_, 0xff, 2 * bytes);
  device_.Memset(pass_.on_device, 0, sizeof(uint32_t));
}

PassResults::~PassResults() { device_.Free(fault_words_); }

// A replayed pass has already incremented the counter on the device. The next number in sequence is
// counted there as well, which saves a copy.
void PassResults::Begin(uint32_t pass) {
  pass_.value = pass;
  pass_.is_reevaluation = false;
  if (pass == device_pass_ + 1) {
    AdvancePassCounter();
  } else if (pass != device_pass_) {
    device_.CopyToDevice(pass_.on_device, &pass_.value, sizeof(pass));
  }
  device_pass_ = pass;
}

// Ranks must not use the same random numbers, and rank 0 must draw as in a run with one rank. The
// rank changes the key, so that no stream of one rank equals another stream of another rank.
void PassResults::SetRank(int rank, int part) {
  pass_.rank_rng_salt = static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15u;
  pass_.virtual_rank = part;
}

uint64_t PassResults::TakeInputError(NodeId node) {
  uint64_t word = InputErrorFlag::kNone;
  device_.CopyToHost(&word, InputErrorFlagOf(node), sizeof(word));
  if (word != InputErrorFlag::kNone) device_.Memset(InputErrorFlagOf(node), 0xff, sizeof(word));
  return word;
}

void PassResults::QueueLosses(std::span<const NetOutput> losses) {
  float* to = losses_;
  for (const NetOutput& loss : losses) {
    const int64_t count = loss.value.Count();
    if (count > 0) device_.Copy(BlockCopy(sizeof(float), 1, count, 0, 0), loss.value.data, to);
    to += count;
  }
  num_losses_ = static_cast<size_t>(to - losses_);
}

void PassResults::Publish(bool counts) {
  const auto losses = static_cast<int64_t>((num_losses_ + 1) / 2);
  const auto nodes = static_cast<int64_t>(nodes_);
  ForEach(device_, nodes + losses,
          LayOutWord{fault_words_, published_, nodes, counts ? pass_.on_device : nullptr});
}

void PassResults::AdvancePassCounter() { ForEach(device_, 1, Increment{pass_.on_device}); }

CapturedEvent* PassResults::EventAfterLosses(const GraphCapture& capture) {
  if (mark_ == nullptr) {
    mark_ = capture.NewEvent();
    for (Readback& slot : slots_) slot.read_at_mark = mark_->NewReadback();
  }
  return mark_.get();
}

void PassResults::StartReadback(bool counted, bool at_event) {
  if (NumSent() == Net::kMaxInFlight) {
    throw Error(ErrorCode::kInternal, "a pass is started, and the losses before were not taken");
  }
  Readback& slot = ReadbackOf(sent_++);
  slot.pass = pass_.value;
  slot.losses = num_losses_;
  slot.reading = (at_event ? slot.read_at_mark : slot.read).get();
  slot.reading->Start(slot.words.data(), published_,
                      nodes_ * sizeof(uint64_t) + slot.losses * sizeof(float));
  if (counted) ++device_pass_;
}

PassResults::Result PassResults::WaitReadback() {
  if (NumSent() == 0) throw Error(ErrorCode::kInternal, "a loss of no pass is asked for");
  Readback& slot = ReadbackOf(received_++);
  slot.reading->Wait();
  return {slot.pass,
          {slot.words.data(), nodes_},
          {reinterpret_cast<const float*>(slot.words.data() + nodes_), slot.losses}};
}

}  // namespace trainer
