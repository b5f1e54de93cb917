#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "ids.h"
#include "trainer/backend/recording.h"
#include "trainer/net/net.h"

namespace trainer {

// The little memory by which host and device tell each other something in every pass: the pass's
// number one way; the other way a word per step for a fault in its inputs, and the losses. It is
// one block, so that the way back is one copy, and nothing goes up: the device counts by itself.
// The block is laid out for the host when a pass is over, and is clear for the next pass then.
class PassExchange {
 public:
  // `losses`: how many numbers all weighted outputs have.
  PassExchange(const Device& device, int steps, int64_t losses);
  ~PassExchange();
  PassExchange(const PassExchange&) = delete;
  PassExchange& operator=(const PassExchange&) = delete;

  // Holds for all passes.
  uint64_t* FaultWordOf(StepId step) const { return fault_words_ + step.number; }
  const PassNumber* pass() const { return &pass_; }

  void Begin(uint32_t pass);
  // Whose pass the next one is: see RunContext::part and key.
  void SetReplica(int rank, int part);
  // The same pass once more, on the same batch.
  void Repeat() { pass_.repeats = true; }

  // Waits for the steps so far. The fault word of one step, which is then clear.
  uint64_t TakeFault(StepId step);

  // Queues copies of `losses`, f32 on the device, to beside the fault words. The same in each pass.
  void Gather(std::span<const NetOutput> losses);
  // Queues, behind Gather, that fault words and losses are laid out for the host and the fault
  // words cleared; the pass's number becomes that of the next one where it `counts`. The same in
  // each pass.
  void LayOut(bool counts);
  // Queues that the pass's number becomes that of the next one, where LayOut did not. The same in
  // each pass.
  void CountUp();
  // Before a pass is recorded in which LayOut comes before the end: the mark to set behind it.
  RecordedMark* MarkOfLosses(const Recorder& recorder);
  // Queues the way to the host, behind LayOut, which was queued just now, or recorded and played
  // again; `from_mark`: from where the mark was set in it, before the rest is done. Throws
  // kInternal where Net::kPassesAhead passes are on their way.
  void Send(bool counted, bool from_mark = false);
  // Waits for the oldest pass that was sent. Holds until as many passes were sent again.
  struct Results {
    uint32_t pass = 0;
    std::span<const uint64_t> faults;  // by step
    std::span<const float> losses;     // one after the other
  };
  Results Receive();
  int NumSent() const { return static_cast<int>(sent_ - received_); }

 private:
  // The host's copy of the device's block.
  struct Slot {
    Slot(const Device& device, size_t count)
        : words(count, FaultWord::kNone, &device.HostMemory()), read(device.MakeHostRead()) {}
    std::pmr::vector<uint64_t> words;  // fault words, then losses
    uint32_t pass = 0;
    size_t losses = 0;
    // Last: they end before the words do.
    std::unique_ptr<HostRead> read, read_at_mark;
    HostRead* reading = nullptr;
  };
  Slot& SlotOf(uint32_t number) { return slots_[number % slots_.size()]; }

  const Device& device_;
  size_t steps_;
  uint64_t* fault_words_ = nullptr;
  float* losses_ = nullptr;
  uint64_t* laid_out_ = nullptr;
  size_t num_losses_ = 0;  // that were gathered
  PassNumber pass_;
  uint32_t counted_ = 0;  // the number that the device has
  std::unique_ptr<RecordedMark> mark_;
  std::vector<Slot> slots_;
  uint32_t sent_ = 0, received_ = 0;
};

}  // namespace trainer
