// How --limit, --overfit and --quick change a solver, and the verdict of --overfit.

#include "trainer/run/quick_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batch_size.h"
#include "epochs.h"
#include "overfit.h"
#include "support/current_folder.h"
#include "support/digits_job.h"
#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/config/resolved_solver.h"
#include "trainer/net/data_layers.h"
#include "trainer/solver/solver.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

class QuickLookTest : public testing::Test {
 protected:
  QuickLookTest() : here_(job_.folder().path()) {}
  SolverSpec Load() const {
    job_.Write();
    return LoadSolver("solver.prototxt");
  }
  // Returns the data_param of the first data layer of a net.
  static caffe::DataParameter DataOf(const NetUse& use, SolverSpec* spec) {
    return LayersOfUse(use, spec).front()->proto().data_param();
  }

  DigitsJob job_;
  const CurrentFolder here_;
};

TEST_F(QuickLookTest, TheLimitIsAShareOrANumberOfTheTrainingRecords) {
  for (const auto& [limit, records] :
       {std::pair("0.25", 25u), {"7", 7u}, {"1000", 100u}, {"1.0", 100u}, {"1e-9", 1u}}) {
    SolverSpec spec = Load();
    const LogCollector log;
    ApplyLimit(limit, &spec);
    EXPECT_EQ(DataOf(spec.train, &spec).limit(), records) << limit;
    EXPECT_FALSE(DataOf(spec.tests[0], &spec).has_limit());
    EXPECT_THAT(log.lines, Contains(Join("--limit=", limit, ": layer 'digits' reads the first ",
                                         records, " of 100 records")));
  }
  SolverSpec spec = Load();
  ApplyLimit("", &spec);
  EXPECT_FALSE(DataOf(spec.train, &spec).has_limit());
}

TEST_F(QuickLookTest, RefusesALimitThatIsNone) {
  for (const char* limit : {"0", "-1", "1.5", "many", "0.0", "nan", "5%"}) {
    SolverSpec spec = Load();
    EXPECT_THAT(ErrorOf([&] { ApplyLimit(limit, &spec); }),
                Pair(ErrorCode::kUsage, Join("--limit=", limit,
                                             ": give a share of the training records, such as "
                                             "0.1, or their number, such as 500")));
  }
  job_.net = "layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 } } }";
  job_.solver = "net: 'net.prototxt' base_lr: 1 lr_policy: 'fixed' max_iter: 1";
  SolverSpec spec = Load();
  EXPECT_THAT(ErrorOf([&] { ApplyLimit("3", &spec); }),
              Pair(ErrorCode::kUsage, HasSubstr("net.prototxt: --limit: no data layer of the "
                                                "training net reads a set of records")));
  EXPECT_THAT(ErrorOf([&] { ApplyOverfit(3, 1, &spec); }),
              Pair(ErrorCode::kUsage, HasSubstr("--overfit: no data layer of the training net")));
}

TEST_F(QuickLookTest, EpochsCountRanksPassesAndTheLimit) {
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_epoch: 3 iter_size: 2");
  struct Case {
    int ranks;
    bool global;
    const char* limit;
    int epoch, max_iter;
  };
  for (const auto& [ranks, global, limit, epoch, max_iter] :
       {Case{1, false, "", 4, 12},  // 100 records, 32 per iteration
        Case{2, false, "", 2, 6},   // 64 per iteration
        Case{2, true, "", 4, 12},   // the batch of all ranks is 16
        Case{1, false, "0.5", 2, 6}}) {
    SolverSpec spec = Load();
    ApplyLimit(limit, &spec);
    RankOptions options;
    options.global_batch = global;
    const std::string line = ApplyEpochs(options, {0, ranks}, nullptr, &spec);
    EXPECT_THAT(line, StartsWith(Join("an epoch is ", epoch, " iterations (")));
    EXPECT_EQ(spec.proto.max_iter(), max_iter);
  }
  job_.solver = Edited(job_.solver, "iter_size: 2", "virtual_ranks: 4");
  SolverSpec spec = Load();
  ApplyEpochs({}, {}, nullptr, &spec);
  EXPECT_EQ(spec.proto.max_iter(), 6) << "64 records per iteration";
}

TEST_F(QuickLookTest, ABalancedSetHasEpochsOfItsOwnAndNoLimit) {
  job_.net = Edited(job_.net, "batch_size: 16 }", "batch_size: 16 sampling: BALANCED }");
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_epoch: 2");
  SolverSpec spec = Load();
  const int64_t records = CountLayerRecords(*LayersOfUse(spec.train, &spec).front());
  EXPECT_GT(records, 100);
  EXPECT_EQ(records % 10, 0) << "ten classes";
  EXPECT_THAT(
      ErrorOf([&] { ApplyLimit("0.5", &spec); }),
      Pair(ErrorCode::kUsage, AllOf(HasSubstr("net.prototxt:2"),
                                    HasSubstr("--limit: layer 'digits' balances its classes"))));
  const int64_t iterations = (records + 15) / 16;
  EXPECT_THAT(
      ApplyEpochs({}, {}, nullptr, &spec),
      StartsWith(Join("an epoch is ", iterations, " iterations (", records, " records, 16 ")));
  EXPECT_EQ(spec.proto.max_iter(), 2 * iterations);
}

