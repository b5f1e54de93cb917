#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "ids.h"
#include "trainer/net/net.h"

namespace trainer {

// The little memory by which host and device tell each other something in every pass: the pass's
// number one way; the other way a word per step for a fault in its inputs, and the losses. It is
// one block, so that the way back is one copy.
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
  // The same pass once more, on the same batch.
  void Repeat() { pass_.repeats = true; }

  // Waits for the steps so far. The fault word of one step, which is then clear.
  uint64_t TakeFault(StepId step);

  // Waits for the pass: the numbers of `losses`, f32 on the device, one after the other. The fault
  // words of all steps are then what TakeFault would return, in `faults`.
  std::span<const float> Read(std::span<const NetOutput> losses, std::span<const uint64_t>* faults);

 private:
  void Clear(StepId step);

  const Device& device_;
  size_t steps_;
  std::pmr::vector<uint64_t> host_;  // of the device's block: fault words, then losses
  uint64_t* fault_words_ = nullptr;
  float* losses_ = nullptr;
  PassNumber pass_;
};

}  // namespace trainer
