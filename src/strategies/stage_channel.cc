#include "stage_channel.h"

#include <algorithm>

namespace trainer {
namespace {

constexpr size_t kLine = 64;

// Rounds up to whole cache lines, so that sender and receiver do not share one.
size_t Rounded(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

size_t StageChannel::Bytes(size_t message, int slots) {
  return sizeof(Counters) + Rounded(message) * static_cast<size_t>(slots);
}

StageChannel::StageChannel(std::byte* memory, size_t message, int slots, int from, int to,
                           SharedWindow& window, const Address& address)
    : window_(&window),
      from_(from),
      to_(to),
      slots_(static_cast<uint32_t>(slots)),
      message_(message),
      stride_(Rounded(message)),
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