TEST_F(QuickLookTest, EpochsOfANetWithoutRecordsAreRefused) {
  job_.net = "layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 } } }";
  job_.solver = "net: 'net.prototxt' base_lr: 1 lr_policy: 'fixed'\nsnapshot_epoch: 1 max_epoch: 2";
  SolverSpec spec = Load();
  EXPECT_THAT(ErrorOf([&] { ApplyEpochs({}, {}, nullptr, &spec); }),
              Pair(ErrorCode::kConfig,
                   "solver.prototxt:2:19: max_epoch counts passes over the training records, but "
                   "no data layer of the training net reads a set of records; give the time in "
                   "iterations"));
}

TEST_F(QuickLookTest, OverfitReadsTheSameBatchesForTrainingAndTests) {
  job_.net = Edited(job_.net, "scale: 0.00390625",
                    "scale: 0.00390625 mirror: true mixup: 0.2 cutmix: 1 vflip: 0.5 "
                    "mixup_classes: 10");
  job_.net =
      Edited(job_.net, "batch_size: 16 }", "batch_size: 16 shuffle: true sampling: BALANCED }");
  job_.net += "layer { name: 'noise' type: 'Noise' bottom: 'ip' top: 'ip' }";
  job_.net += "layer { name: 'path' type: 'DropPath' bottom: 'ip' top: 'ip' }";
  job_.net += "layer { name: 'drop' type: 'Dropout' bottom: 'ip' top: 'ip' }";
  job_.solver += "patience: 3 keep_best: 1 ema_decay: 0.9 warmup_iter: 900 snapshot_every: '1h'";
  job_.solver = Edited(job_.solver, "max_iter: 20", "max_iter: 100000 iter_size: 2");
  SolverSpec spec = Load();
  ApplyOverfit(3, 1, &spec);
  const caffe::DataParameter train = DataOf(spec.train, &spec), test = DataOf(spec.tests[0], &spec);
  EXPECT_EQ(train.limit(), 96u) << "3 iterations of 2 passes of 16 records";
  EXPECT_FALSE(train.augment());
  EXPECT_FALSE(train.shuffle());
  EXPECT_FALSE(train.has_sampling());
  EXPECT_EQ(test.SerializeAsString(), train.SerializeAsString());
  EXPECT_EQ(LayersOfUse(spec.train, &spec).front()->proto().transform_param().mixup(), 0);
  const std::vector<LayerSpec*> layers = LayersOfUse(spec.train, &spec);
  EXPECT_EQ(layers.front()->proto().transform_param().cutmix(), 0);
  EXPECT_EQ(layers.back()->proto().dropout_param().dropout_ratio(), 0);
  EXPECT_EQ(layers[layers.size() - 2]->proto().drop_path_param().drop_ratio(), 0);
  EXPECT_EQ(layers[layers.size() - 3]->proto().noise_param().amount(), 0);
  const caffe::SolverParameter& solver = spec.proto;
  EXPECT_EQ(solver.max_iter(), 500);
  EXPECT_EQ(solver.average_loss(), 3);
  EXPECT_THAT(solver.test_iter(), ElementsAre(6));
  EXPECT_EQ(solver.lr_policy(), "fixed");
  EXPECT_EQ(solver.warmup_iter(), 50);
  EXPECT_EQ(solver.weight_decay() + solver.ema_decay(), 0);
  EXPECT_FALSE(SavesSnapshots(solver));
  EXPECT_EQ(solver.patience() + solver.keep_best(), 0);
}

TEST_F(QuickLookTest, OverfitRefusesLayersThatMustDraw) {
  const std::string net = job_.net;
  for (const auto& [layer, what] :
       {std::pair("type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 1 }",
                  "draws a value of each window at random (pool: STOCHASTIC)"),
        {"type: 'Noise' noise_param { kind: BERNOULLI }",
         "draws its outputs at random (kind: BERNOULLI)"}}) {
    job_.net = Join(net, "\nlayer { name: 'draws' bottom: 'data' top: 'drawn' ", layer, " }");
    SolverSpec spec = Load();
    EXPECT_THAT(ErrorOf([&] { ApplyOverfit(1, 1, &spec); }),
                Pair(ErrorCode::kUsage,
                     EndsWith(Join("--overfit: layer 'draws' ", what,
                                   ", so its outputs differ each time the net reads a batch"))));
  }
}

