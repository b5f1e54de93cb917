#pragma once
// A check of NCCL with one rank, which needs one GPU alone.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/test_device.h"
#include "trainer/backend/device/gpu_communicator.h"

namespace trainer {

// Communicates as the only rank of a run.
class OnlyRank final : public Communicator {
 public:
  Rank rank() const override { return {0, 1}; }
  void OnGradientReady(int, std::span<float>) override {}
  void WaitGradient(int) override {}
  void AllReduce(std::span<float>) override {}
  std::vector<std::string> Gather(const std::string& own) override { return {own}; }
};

// Opens and initialises NCCL, which sums the gradients of one rank and leaves them unchanged. Skips
// the test only if the machine has no NCCL; a library that cannot be used fails it with the reason.
inline void CheckNcclOverOneRank(const Device& gpu) {
  OnlyRank host;
  std::string note;
  const auto group = MakeNcclGroup(gpu, {&host, [] {}, 1}, &note);
  if (group == nullptr && note.starts_with("NCCL 2 was not found")) GTEST_SKIP() << note;
  ASSERT_NE(group, nullptr) << note;
  const std::vector<float> values = {1, -2, 3.5f, 4, 5};
  const OnDevice<float> gradients(gpu, values);
  group->OnGradientReady(0, gradients.span());
  group->WaitGradient(0);
  EXPECT_EQ(gradients.Read(), values);
}

}  // namespace trainer
