#pragma once
// Memory for gradients that all ranks of a node map, so that an all-reduce is one pass over all of
// them, without a copy.

#include <functional>
#include <list>
#include <memory_resource>
#include <span>
#include <vector>

#include "node/control_block.h"

namespace trainer {

// Allocation is collective: all ranks allocate the same blocks in the same order. Throws kProtocol
// if another rank asks for another size.
class GradientMemory final : public std::pmr::memory_resource {
 public:
  // `meet` is a barrier of at least the node's ranks. The arguments must outlive the object.
  GradientMemory(const ControlBlock& block, int local, std::function<void()> meet)
      : block_(block), local_(local), meet_(std::move(meet)) {}

  // Returns where these values are in the memory of each rank of the node, by local rank; empty if
  // they are not in this memory. The span is valid until the next call.
  std::span<float* const> PeerViews(std::span<const float> values);
  // Returns the allocated block of this rank that holds the values, which must be in this memory.
  std::span<const float> RegionOf(std::span<const float> values) const;

 private:
  // One allocation, as each rank of the node maps it.
  struct Region {
    std::vector<SharedSegment> of_ranks;
    size_t bytes = 0;
  };

  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
  // Maps the blocks that the ranks of the node have just allocated; `own` is this rank's.
  Region MapBlocks(size_t bytes, SharedSegment own);
  // Returns the region that holds all of the values, or null.
  const Region* FindRegion(std::span<const float> values) const;

  const ControlBlock& block_;
  int local_;
  std::function<void()> meet_;
  std::list<Region> regions_;
  std::vector<float*> everywhere_;
};

}  // namespace trainer
