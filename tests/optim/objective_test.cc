// Tests the objective as an optimizer uses it.

#include "trainer/optim/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "solver/small_run.h"
#include "support/error_of.h"
#include "support/late_device.h"
#include "support/net_text.h"
#include "trainer/backend/device/cpu_device.h"

namespace trainer {
namespace {

// Owns a net and its objective.
class Made {
 public:
  explicit Made(int iter_size, const Device& device, Communicator* group = nullptr)
      : spec_(NetFromText(SmallNet())), params_(device) {
    NetOptions options = QuietOptions(caffe::TRAIN);
    if (group != nullptr) options.rank = group->rank();
    net_ = std::make_unique<Net>(spec_, options, device, params_);
    objective = std::make_unique<Objective>(device, *net_, params_, iter_size, group);
  }

 private:
  NetSpec spec_;
  ParamStore params_;
  std::unique_ptr<Net> net_;

 public:
  std::unique_ptr<Objective> objective;
};

// One of two replicas; the other one has the same values.
class Twin final : public Communicator {
 public:
  Rank rank() const override { return {0, 2}; }
  void AllReduce(std::span<float> values) override {
    for (float& value : values) value *= 2;
  }
  void OnGradientReady(int, std::span<float>) override {}
  void WaitGradient(int) override {}
  std::vector<std::string> Gather(const std::string& own) override { return {own, own}; }
};

TEST(ObjectiveTest, GradientScaleMakesTheMeanOverPassesAndReplicas) {
  const auto device = MakeTestDevice();
  Twin twin;
  EXPECT_EQ(Made(1, *device).objective->GradientScale(), 1.0f);
  EXPECT_EQ(Made(4, *device).objective->GradientScale(), 0.25f);
  EXPECT_EQ(Made(4, *device, &twin).objective->GradientScale(), 0.125f);
}

TEST(ObjectiveTest, StartedEvaluationsAreThoseThatWaitInOrder) {
  for (const int iter_size : {1, 3}) {
    const LateDevice late;
    Made at_once(iter_size, late), ahead(iter_size, late);
    std::vector<float> expected;
    for (int i = 0; i < 7; ++i) expected.push_back(at_once.objective->Evaluate(Pass::Batch::kNext));
    Objective& objective = *ahead.objective;
    EXPECT_TRUE(objective.IsAsync());
    objective.Run(Pass::Batch::kNext);
    objective.Run(Pass::Batch::kNext);
    EXPECT_EQ(ErrorOf([&] { objective.Run(Pass::Batch::kNext); }).first, ErrorCode::kInternal);
    EXPECT_EQ(objective.TakeLoss(), expected[0]);
    objective.Run(Pass::Batch::kNext);
    EXPECT_EQ(objective.TakeLoss(), expected[1]);
    // An evaluation that waits for its loss does not change the order of the others.
    EXPECT_EQ(objective.Evaluate(Pass::Batch::kNext), expected[3]);
    EXPECT_EQ(objective.TakeLoss(), expected[2]);
    objective.Run(Pass::Batch::kNext);
    objective.Run(Pass::Batch::kNext);
    EXPECT_EQ(objective.TakeLoss(), expected[4]);
    EXPECT_EQ(objective.TakeLoss(), expected[5]);
    EXPECT_EQ(objective.Evaluate(Pass::Batch::kNext), expected[6]);
    EXPECT_EQ(ErrorOf([&] { objective.TakeLoss(); }).first, ErrorCode::kInternal);
  }
}

TEST(ObjectiveTest, ReplicasReadEachLossAtOnce) {
  const LateDevice late;
  Twin twin;
  EXPECT_FALSE(Made(1, late, &twin).objective->IsAsync());
  const auto cpu = MakeCpuDevice(1);
  EXPECT_FALSE(Made(1, *cpu).objective->IsAsync());
}

}  // namespace
}  // namespace trainer
