// How --global_batch, --scale_lr, --batch, --strategy and similar options change a solver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batch_size.h"
#include "ranks/batch_scaling.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/temp_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/run/ranks/compression.h"
#include "trainer/run/ranks/join.h"
#include "trainer/run/ranks/strategy.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// Provides a solver whose training data layers have the batches 16 and 8.
class RankSolverTest : public testing::Test {
 protected:
  SolverSpec Spec(const std::string& fields = "", const std::string& more_layers = "") const {
    folder_.Write("net.prototxt", R"(
layer { name: "a" type: "Data" top: "x" include { phase: TRAIN }
        data_param { source: "a" batch_size: 16 } }
layer { name: "b" type: "Data" top: "y" include { phase: TRAIN }
        data_param { source: "b" batch_size: 8 } }
layer { name: "t" type: "Data" top: "x" include { phase: TEST }
        data_param { source: "t" batch_size: 5 } }
)" + more_layers);
    return LoadSolver(folder_.Write(
        "solver.prototxt",
        Join("net: \"", folder_ / "net.prototxt",
             "\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 20 snapshot_prefix: \"s\" ",
             fields)));
  }
  std::vector<int64_t> Batches(SolverSpec* spec) const {
    std::vector<int64_t> batches;
    ChangeTrainingBatches(spec, [&](const LayerSpec&, int64_t batch) {
      batches.push_back(batch);
      return batch;
    });
    return batches;
  }

  const TempFolder folder_;
  const LogCollector log_;
};

TEST_F(RankSolverTest, GlobalBatchIsDivided) {
  SolverSpec spec = Spec();
  ScaleForRanks({.global_batch = true}, {0, 4}, &spec);
  EXPECT_THAT(Batches(&spec), ElementsAre(4, 2));
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("Batch of an iteration: 16 (4 ranks, batch_size 4 "
                                                "each); base_lr 0.01")));
  EXPECT_THAT(
      ErrorOf([&] {
        SolverSpec odd = Spec();
        ScaleForRanks({.global_batch = true}, {0, 3}, &odd);
      }),
      Pair(ErrorCode::kUsage, HasSubstr("batch_size 16, which is not divisible by the 3 ranks")));
}

TEST_F(RankSolverTest, VirtualRanksCountInsteadOfRanks) {
  SolverSpec spec = Spec("virtual_ranks: 4");
  ScaleForRanks({.global_batch = true}, {0, 2}, &spec);
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("Batch of an iteration: 16 (4 virtual ranks on 2 "
                                                "ranks, batch_size 4 each)")));
}

TEST_F(RankSolverTest, ScalesTheLearningRateWithAWarmUp) {
  SolverSpec spec = Spec();
  ScaleForRanks({.scale_lr = true}, {0, 2}, &spec);
  EXPECT_FLOAT_EQ(spec.proto.base_lr(), 0.02f);
  EXPECT_EQ(spec.proto.warmup_iter(), 1);
  EXPECT_THAT(log_.lines,
              ElementsAre(HasSubstr("--scale_lr: base_lr is 0.02, 2 times 0.01; the learning rate "
                                    "rises to it over the first 1 iteration"),
                          HasSubstr("Batch of an iteration: 32 (2 ranks, batch_size 16 each)")));
  EXPECT_THAT(ErrorOf([&] {
                ScaleForRanks({.global_batch = true, .scale_lr = true}, {0, 2}, &spec);
              }),
              Pair(ErrorCode::kUsage, HasSubstr("--global_batch and --scale_lr")));
}

