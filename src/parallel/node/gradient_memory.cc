#include "node/gradient_memory.h"

#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

const GradientMemory::Region* GradientMemory::FindRegion(std::span<const float> values) const {
  const auto* const begin = reinterpret_cast<const char*>(values.data());
  for (const Region& region : regions_) {
    const char* const own = region.of_ranks[static_cast<size_t>(local_)].data();
    if (begin >= own && begin + values.size_bytes() <= own + region.bytes) return &region;
  }
  return nullptr;
}

std::span<float* const> GradientMemory::PeerViews(std::span<const float> values) {
  everywhere_.clear();
  const Region* const region = FindRegion(values);
  if (region == nullptr) return everywhere_;
  const char* const own = region->of_ranks[static_cast<size_t>(local_)].data();
  const auto offset = reinterpret_cast<const char*>(values.data()) - own;
  for (const SharedSegment& memory : region->of_ranks) {
    everywhere_.push_back(reinterpret_cast<float*>(memory.data() + offset));
  }
  return everywhere_;
}

std::span<const float> GradientMemory::RegionOf(std::span<const float> values) const {
  const Region& region = *FindRegion(values);
  const char* const own = region.of_ranks[static_cast<size_t>(local_)].data();
  return {reinterpret_cast<const float*>(own), region.bytes / sizeof(float)};
}

// Announces this rank's block in the control block and maps the blocks of the other ranks between
// two barriers. Memory is mapped in whole pages, which satisfies any alignment.
void* GradientMemory::do_allocate(size_t bytes, size_t) {
  SharedSegment own(bytes);
  RankStatus& status = block_.status(local_);
  status.memory_fd = own.fd();
  status.memory_bytes = bytes;
  meet_();
  regions_.push_back(MapBlocks(bytes, std::move(own)));
  meet_();
  Region& region = regions_.back();
  for (SharedSegment& memory : region.of_ranks) memory.CloseDescriptor();
  return region.of_ranks[static_cast<size_t>(local_)].data();
}

GradientMemory::Region GradientMemory::MapBlocks(size_t bytes, SharedSegment own) {
  Region region;
  region.bytes = bytes;
  for (int local = 0; local < block_.local_size(); ++local) {
    const RankStatus& status = block_.status(local);
    if (status.memory_bytes != bytes) {
      throw Error(ErrorCode::kProtocol,
                  Join("the gradients of rank ", status.rank.load(), " need ",
                       status.memory_bytes.load(), " bytes, but the gradients of this rank need ",
                       bytes, ": the ranks train different nets"));
    }
    region.of_ranks.push_back(
        local == local_ ? std::move(own)
                        : SharedSegment(status.process.load(), status.memory_fd.load(), bytes));
  }
  return region;
}

void GradientMemory::do_deallocate(void* memory, size_t, size_t) {
  regions_.remove_if([&](const Region& region) {
    return region.of_ranks[static_cast<size_t>(local_)].data() == memory;
  });
}

}  // namespace trainer
