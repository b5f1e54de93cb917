#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "trainer/backend/device/graph_capture.h"
#include "trainer/net/graph.h"
#include "trainer/net/net.h"

namespace trainer {

// The little memory by which host and device tell each other something in every pass: the pass's
// number one way; the other way a word per node for a fault in its inputs, and the losses. It is
// one buffer, so that the way back is one copy, and nothing goes up: the device counts by itself.
// The buffer is laid out for the host when a pass is over, and is clear for the next pass then.
class PassResults {
 public:
  // `losses`: how many numbers all weighted outputs have.
  PassResults(const Device& device, int nodes, int64_t losses);
  ~PassResults();
  PassResults(const PassResults&) = delete;
  PassResults& operator=(const PassResults&) = delete;

  // Holds for all passes.
  uint64_t* InputErrorFlagOf(NodeId node) const { return fault_words_ + node.number; }
  const PassInfo* pass() const { return &pass_; }

  void Begin(uint32_t pass);
  // Whose pass the next one is: see RunContext::virtual_rank and key.
  void SetRank(int rank, int part);
  // The same pass once more, on the same batch.
  void Repeat() { pass_.is_reevaluation = true; }

  // Waits for the nodes so far. The fault word of one node, which is then clear.
  uint64_t TakeInputError(NodeId node);

  // Queues copies of `losses`, f32 on the device, to beside the fault words. The same in each pass.
  void QueueLosses(std::span<const NetOutput> losses);
  // Queues, behind Gather, that fault words and losses are laid out for the host and the fault
  // words cleared; the pass's number becomes that of the next one where it `counts`. The same in
  // each pass.
  void Publish(bool counts);
  // Queues that the pass's number becomes that of the next one, where LayOut did not. The same in
  // each pass.
  void AdvancePassCounter();
  // Before a pass is recorded in which LayOut comes before the end: the mark to set behind it.
  CapturedEvent* EventAfterLosses(const GraphCapture& capture);
  // Queues the way to the host, behind LayOut, which was queued just now, or recorded and played
  // again; `at_event`: from where the mark was set in it, before the rest is done. Throws
  // kInternal where Net::kMaxInFlight passes are on their way.
  void StartReadback(bool counted, bool at_event = false);
  // Waits for the oldest pass that was sent. Holds until as many passes were sent again.
  struct Result {
    uint32_t pass = 0;
    std::span<const uint64_t> faults;  // by node
    std::span<const float> losses;     // one after the other
  };
  Result WaitReadback();
  int NumSent() const { return static_cast<int>(sent_ - received_); }

 private:
  // The host's copy of the device's buffer.
  struct Readback {
    Readback(const Device& device, size_t count)
        : words(count, InputErrorFlag::kNone, &device.PinnedMemory()), read(device.NewReadback()) {}
    std::pmr::vector<uint64_t> words;  // fault words, then losses
    uint32_t pass = 0;
    size_t losses = 0;
    // Last: they end before the words do.
    std::unique_ptr<AsyncReadback> read, read_at_mark;
    AsyncReadback* reading = nullptr;
  };
  Readback& ReadbackOf(uint32_t number) { return slots_[number % slots_.size()]; }

  const Device& device_;
  size_t nodes_;
  uint64_t* fault_words_ = nullptr;
  float* losses_ = nullptr;
  uint64_t* published_ = nullptr;
  size_t num_losses_ = 0;  // that were gathered
  PassInfo pass_;
  uint32_t device_pass_ = 0;  // the number that the device has
  std::unique_ptr<CapturedEvent> mark_;
  std::vector<Readback> slots_;
  uint32_t sent_ = 0, received_ = 0;
};

}  // namespace trainer
