#include "stage_channel.h"

#include <algorithm>

namespace trainer {
namespace {

constexpr size_t kLine = 64;

size_t Rounded(size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

size_t StageChannel::Bytes(size_t message, int slots) {
  return sizeof(Board) + Rounded(message) * static_cast<size_t>(slots);
}

StageChannel::StageChannel(std::byte* memory, size_t message, int slots, int from, int to,
                           SharedWindow& peers, const Address& address)
    : peers_(&peers),
      from_(from),
      to_(to),
      slots_(static_cast<uint32_t>(slots)),
      message_(message),
      stride_(Rounded(message)),
      board_(reinterpret_cast<Board*>(memory)),
      places_(memory + sizeof(Board)),
      address_(address) {}

bool StageChannel::Deliver(int64_t posted, std::span<const std::byte> message) const {
  const uint32_t number = board_->sent.load(std::memory_order_relaxed);
  if (number != static_cast<uint32_t>(posted)) return false;
  if (number - board_->taken.load() >= slots_) return false;
  std::ranges::copy(message, Place(number));
  board_->sent.store(number + 1);
  peers_->Ring(to_);
  return true;
}

}  // namespace trainer