TEST_F(RankSolverTest, ARunAloneIsNotScaled) {
  SolverSpec spec = Spec();
  ScaleForRanks({.global_batch = true, .sync_batch_norm = true}, {0, 1}, &spec);
  EXPECT_THAT(Batches(&spec), ElementsAre(16, 8));
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(RankSolverTest, SynchronizesTheBatchNormsOfTheTrainingNet) {
  SolverSpec spec =
      Spec("", "layer { name: \"bn\" type: \"BatchNorm\" bottom: \"x\" top: \"bn\" }");
  ScaleForRanks({.sync_batch_norm = true}, {0, 2}, &spec);
  EXPECT_TRUE(TrainingLayers(&spec).back()->proto().batch_norm_param().synchronized());
  SolverSpec without = Spec();
  ScaleForRanks({.sync_batch_norm = true}, {0, 2}, &without);
  EXPECT_THAT(log_.lines, Contains(HasSubstr("--sync_batch_norm has no effect")));
}

TEST_F(RankSolverTest, ABatchSizeScalesAllTrainingLayers) {
  SolverSpec spec = Spec();
  ApplyBatchSize("48", {}, &spec);
  EXPECT_THAT(Batches(&spec), ElementsAre(48, 24));
  EXPECT_THAT(log_.lines,
              ElementsAre(HasSubstr("--batch: batch_size 48 in place of 16; base_lr 0.01 and "
                                    "max_iter 20 are unchanged (3 times the batch size often "
                                    "needs 3 times the learning rate")));
  EXPECT_THAT(ErrorOf([&] { ApplyBatchSize("3", {}, &spec); }),
              Pair(ErrorCode::kUsage, HasSubstr("this one would not be a whole number")));
  EXPECT_THAT(Batches(&spec), ElementsAre(48, 24)) << "then nothing is changed";
}

TEST_F(RankSolverTest, WhatIsNoBatchSizeIsRefused) {
  SolverSpec spec = Spec("virtual_ranks: 2");
  for (const std::string batch : {"0", "-3", "12x", "fast", "99999999999"}) {
    EXPECT_THAT(ErrorOf([&] { ApplyBatchSize(batch, {}, &spec); }),
                Pair(ErrorCode::kUsage,
                     HasSubstr("--batch=" + batch + ": give the number of images in a batch")));
  }
  EXPECT_THAT(ErrorOf([&] { ApplyBatchSize("auto", {}, &spec); }),
              Pair(ErrorCode::kUsage, HasSubstr("--batch=auto works with one rank only")));
  ApplyBatchSize("", {}, &spec);
  EXPECT_THAT(Batches(&spec), ElementsAre(16, 8));
}

TEST_F(RankSolverTest, TheLearningRateGrowsByTheRuleOfItsType) {
  EXPECT_EQ(RateFactor(Spec(), 4), 4.0);
  EXPECT_EQ(RateFactor(Spec("type: \"Adam\""), 4), 2.0);
  EXPECT_EQ(RateFactor(Spec("type: \"AdaGrad\""), 4), std::nullopt);
}

TEST_F(RankSolverTest, AStrategyNeedsSeveralRanks) {
  SolverSpec spec = Spec();
  ApplyStrategy({}, {0, 1}, &spec);
  EXPECT_EQ(spec.proto.strategy(), "synchronous");
  EXPECT_THAT(ErrorOf([&] {
                ApplyStrategy({.strategy = "easgd"}, {0, 1}, &spec);
              }),
              Pair(ErrorCode::kUsage,
                   HasSubstr("strategy 'easgd' needs several ranks, but this run has one")));
  ApplyStrategy({.strategy = "easgd"}, {0, 2}, &spec);
  EXPECT_EQ(spec.proto.strategy(), "easgd");
}

TEST_F(RankSolverTest, StagesAreForThePipeline) {
  SolverSpec spec = Spec("", "layer { name: \"s\" type: \"Silence\" bottom: \"x\" stage: 1 }");
  EXPECT_THAT(ErrorOf([&] {
                ApplyStrategy({.pipeline_stages = "auto"}, {0, 2}, &spec);
              }),
              Pair(ErrorCode::kUsage,
                   HasSubstr("--pipeline_stages=auto is for strategy 'pipeline', but this run uses "
                             "'synchronous': add --strategy=pipeline")));
  ApplyStrategy({.strategy = "pipeline", .pipeline_stages = "auto"}, {0, 2}, &spec);
  EXPECT_EQ(spec.proto.strategy_param().stages(), "auto");
  EXPECT_THAT(log_.lines, IsEmpty());
  SolverSpec other = Spec("", "layer { name: \"s\" type: \"Silence\" bottom: \"x\" stage: 1 }");
  ApplyStrategy({}, {0, 2}, &other);
  EXPECT_THAT(log_.lines,
              ElementsAre(HasSubstr("`stage` has no effect with strategy 'synchronous'")));
}

TEST_F(RankSolverTest, TheFlagWinsOverTheSolversExchangeType) {
  SolverSpec spec = Spec("exchange_type: FLOAT16");
  EXPECT_EQ(ApplyCompression({}, &spec), CompressionType::kF16);
  EXPECT_EQ(ApplyCompression({.exchange_type = "bf16"}, &spec), CompressionType::kBF16);
  EXPECT_EQ(spec.proto.exchange_type(), caffe::BFLOAT16);
  EXPECT_EQ(RequestedCompression({}), std::nullopt);
}

TEST(RanksToStartTest, IsOneForEachGpu) {
  EXPECT_EQ(RanksToStart({}, {}), 0);
  EXPECT_EQ(RanksToStart({.ranks = 1}, {}), 0);
  EXPECT_EQ(RanksToStart({.ranks = 3}, {}), 3);
  EXPECT_EQ(RanksToStart({}, {.gpu = "0,1"}), 2);
  EXPECT_EQ(RanksToStart({}, {.gpu = "1"}), 0);
  EXPECT_EQ(RanksToStart({.ranks = 4, .share_gpu = true}, {.gpu = "0,1"}), 4);
  EXPECT_THAT(ErrorOf([] { RanksToStart({.ranks = 3}, {.gpu = "0,1"}); }),
              Pair(ErrorCode::kUsage, HasSubstr("--ranks=3 --gpu=0,1: 2 GPUs and 3 ranks")));
}

}  // namespace
}  // namespace trainer
