#include "stage_channel.h"

#include <algorithm>

#include "cache_line.h"

namespace trainer {

size_t StageChannel::Bytes(size_t message, int slots) {
  return sizeof(Counters) + RoundUpToCacheLines(message) * static_cast<size_t>(slots);
}

StageChannel::StageChannel(std::byte* memory, size_t message, int slots, int from, int to,
                           SharedWindow& window, const Address& address)
    : window_(&window),
      from_(from),
      to_(to),
      slots_(static_cast<uint32_t>(slots)),
      message_(message),
      stride_(RoundUpToCacheLines(message)),
      counters_(reinterpret_cast<Counters*>(memory)),
      state_slots_(memory + sizeof(Counters)),
      address_(address) {}

bool StageChannel::Deliver(int64_t remote_number, std::span<const std::byte> message) const {
  const uint32_t number = counters_->sent.load(std::memory_order_relaxed);
  if (number != static_cast<uint32_t>(remote_number)) return false;
  if (number - counters_->taken.load() >= slots_) return false;
  std::ranges::copy(message, Slot(number));
  counters_->sent.store(number + 1);
  window_->Notify(to_);
  return true;
}

}  // namespace trainer
