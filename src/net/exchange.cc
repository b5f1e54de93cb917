#include "exchange.h"

#include "trainer/backend/map.h"

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
    if (i < fault_words) words[i] = FaultWord::kNone;
    if (i == 0 && counts != nullptr) ++*counts;
  }
};

}  // namespace

PassExchange::PassExchange(const Device& device, int steps, int64_t losses)
    : device_(device), steps_(static_cast<size_t>(steps)) {
  const size_t words = steps_ + static_cast<size_t>(losses + 1) / 2;
  slots_.reserve(Net::kPassesAhead);
  for (int i = 0; i < Net::kPassesAhead; ++i) slots_.emplace_back(device, words);
  const size_t bytes = words * sizeof(uint64_t);
  fault_words_ = static_cast<uint64_t*>(device_.Allocate(2 * bytes + sizeof(uint64_t)));
  losses_ = reinterpret_cast<float*>(fault_words_ + steps_);
  laid_out_ = fault_words_ + words;
  pass_.on_device = reinterpret_cast<uint32_t*>(laid_out_ + words);
  static_assert(FaultWord::kNone == ~uint64_t{0}, "Fill writes it byte by byte");
  device_.Fill(fault_words_, 0xff, 2 * bytes);
  device_.Fill(pass_.on_device, 0, sizeof(uint32_t));
}

PassExchange::~PassExchange() { device_.Free(fault_words_); }

// A recorded pass has counted already. A number that follows the last one is counted here.
void PassExchange::Begin(uint32_t pass) {
  pass_.value = pass;
  pass_.repeats = false;
  if (pass == counted_ + 1) {
    CountUp();
  } else if (pass != counted_) {
    device_.CopyToDevice(pass_.on_device, &pass_.value, sizeof(pass));
  }
  counted_ = pass;
}

// Each replica drops other elements of its own items; rank 0 those of a run alone. The rank goes
// into the seed, so that no stream of one replica is another stream of another.
void PassExchange::SetReplica(int rank, int part) {
  pass_.replica_seed = static_cast<uint64_t>(rank) * 0x9E3779B97F4A7C15u;
  pass_.part = part;
}

uint64_t PassExchange::TakeFault(StepId step) {
  uint64_t word = FaultWord::kNone;
  device_.CopyToHost(&word, FaultWordOf(step), sizeof(word));
  if (word != FaultWord::kNone) device_.Fill(FaultWordOf(step), 0xff, sizeof(word));
  return word;
}

void PassExchange::Gather(std::span<const NetOutput> losses) {
  float* to = losses_;
  for (const NetOutput& loss : losses) {
    const int64_t count = loss.value.Count();
    if (count > 0) device_.Copy(BlockCopy(sizeof(float), 1, count, 0, 0), loss.value.data, to);
    to += count;
  }
  num_losses_ = static_cast<size_t>(to - losses_);
}

void PassExchange::LayOut(bool counts) {
  const auto losses = static_cast<int64_t>((num_losses_ + 1) / 2);
  const auto steps = static_cast<int64_t>(steps_);
  ForEach(device_, steps + losses,
          LayOutWord{fault_words_, laid_out_, steps, counts ? pass_.on_device : nullptr});
}

void PassExchange::CountUp() { ForEach(device_, 1, Increment{pass_.on_device}); }

RecordedMark* PassExchange::MarkOfLosses(const Recorder& recorder) {
  if (mark_ == nullptr) {
    mark_ = recorder.MakeMark();
    for (Slot& slot : slots_) slot.read_at_mark = mark_->MakeRead();
  }
  return mark_.get();
}

void PassExchange::Send(bool counted, bool from_mark) {
  if (NumSent() == Net::kPassesAhead) {
    throw Error(ErrorCode::kInternal, "a pass is started, and the losses before were not taken");
  }
  Slot& slot = SlotOf(sent_++);
  slot.pass = pass_.value;
  slot.losses = num_losses_;
  slot.reading = (from_mark ? slot.read_at_mark : slot.read).get();
  slot.reading->Start(slot.words.data(), laid_out_,
                      steps_ * sizeof(uint64_t) + slot.losses * sizeof(float));
  if (counted) ++counted_;
}

PassExchange::Results PassExchange::Receive() {
  if (NumSent() == 0) throw Error(ErrorCode::kInternal, "a loss of no pass is asked for");
  Slot& slot = SlotOf(received_++);
  slot.reading->Wait();
  return {slot.pass,
          {slot.words.data(), steps_},
          {reinterpret_cast<const float*>(slot.words.data() + steps_), slot.losses}};
}

}  // namespace trainer