TEST_F(QuickLookTest, OverfitNeedsEnoughRecords) {
  SolverSpec spec = Load();
  EXPECT_THAT(ErrorOf([&] { ApplyOverfit(7, 1, &spec); }),
              Pair(ErrorCode::kUsage,
                   AllOf(HasSubstr("net.prototxt:2"),
                         EndsWith("--overfit=7: layer 'digits' needs 112 records for that, and has "
                                  "100; give fewer batches, or smaller ones with --batch"))));
}

TEST_F(QuickLookTest, QuickIsOneIterationAndOneTestBatch) {
  job_.solver += "keep_last: 2 snapshot_every: '1h'";
  SolverSpec spec = Load();
  ApplyQuick(&spec);
  EXPECT_EQ(spec.proto.max_iter(), 1);
  EXPECT_EQ(spec.proto.test_interval(), 1);
  EXPECT_THAT(spec.proto.test_iter(), ElementsAre(1));
  EXPECT_FALSE(SavesSnapshots(spec.proto));
}

// Tests the verdict on given losses and on a net whose weights the test changes.
class VerdictTest : public QuickLookTest {
 protected:
  VerdictTest()
      : device_(MakeTestDevice(1)), spec_(Load()), solver_(spec_, Options(), *device_, nobody_) {}

  static SolverOptions Options() {
    SolverOptions options;
    options.saves = false;
    return options;
  }
  // Changes the weights by about `times` of their size and returns the text of the failure.
  std::string Cause(const std::vector<float>& losses, float times, float base_lr = 0.01f) {
    OverfitVerdict verdict(1, base_lr);
    verdict.Begin(solver_.train_net());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_FALSE(verdict.Note(static_cast<int>(i) + 1, losses[i]));
    }
    for (const Param* param : solver_.train_net().params()) {
      std::vector<float> weights(static_cast<size_t>(param->count()));
      device_->CopyToHost(weights.data(), param->weight, weights.size() * sizeof(float));
      for (float& weight : weights) weight *= 1 + times;
      device_->CopyToDevice(param->weight, weights.data(), weights.size() * sizeof(float));
    }
    const auto [code, text] = ErrorOf([&] { verdict.Conclude(solver_.train_net()); });
    EXPECT_EQ(code, ErrorCode::kNotLearned);
    return text;
  }

  std::unique_ptr<Device> device_;
  ObserverList nobody_;
  SolverSpec spec_;
  Solver solver_;
};

TEST_F(VerdictTest, LearnedSaysBothLosses) {
  OverfitVerdict verdict(2, 0.1f);
  verdict.Begin(solver_.train_net());
  EXPECT_FALSE(verdict.Note(1, 2.3f));
  EXPECT_FALSE(verdict.Note(2, 0.5f));
  EXPECT_TRUE(verdict.Note(3, 0.011f));
  EXPECT_EQ(verdict.Conclude(solver_.train_net()), "learned: loss 2.30 -> 0.01, in 3 iterations");
  OverfitVerdict slow(1, 0.1f);
  EXPECT_FALSE(slow.Note(1, 2.3f));
  EXPECT_FALSE(slow.Note(2, 0.2f));
  EXPECT_THAT(slow.Conclude(solver_.train_net()), StartsWith("learned: loss 2.30 -> 0.20"));
  OverfitVerdict early(5, 0.1f);
  EXPECT_FALSE(early.Note(1, 2.3f));
  EXPECT_FALSE(early.Note(2, 0.001f)) << "the other batches may still be unknown";
}

TEST_F(VerdictTest, NamesTheLikelyCause) {
  EXPECT_EQ(Cause({2.3f, 2.3f}, 0, 0),
            "not learned: loss 2.30 -> 2.30 after 2 iterations on 1 batch. Likely cause: "
            "nothing is trained: no weight changed. base_lr is 0; it must be above 0, some lr_mult "
            "too, and the gradient must reach the weights (propagate_down)");
  EXPECT_THAT(Cause({2.3f, 2.29f}, 1e-4f),
              HasSubstr("base_lr 0.01 is too low: the weights changed by only 0.0"));
  EXPECT_THAT(Cause({2.3f, 5.5f}, 1),
              HasSubstr("base_lr 0.01 is too high: the loss fell to 2.30 and rose again. Try "
                        "--base_lr=0.001"));
  EXPECT_THAT(Cause({2.3f, 0.4f, 1.9f}, 1), HasSubstr("is too high: the loss fell to 0.40"));
  EXPECT_THAT(Cause({2.3f, 1.2f}, 0.1f), HasSubstr("the loss still falls, so base_lr 0.01 may be"));
  EXPECT_THAT(Cause({2.3f, 2.2f}, 0.1f),
              AllOf(HasSubstr("the labels may not match the records (for example equal records "),
                    Not(HasSubstr("base_lr")), Not(HasSubstr("The weights of"))));
}

}  // namespace
}  // namespace trainer
