#pragma once
// Replicas as threads of one process: an exchange of gradients needs only a Communicator, in one
// file.

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <string>
#include <vector>

#include "trainer/base/ranks/communicator.h"

namespace trainer {

// The meeting point of the threads. Sums are binary trees over the ranks.
class Meeting {
 public:
  explicit Meeting(int count)
      : count_(count), barrier_(count), parts_(static_cast<size_t>(count)) {}

  void AllReduce(int rank, std::span<float> values) {
    parts_[static_cast<size_t>(rank)] = values;
    barrier_.arrive_and_wait();
    std::vector<float> sum(values.size());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] = Tree(0, parts_.size(), i);
    barrier_.arrive_and_wait();
    std::ranges::copy(sum, values.begin());
  }
  std::vector<std::string> Gather(int rank, const std::string& own) {
    if (rank == 0) texts_.assign(static_cast<size_t>(count_), "");
    barrier_.arrive_and_wait();
    texts_[static_cast<size_t>(rank)] = own;
    barrier_.arrive_and_wait();
    return rank == 0 ? texts_ : std::vector<std::string>();
  }
  int count() const { return count_; }

 private:
  // Returns number i of the sum over `count` ranks from `first` on.
  float Tree(size_t first, size_t count, size_t i) const {
    if (count == 1) return parts_[first][i];
    const size_t half = std::bit_ceil(count) / 2;
    return Tree(first, half, i) + Tree(first + half, count - half, i);
  }

  int count_;
  std::barrier<> barrier_;
  std::vector<std::span<float>> parts_;
  std::vector<std::string> texts_;
};

// With `eager`, sums a slice during backward; else when the slice is waited for.
class ThreadGroup final : public Communicator {
 public:
  ThreadGroup(Meeting& meeting, int rank, bool eager)
      : meeting_(meeting), rank_{rank, meeting.count()}, eager_(eager) {}

  Rank rank() const override { return rank_; }
  void OnGradientReady(int slice, std::span<float> values) override {
    if (slice == 0) slices_.clear();
    EXPECT_EQ(static_cast<size_t>(slice), slices_.size());
    slices_.push_back(values);
    if (eager_) meeting_.AllReduce(rank_.rank, values);
  }
  void WaitGradient(int slice) override {
    waited = std::max(waited, slice + 1);
    if (!eager_) meeting_.AllReduce(rank_.rank, slices_.at(static_cast<size_t>(slice)));
  }
  void AllReduce(std::span<float> values) override { meeting_.AllReduce(rank_.rank, values); }
  std::vector<std::string> Gather(const std::string& own) override {
    return meeting_.Gather(rank_.rank, own);
  }
  int waited = 0;  // slices

 private:
  Meeting& meeting_;
  Rank rank_;
  bool eager_;
  std::vector<std::span<float>> slices_;
};

}  // namespace trainer
