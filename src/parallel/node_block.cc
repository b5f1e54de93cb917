#include "node_block.h"

#include <utility>

#include "futex.h"

namespace trainer {
namespace {

constexpr size_t kHeader = 64;

static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

}  // namespace

size_t NodeBlock::Bytes(int locals) {
  const auto ranks = static_cast<size_t>(locals);
  return kHeader + ranks * sizeof(RankSlot) + (ranks + 1) * 2 * kMailbox * sizeof(float);
}

// All zeros is what each of these begins with.
NodeBlock::NodeBlock(SharedMemory memory, int locals)
    : memory_(std::move(memory)),
      locals_(locals),
      failure_(reinterpret_cast<std::atomic<uint32_t>*>(memory_.data())),
      slots_(reinterpret_cast<RankSlot*>(memory_.data() + kHeader)),
      mailboxes_(reinterpret_cast<float*>(slots_ + locals)) {}

Failure NodeBlock::failure() const {
  const uint32_t word = failure_->load(std::memory_order_relaxed);
  return word == 0 ? Failure{}
                   : Failure{static_cast<int>(word & 0xff), static_cast<int>(word >> 8)};
}

bool NodeBlock::Claim(const Failure& failure) const {
  const auto word = static_cast<uint32_t>(failure.code) | static_cast<uint32_t>(failure.rank) << 8;
  uint32_t none = 0;
  const bool first = failure_->compare_exchange_strong(none, word);
  FutexWakeAll(*failure_);
  for (int local = 0; local < locals_; ++local) Ring(local);
  return first;
}

void NodeBlock::Ring(int local) const {
  slot(local).bell.fetch_add(1);
  FutexWakeAll(slot(local).bell);
}

}  // namespace trainer
