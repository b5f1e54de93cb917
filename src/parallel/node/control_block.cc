#include "node/control_block.h"

#include <utility>

#include "node/futex.h"

namespace trainer {
namespace {

constexpr size_t kHeader = 64;

static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

}  // namespace

size_t ControlBlock::Bytes(int local_size) {
  const auto ranks = static_cast<size_t>(local_size);
  return kHeader + ranks * sizeof(RankStatus) + (ranks + 1) * 2 * kEagerBuffer * sizeof(float);
}

// The memory is zero, which is the initial state of all its parts.
ControlBlock::ControlBlock(SharedSegment memory, int local_size)
    : memory_(std::move(memory)),
      local_size_(local_size),
      failure_(reinterpret_cast<std::atomic<uint32_t>*>(memory_.data())),
      statuses_(reinterpret_cast<RankStatus*>(memory_.data() + kHeader)),
      eager_buffers_(reinterpret_cast<float*>(statuses_ + local_size)) {}

Failure ControlBlock::failure() const {
  const uint32_t word = failure_->load(std::memory_order_relaxed);
  return word == 0 ? Failure{}
                   : Failure{static_cast<int>(word & 0xff), static_cast<int>(word >> 8)};
}

bool ControlBlock::ReportFailure(const Failure& failure) const {
  const auto word = static_cast<uint32_t>(failure.code) | static_cast<uint32_t>(failure.rank) << 8;
  uint32_t none = 0;
  const bool first = failure_->compare_exchange_strong(none, word);
  FutexWakeAll(*failure_);
  for (int local = 0; local < local_size_; ++local) Notify(local);
  return first;
}

void ControlBlock::Notify(int local) const {
  status(local).doorbell.fetch_add(1);
  FutexWakeAll(status(local).doorbell);
}

}  // namespace trainer
