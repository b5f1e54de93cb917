#pragma once
// Memory for gradients that all ranks of a machine see, so that a sum is one pass over all of them,
// without a copy.

#include <functional>
#include <list>
#include <memory_resource>
#include <span>
#include <vector>

#include "node_block.h"

namespace trainer {

// Every rank allocates the same blocks in the same order; a call meets the others'. Throws
// kProtocol where another rank asks for another size.
class SharedGradients final : public std::pmr::memory_resource {
 public:
  // `meet` returns when all ranks of the machine have called it. Both must outlive the object.
  SharedGradients(const NodeBlock& block, int local, std::function<void()> meet)
      : block_(block), local_(local), meet_(std::move(meet)) {}

  // The same values of each rank of the machine, by rank; empty where they do not lie here. The
  // span holds until the next call.
  std::span<float* const> Everywhere(std::span<const float> values);
  // This rank's block that the values, which Everywhere found, lie in.
  std::span<const float> BlockOf(std::span<const float> values) const;

 private:
  struct Region {
    std::vector<SharedMemory> of_ranks;
    size_t bytes = 0;
  };

  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
  Region Open(size_t bytes, SharedMemory own);
  const Region* Find(std::span<const float> values) const;

  const NodeBlock& block_;
  int local_;
  std::function<void()> meet_;
  std::list<Region> regions_;
  std::vector<float*> everywhere_;
};

}  // namespace trainer
