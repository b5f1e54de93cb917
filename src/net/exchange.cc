#include "exchange.h"

namespace trainer {

PassExchange::PassExchange(const Device& device, int steps, int64_t losses)
    : device_(device),
      steps_(static_cast<size_t>(steps)),
      host_(steps_ + static_cast<size_t>(losses + 1) / 2, FaultWord::kNone, &device.HostMemory()) {
  const size_t bytes = host_.size() * sizeof(uint64_t);
  fault_words_ = static_cast<uint64_t*>(device_.Allocate(bytes + sizeof(uint64_t)));
  losses_ = reinterpret_cast<float*>(fault_words_ + steps_);
  pass_.on_device = reinterpret_cast<uint32_t*>(fault_words_ + host_.size());
  device_.CopyToDevice(fault_words_, host_.data(), bytes);
}

PassExchange::~PassExchange() { device_.Free(fault_words_); }

void PassExchange::Begin(uint32_t pass) {
  pass_.value = pass;
  pass_.repeats = false;
  device_.CopyToDevice(pass_.on_device, &pass_.value, sizeof(pass));
}

void PassExchange::Clear(StepId step) {
  device_.CopyToDevice(FaultWordOf(step), &FaultWord::kNone, sizeof(uint64_t));
}

uint64_t PassExchange::TakeFault(StepId step) {
  uint64_t word = FaultWord::kNone;
  device_.CopyToHost(&word, FaultWordOf(step), sizeof(word));
  if (word != FaultWord::kNone) Clear(step);
  return word;
}

std::span<const float> PassExchange::Read(std::span<const NetOutput> losses,
                                          std::span<const uint64_t>* faults) {
  float* to = losses_;
  for (const NetOutput& loss : losses) {
    const int64_t count = loss.value.Count();
    if (count > 0) device_.Copy(BlockCopy(sizeof(float), 1, count, 0, 0), loss.value.data, to);
    to += count;
  }
  const auto count = static_cast<size_t>(to - losses_);
  device_.CopyToHost(host_.data(), fault_words_, steps_ * sizeof(uint64_t) + count * sizeof(float));
  for (size_t s = 0; s < steps_; ++s) {
    if (host_[s] != FaultWord::kNone) Clear(StepId(s));
  }
  *faults = {host_.data(), steps_};
  return {reinterpret_cast<const float*>(host_.data() + steps_), count};
}

}  // namespace trainer
