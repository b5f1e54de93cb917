#pragma once

#include <cstddef>
#include <span>

#include "trainer/base/error/error.h"
#include "trainer/base/ranks/communicator.h"
#include "trainer/base/text/text.h"

namespace trainer {

// A buffer in memory for gradients, whose sum over all ranks is known.
class AllReduceBuffer {
 public:
  AllReduceBuffer(Communicator& group, size_t bytes)
      : group_(group), bytes_(bytes), data_(group.gradient_memory()->allocate(bytes, kAlignment)) {}
  ~AllReduceBuffer() { group_.gradient_memory()->deallocate(data_, bytes_, kAlignment); }
  AllReduceBuffer(const AllReduceBuffer&) = delete;
  AllReduceBuffer& operator=(const AllReduceBuffer&) = delete;

  std::span<float> span() { return {static_cast<float*>(data_), bytes_ / sizeof(float)}; }

  // Writes numbers that depend on the rank and the round. It writes all of them, as a backward pass
  // does before a sum: buffers that stay in a cache would make every all-reduce look faster than it
  // is in training.
  void Write(int round) {
    const std::span<float> values = span();
    const auto rank = static_cast<float>(group_.rank().rank + round % 16);
    for (size_t i = 0; i < values.size(); ++i) values[i] = rank + static_cast<float>(i % 8);
  }
  // Throws kInternal if the first, the middle or the last number is not the sum of the numbers that
  // the ranks wrote in this round.
  void Check(int round) {
    const std::span<float> values = span();
    const auto ranks = static_cast<size_t>(group_.rank().size);
    const size_t of_ranks = ranks * (ranks - 1) / 2 + ranks * static_cast<size_t>(round % 16);
    for (const size_t i : {size_t{0}, values.size() / 2, values.size() - 1}) {
      if (values[i] == static_cast<float>(of_ranks + ranks * (i % 8))) continue;
      throw Error(ErrorCode::kInternal, Join("number ", i, " of a sum over ranks is wrong"));
    }
  }

 private:
  static constexpr size_t kAlignment = 64;

  Communicator& group_;
  size_t bytes_;
  void* data_;
};

// Waits until all ranks are here. Rank 0 decides whether they continue (`proceed`); returns its
// decision on all ranks.
inline bool SyncRanks(Communicator& group, bool proceed = true) {
  return !group.BroadcastBool(!proceed);
}

}  // namespace trainer
