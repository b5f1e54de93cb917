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

// The memory that host and device share in each pass: one word per node for an input error, the
// losses, and the pass counter. Errors and losses are in one buffer, so that one copy brings them
// to the host. The device increments the counter itself, so that nothing is copied to it. At the
// end of a pass the results are copied aside for the host, and the error words are cleared.
class PassResults {
 public:
  // `losses`: the number of values of all weighted outputs.
  PassResults(const Device& device, int nodes, int64_t losses);
  ~PassResults();
  PassResults(const PassResults&) = delete;
  PassResults& operator=(const PassResults&) = delete;

  // Addresses that are valid for all passes.
  uint64_t* InputErrorFlagOf(NodeId node) const { return fault_words_ + node.number; }
  const PassInfo* pass() const { return &pass_; }

  void Begin(uint32_t pass);
  // Sets the rank of the next pass: see RunContext::virtual_rank and key.
  void SetRank(int rank, int part);
  // Marks the pass as a repetition on the same batch.
  void Repeat() { pass_.is_reevaluation = true; }

  // Returns the input error of one node and clears it. Waits for all nodes so far.
  uint64_t TakeInputError(NodeId node);

  // Enqueues copies of `losses`, f32 on the device, next to the error words. Enqueues the same work
  // each time.
  void QueueLosses(std::span<const NetOutput> losses);
  // Enqueues, after QueueLosses, the copy of error words and losses to the area that the host
  // reads, and clears the error words. With `counts`, also increments the pass counter.
  // Enqueues the same work each time.
  void Publish(bool counts);
  // Enqueues an increment of the pass counter if Publish did not do it.
  void AdvancePassCounter();
  // Called before the capture of a pass in which Publish is not the last operation. Returns the
  // event to record after Publish.
  CapturedEvent* EventAfterLosses(const GraphCapture& capture);
  // Enqueues the readback of the published results; Publish must have been enqueued, or replayed,
  // just before. `at_event`: starts at the event of EventAfterLosses, before the rest of
  // the pass is done. `counted`: the pass has incremented the pass counter. Throws kInternal if
  // Net::kMaxInFlight passes are in flight.
  void StartReadback(bool counted, bool at_event = false);
  // Waits for the oldest readback. The result is valid until that many passes are started again.
  struct Result {
    uint32_t pass = 0;
    std::span<const uint64_t> faults;  // by node
    std::span<const float> losses;     // of all weighted outputs, concatenated
  };
  Result WaitReadback();
  int NumSent() const { return static_cast<int>(sent_ - received_); }

 private:
  // The host's copy of the published results.
  struct Readback {
    Readback(const Device& device, size_t count)
        : words(count, InputErrorFlag::kNone, &device.PinnedMemory()), read(device.NewReadback()) {}
    std::pmr::vector<uint64_t> words;  // fault words, then losses
    uint32_t pass = 0;
    size_t losses = 0;
    // Declared last, so that readbacks end before `words` is freed.
    std::unique_ptr<AsyncReadback> read, read_at_mark;
    AsyncReadback* reading = nullptr;
  };
  Readback& ReadbackOf(uint32_t number) { return slots_[number % slots_.size()]; }

  const Device& device_;
  size_t nodes_;
  uint64_t* fault_words_ = nullptr;
  float* losses_ = nullptr;
  uint64_t* published_ = nullptr;
  size_t num_losses_ = 0;  // number of values that QueueLosses copied
  PassInfo pass_;
  uint32_t device_pass_ = 0;  // the pass counter's value on the device
  std::unique_ptr<CapturedEvent> mark_;
  std::vector<Readback> slots_;
  uint32_t sent_ = 0, received_ = 0;
};

}  // namespace trainer
