#include "shared_gradients.h"

#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

const SharedGradients::Region* SharedGradients::Find(std::span<const float> values) const {
  const auto* const begin = reinterpret_cast<const char*>(values.data());
  for (const Region& region : regions_) {
    const char* const own = region.of_ranks[static_cast<size_t>(local_)].data();
    if (begin >= own && begin + values.size_bytes() <= own + region.bytes) return &region;
  }
  return nullptr;
}

std::span<float* const> SharedGradients::Everywhere(std::span<const float> values) {
  everywhere_.clear();
  const Region* const region = Find(values);
  if (region == nullptr) return everywhere_;
  const char* const own = region->of_ranks[static_cast<size_t>(local_)].data();
  const auto offset = reinterpret_cast<const char*>(values.data()) - own;
  for (const SharedMemory& memory : region->of_ranks) {
    everywhere_.push_back(reinterpret_cast<float*>(memory.data() + offset));
  }
  return everywhere_;
}

std::span<const float> SharedGradients::BlockOf(std::span<const float> values) const {
  const Region& region = *Find(values);
  const char* const own = region.of_ranks[static_cast<size_t>(local_)].data();
  return {reinterpret_cast<const float*>(own), region.bytes / sizeof(float)};
}

// Memory is mapped in whole pages, which is aligned enough for all.
void* SharedGradients::do_allocate(size_t bytes, size_t) {
  SharedMemory own(bytes);
  RankSlot& slot = block_.slot(local_);
  slot.memory_fd = own.fd();
  slot.memory_bytes = bytes;
  meet_();
  regions_.push_back(Open(bytes, std::move(own)));
  meet_();
  Region& region = regions_.back();
  for (SharedMemory& memory : region.of_ranks) memory.CloseDescriptor();
  return region.of_ranks[static_cast<size_t>(local_)].data();
}

SharedGradients::Region SharedGradients::Open(size_t bytes, SharedMemory own) {
  Region region;
  region.bytes = bytes;
  for (int local = 0; local < block_.locals(); ++local) {
    const RankSlot& slot = block_.slot(local);
    if (slot.memory_bytes != bytes) {
      throw Error(ErrorCode::kProtocol,
                  Join("the gradients of rank ", slot.rank.load(), " need ",
                       slot.memory_bytes.load(), " bytes, but the gradients of this rank need ",
                       bytes, ": the ranks train different nets"));
    }
    region.of_ranks.push_back(
        local == local_ ? std::move(own)
                        : SharedMemory(slot.process.load(), slot.memory_fd.load(), bytes));
  }
  return region;
}

void SharedGradients::do_deallocate(void* memory, size_t, size_t) {
  regions_.remove_if([&](const Region& region) {
    return region.of_ranks[static_cast<size_t>(local_)].data() == memory;
  });
}

}  // namespace trainer
