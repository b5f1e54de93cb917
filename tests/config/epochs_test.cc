// Tests solver fields that are given in epochs.

#include "trainer/config/epochs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/solver_spec_testing.h"
#include "trainer/config/overrides.h"
#include "trainer/config/resolved_solver.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kEpochRest[] = "\nbase_lr: 0.1 lr_policy: 'fixed'\n";

class EpochsTest : public SolverSpecTest {
 protected:
  SolverSpec LoadWith(const std::string& fields, const std::vector<std::string>& set = {}) {
    Overrides overrides(set);
    return LoadSolver(folder_.Write("s.prototxt", "net: 'net.prototxt'\n" + fields), {},
                      &overrides);
  }
  std::string ResolveRefusal(const std::string& fields, const EpochSize& epoch) {
    SolverSpec spec = LoadWith(fields);
    return CatchConfig([&] { ResolveEpochs(epoch, &spec); }).text.substr(folder_.path().size() + 1);
  }
};

TEST_F(EpochsTest, BecomeIterationsAndTheLineHasBoth) {
  SolverSpec spec = LoadWith(
      "base_lr: 0.1 lr_policy: 'multistep' gamma: 0.1 max_epoch: 5 test_interval_epoch: 1\n"
      "snapshot_epoch: 0.5 stepvalue_epoch: [2, 4.5]");
  EXPECT_TRUE(UsesEpochs(spec.proto));
  EXPECT_EQ(spec.tests.size(), 1u) << "a test is one exact pass";
  EXPECT_EQ(ResolveEpochs({4000, 64}, &spec),
            "an epoch is 63 iterations (4000 records, 64 per iteration): max_epoch 5 is max_iter "
            "315, test_interval_epoch 1 is test_interval 63, snapshot_epoch 0.5 is snapshot 32, "
            "stepvalue_epoch 2, 4.5 is stepvalue 126, 284");
  EXPECT_EQ(spec.proto.max_iter(), 315);
  EXPECT_EQ(spec.proto.test_interval(), 63);
  EXPECT_EQ(spec.proto.snapshot(), 32);
  EXPECT_THAT(spec.proto.stepvalue(), ElementsAre(126, 284));
  EXPECT_FALSE(UsesEpochs(spec.proto));
}

TEST_F(EpochsTest, TheResolvedSolverIsOneInIterations) {
  SolverSpec spec = LoadWith(std::string("max_epoch: 2") + kEpochRest);
  ResolveEpochs({100, 10}, &spec);
  const caffe::SolverParameter resolved = ResolvedSolver(spec);
  EXPECT_EQ(resolved.max_iter(), 20);
  EXPECT_FALSE(resolved.has_max_epoch());
}

TEST_F(EpochsTest, AreAtLeastOneIterationAndCanBeGivenBack) {
  SolverSpec spec = LoadWith(
      std::string("max_epoch: 0.01 test_interval_epoch: 0.01 stepvalue_epoch: 3") + kEpochRest);
  const caffe::SolverParameter written = spec.proto;
  ResolveEpochs({100, 10}, &spec);
  EXPECT_EQ(spec.proto.max_iter(), 1);
  EXPECT_EQ(spec.proto.test_interval(), 1);
  RestoreEpochs(written, &spec);
  EXPECT_EQ(spec.proto.SerializeAsString(), written.SerializeAsString());
  ResolveEpochs({100, 1}, &spec);
  EXPECT_THAT(spec.proto.stepvalue(), ElementsAre(300));
}

TEST_F(EpochsTest, ATimeIsGivenOnce) {
  EXPECT_EQ(RestRefusal("max_epoch: 3" + std::string(kRest)),
            "s.prototxt:2:1: max_epoch and max_iter are both given: they set the same time, in "
            "epochs and in iterations; remove one");
  EXPECT_THAT(RestRefusal("test_interval: 3\ntest_interval_epoch: 1" + std::string(kRest)),
              StartsWith("s.prototxt:3:1: test_interval_epoch and test_interval are both given"));
  EXPECT_THAT(RestRefusal("snapshot: 3\nsnapshot_epoch: 1" + std::string(kRest)),
              StartsWith("s.prototxt:3:1: snapshot_epoch and snapshot are both given"));
  EXPECT_THAT(RestRefusal("stepvalue: 3\nstepvalue_epoch: 1" + std::string(kRest)),
              StartsWith("s.prototxt:3:1: stepvalue_epoch and stepvalue are both given"));
}

TEST_F(EpochsTest, NumbersMustMakeSense) {
  EXPECT_EQ(RestRefusal(std::string("max_epoch: 0") + kEpochRest),
            "s.prototxt:2:1: max_epoch is 0; it must be above 0, such as 1 or 0.5");
  EXPECT_THAT(RestRefusal("test_interval_epoch: -1" + std::string(kRest)),
              HasSubstr("test_interval_epoch is -1; it must be above 0"));
  EXPECT_THAT(RestRefusal("snapshot_epoch: -0.5" + std::string(kRest)),
              HasSubstr("snapshot_epoch is -0.5; it must be above 0"));
  EXPECT_THAT(RestRefusal("stepvalue_epoch: -2" + std::string(kRest)),
              HasSubstr("stepvalue_epoch is -2; it must be 0 or more"));
  EXPECT_THAT(RestRefusal("stepvalue_epoch: [2, 2]" + std::string(kRest)),
              HasSubstr("stepvalue_epoch 2 comes after 2; the values must increase"));
  EXPECT_THAT(RestRefusal("max_epoch: nan" + std::string(kEpochRest)),
              HasSubstr("max_epoch is nan; it must be a finite number"));
}

TEST_F(EpochsTest, WhatTheRecordsMakeImpossible) {
  const std::string steps = "base_lr: 1 lr_policy: 'multistep' gamma: 0.1 max_epoch: 3\n";
  EXPECT_THAT(ResolveRefusal(steps + "stepvalue_epoch: [0.1, 0.2]", {100, 100}),
              HasSubstr("stepvalue_epoch 0.2 is iteration 0, and so is the value before it: an "
                        "epoch has 1 iteration; remove one of the values"));
  EXPECT_THAT(ResolveRefusal(std::string("max_epoch: 1e9") + kEpochRest, {1000, 1}),
              HasSubstr("s.prototxt:2:1: max_epoch is 1e+09, which is 1e+12 iterations; a run has "
                        "at most 2147483647"));
  EXPECT_THAT(
      ResolveRefusal("base_lr: 1 lr_policy: 'cosine' warmup_iter: 10\nmax_epoch: 1", {9, 1}),
      HasSubstr("max_iter is 9, but lr_policy 'cosine' decays from the end of the warm-up"));
}

TEST_F(EpochsTest, TheCommandLineReplacesATimeOfTheOtherKind) {
  const SolverSpec epochs = LoadWith(kRest, {"max_epoch=3"});
  EXPECT_FALSE(epochs.proto.has_max_iter());
  EXPECT_EQ(epochs.proto.max_epoch(), 3);
  const SolverSpec iterations = LoadWith(std::string("max_epoch: 3") + kEpochRest, {"max_iter=7"});
  EXPECT_FALSE(iterations.proto.has_max_epoch());
  EXPECT_EQ(iterations.proto.max_iter(), 7);
  EXPECT_THAT(CatchConfig([&] {
                LoadWith(kEpochRest, {"max_iter=7", "max_epoch=3"});
              }).text,
              HasSubstr("max_epoch and max_iter are both given"));
}

TEST_F(EpochsTest, MinDeltaNeedsPatience) {
  EXPECT_EQ(RestRefusal("min_delta: 0.1" + std::string(kRest)),
            "s.prototxt:2:1: min_delta is given without patience, so nothing uses it: add "
            "patience: 5 to stop the run after 5 tests without such an improvement, or remove the "
            "line");
  EXPECT_THAT(RestRefusal("patience: 2 min_delta: -0.1" + std::string(kRest)),
              HasSubstr("min_delta is -0.1; it must be 0 or more"));
}

}  // namespace
}  // namespace trainer
