// Tests values of solver fields that are refused or reported.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/solver_spec_testing.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(SolverSpecTest, FieldsThatEveryRunNeeds) {
  EXPECT_EQ(
      RestRefusal("lr_policy: 'fixed' max_iter: 1"),
      "s.prototxt: base_lr is missing: the initial learning rate; write base_lr: 0.01, or give "
      "--set base_lr=0.01");
  EXPECT_EQ(
      RestRefusal("lr_policy: 'fixed' base_lr: 1"),
      "s.prototxt: max_iter is missing: the number of iterations to train for; write max_iter: "
      "10000, or give --set max_iter=10000");
  EXPECT_EQ(RestRefusal("max_iter: 1 base_lr: 1"),
            "s.prototxt: lr_policy is missing; it is one of cosine, exp, fixed, inv, multistep, "
            "plateau, poly, sigmoid, step");
}

TEST_F(SolverSpecTest, APolicysMissingFieldsAreToldTogetherWithWhatTheyDo) {
  const std::string rest = "base_lr: 1 max_iter: 1\n";
  EXPECT_EQ(
      RestRefusal(rest + "lr_policy: 'step'"),
      "s.prototxt:3:1: lr_policy 'step' needs gamma and stepsize, but the solver does not set "
      "them: the learning rate is multiplied by gamma every stepsize iterations; write e.g. "
      "gamma: 0.1 stepsize: 1000");
  EXPECT_THAT(RestRefusal(rest + "lr_policy: 'step' gamma: 0.5"),
              HasSubstr("needs stepsize, but the solver does not set them: the learning rate is "
                        "multiplied"));
  EXPECT_THAT(RestRefusal(rest + "lr_policy: 'step' gamma: 0.5 stepvalue: 10"),
              EndsWith("stepsize: 1000, or lr_policy: \"multistep\", for which the solver has the "
                       "field"));
  EXPECT_THAT(RestRefusal(rest + "lr_policy: 'multistep' gamma: 0.5 stepsize: 10"),
              EndsWith("stepvalue: 1000, or lr_policy: \"step\", for which the solver has the "
                       "field"));
  EXPECT_THAT(RestRefusal(rest + "lr_policy: 'linear'"), HasSubstr("Did you mean 'poly'?"));
}

TEST_F(SolverSpecTest, NumbersMustMakeSense) {
  const std::string rest = "lr_policy: 'fixed' max_iter: 1\n";
  EXPECT_THAT(RestRefusal(rest + "base_lr: nan"),
              HasSubstr("3:1: base_lr is nan; it must be a finite"));
  EXPECT_THAT(RestRefusal(rest + "base_lr: -1"), HasSubstr("base_lr is -1; it must be 0 or more"));
  EXPECT_THAT(RestRefusal(rest + "base_lr: 1 momentum: inf"),
              HasSubstr("momentum is inf; it must"));
  EXPECT_THAT(RestRefusal(rest + "base_lr: 1 momentum: 1.5"),
              HasSubstr("momentum is 1.5; it must be at least 0 and below 1"));
  EXPECT_THAT(RestRefusal(rest + "base_lr: 1 type: 'AdamW' momentum2: 1"),
              HasSubstr("momentum2 is 1; it must be at least 0 and below 1"));
  EXPECT_THAT(RestRefusal(rest + "base_lr: 1 average_loss: 2147483647"),
              HasSubstr("average_loss is 2147483647; it must be at most 10000000"));
  EXPECT_THAT(RestRefusal(rest + "base_lr: 1\nsnapshot_prefix: ''"),
              HasSubstr("s.prototxt:4:1: snapshot_prefix is empty: give the start"));
  EXPECT_THAT(RestRefusal(rest + "base_lr: 1\nsnapshot_prefix: 'a\\nb\\033[2J'"),
              HasSubstr("s.prototxt:4:1: snapshot_prefix 'a\\x0ab\\x1b[2J' has control"));
  EXPECT_THAT(RestRefusal(rest + "base_lr: 1 weight_decay: -1"), HasSubstr("weight_decay is -1"));
  EXPECT_THAT(RestRefusal("lr_policy: 'fixed' base_lr: 1 max_iter: 0"),
              HasSubstr("2:31: max_iter is 0; it must be at least 1"));
  for (const char* field : {"iter_size", "average_loss"}) {
    EXPECT_THAT(RestRefusal(kRest + std::string(field) + ": 0"),
                EndsWith(std::string(field) + " is 0; it must be at least 1"));
  }
  for (const char* field : {"display", "snapshot", "test_interval", "device_id"}) {
    EXPECT_THAT(RestRefusal(kRest + std::string(field) + ": -1"),
                EndsWith(std::string(field) + " is -1; it must be at least 0"));
  }
}

TEST_F(SolverSpecTest, PoliciesNeedTheirFields) {
  const std::string rest = "base_lr: 1 max_iter: 1 lr_policy: ";
  EXPECT_EQ(RestRefusal(rest + "'setp'"),
            "s.prototxt:2:24: unknown lr_policy 'setp'. Did you mean 'step'? It is one of cosine, "
            "exp, fixed, inv, multistep, plateau, poly, sigmoid, step");
  EXPECT_THAT(RestRefusal(rest + "'step' gamma: 1"), HasSubstr("'step' needs stepsize, but the"));
  EXPECT_THAT(RestRefusal(rest + "'step' gamma: 1 stepsize: 0"),
              HasSubstr("stepsize is 0; it must"));
  EXPECT_THAT(RestRefusal(rest + "'inv' gamma: 1"), HasSubstr("lr_policy 'inv' needs power"));
  EXPECT_THAT(RestRefusal(rest + "'poly'"), HasSubstr("lr_policy 'poly' needs power"));
  EXPECT_THAT(RestRefusal(rest + "'exp'"), HasSubstr("lr_policy 'exp' needs gamma"));
  EXPECT_THAT(RestRefusal(rest + "'exp' gamma: -1"),
              HasSubstr("gamma is -1; lr_policy 'exp' needs"));
  EXPECT_THAT(RestRefusal(rest + "'multistep' gamma: 1"), HasSubstr("needs stepvalue"));
  EXPECT_THAT(RestRefusal(rest + "'multistep' gamma: 1\nstepvalue: 5 stepvalue: 5"),
              StartsWith("s.prototxt:3:14: stepvalue 5 comes after 5; the values must increase"));
  Load("net: 'net.prototxt' gamma: -0.1 stepsize: 5 " + rest + "'sigmoid'");
  EXPECT_EQ(RestRefusal(rest + "'plateau' gamma: 0.1"),
            "s.prototxt:2:24: lr_policy 'plateau' needs plateau_winsize, but the solver does not "
            "set them: the learning rate is multiplied by gamma when the smoothed loss has not "
            "reached a new minimum for plateau_winsize iterations; write e.g. plateau_winsize: "
            "1000");
  for (const char* gamma : {"0", "1.5", "-1"}) {
    EXPECT_EQ(RestRefusal(rest + "'plateau' plateau_winsize: 1\ngamma: " + gamma),
              Join("s.prototxt:3:1: gamma is ", gamma,
                   ", but lr_policy 'plateau' lowers the learning rate by this factor; it must be "
                   "above 0 and at most 1, such as 0.1"));
  }
  EXPECT_EQ(RestRefusal(rest + "'plateau' gamma: 0.1 plateau_winsize: 1\nplateau_winsize: 2"),
            "s.prototxt:3:1: plateau_winsize is 2, but max_iter is 1, so the run would end before "
            "this step of the learning rate; give more iterations or a smaller window");
  EXPECT_THAT(
      RestRefusal(rest + "'plateau' gamma: 0.1 plateau_winsize: 1\nmin_lr: 2"),
      StartsWith("s.prototxt:3:1: min_lr is 2 and base_lr 1, but lr_policy 'plateau' decays "
                 "from base_lr to min_lr"));
  EXPECT_THAT(RestRefusal(rest + "'plateau' gamma: 0.1\nplateau_winsize: 5 plateau_winsize: 0"),
              StartsWith("s.prototxt:3:20: plateau_winsize is 0; it must be at least 1, the "
                         "number of iterations without a lower loss after which the learning rate "
                         "is multiplied by gamma"));
}

TEST_F(SolverSpecTest, GradientsAreClippedInOneWay) {
  for (const char* value : {"0", "-2"}) {
    EXPECT_THAT(RestRefusal(Join(kRest, "clip_value: ", value)),
                EndsWith(Join("clip_value is ", value,
                              "; it must be above 0, the largest size of a gradient, or -1 for "
                              "none")));
  }
  EXPECT_THAT(RestRefusal(Join(kRest, "clip_value: 1 clip_gradients: 5")),
              EndsWith(": clip_value and clip_gradients are both given: one limits each "
                       "gradient, the other the norm of all; remove one"));
  Load(Join("net: 'net.prototxt' clip_value: 1 clip_gradients: -1", kRest));
  Load(Join("net: 'net.prototxt' clip_value: -1 clip_gradients: 5", kRest));
}

TEST_F(SolverSpecTest, NamesMustBeKnown) {
  EXPECT_THAT(RestRefusal(kRest + std::string("regularization_type: 'l2'")),
              EndsWith("unknown regularization_type 'l2'. Did you mean 'L2'? It is one of L1, L2"));
  const Caught detection =
      Catch([&] { Load("net: 'net.prototxt'\neval_type: 'detection'" + std::string(kRest)); });
  EXPECT_EQ(detection.code, ErrorCode::kUnavailable);
  EXPECT_THAT(detection.text, HasSubstr("eval_type 'detection' is not supported"));
}

TEST_F(SolverSpecTest, NamesOfNvidiaCaffeAreRead) {
  const SolverSpec solver = Load(
      "net: 'net.prototxt' rampup_interval: 5 rampup_lr: 0.1 min_lr: 0.01 larc: true\n"
      "solver_data_type: FLOAT16 store_blobs_in_old_format: true" +
      std::string(kRest));
  EXPECT_EQ(solver.proto.rampup_interval(), 5);
}

TEST_F(SolverSpecTest, NamesOfIntelCaffeAreRead) {
  const SolverSpec solver =
      Load("net: 'net.prototxt' warmup_iter: 5 warmup_start_lr: 0.1 engine: 'MKLDNN'" +
           std::string(kRest));
  EXPECT_EQ(solver.proto.warmup_start_lr(), 0.1f);
}

TEST_F(SolverSpecTest, OneWarmupAndRoomForTheCosine) {
  EXPECT_THAT(RestRefusal("warmup_iter: 2\nrampup_interval: 3" + std::string(kRest)),
              StartsWith("s.prototxt:3:1: warmup_iter and rampup_interval are both given"));
  EXPECT_THAT(RestRefusal("warmup_iter: -1" + std::string(kRest)),
              HasSubstr("warmup_iter is -1; it must be at least 0"));
  EXPECT_THAT(RestRefusal("warmup_lr: -0.5 warmup_iter: 2" + std::string(kRest)),
              HasSubstr("warmup_lr is -0.5; it must be 0 or more"));
  EXPECT_THAT(RestRefusal("warmup_lr: 0.5" + std::string(kRest)),
              StartsWith("s.prototxt:2:1: warmup_lr is given without warmup_iter"));
  EXPECT_THAT(RestRefusal("warmup_start_lr: 0.5" + std::string(kRest)),
              StartsWith("s.prototxt:2:1: warmup_start_lr is given without warmup_iter"));
  EXPECT_THAT(RestRefusal("warmup_iter: 2 warmup_lr: 0\nwarmup_start_lr: 0.5" + std::string(kRest)),
              StartsWith("s.prototxt:3:1: warmup_lr and warmup_start_lr are both given"));
  for (const char* field : {"warmup_iter", "rampup_interval"}) {
    EXPECT_EQ(RestRefusal(Join("base_lr: 1 lr_policy: 'fixed' max_iter: 10\n", field, ": 11")),
              Join("s.prototxt:3:1: ", field,
                   " is 11, but max_iter is 10, so the run would end before its warm-up; give more "
                   "iterations or a shorter warm-up"));
  }
  const std::string cosine = "base_lr: 0.1 lr_policy: 'cosine' ";
  EXPECT_THAT(RestRefusal(cosine), HasSubstr("max_iter is missing"));
  EXPECT_THAT(
      RestRefusal(cosine + "warmup_iter: 10\nmax_iter: 10"),
      StartsWith("s.prototxt:3:1: max_iter is 10, but lr_policy 'cosine' decays from the end of "
                 "the warm-up, iteration 10, to max_iter"));
  EXPECT_THAT(RestRefusal(cosine + "max_iter: 10\nmin_lr: 0.25"),
              StartsWith("s.prototxt:3:1: min_lr is 0.25 and base_lr 0.1, but lr_policy 'cosine'"));
  EXPECT_THAT(RestRefusal("min_lr: -1" + std::string(kRest)), HasSubstr("min_lr is -1; it must"));
}

TEST_F(SolverSpecTest, MomentaAndAveragesLieBetweenZeroAndOne) {
  const std::string poly = std::string(kRest) + "momentum_policy: 'poly' ";
  EXPECT_THAT(RestRefusal(poly + "momentum: 1"),
              EndsWith("momentum is 1; it must be at least 0 and below 1"));
  EXPECT_THAT(RestRefusal(poly + "max_momentum: 1.5"), HasSubstr("max_momentum is 1.5; it must"));
  EXPECT_THAT(RestRefusal(poly + "momentum_power: -1"), HasSubstr("momentum_power is -1; it must"));
  EXPECT_THAT(RestRefusal(kRest + std::string("momentum_policy: 'optimal'")),
              HasSubstr("unknown momentum_policy 'optimal'."));
  const std::string steps = std::string(kRest) + "momentum_policy: 'multistep' ";
  EXPECT_THAT(RestRefusal(steps), HasSubstr("at least one of each: there are 0 and 0"));
  EXPECT_THAT(RestRefusal(steps + "momentum_stepvalue: [5, 5] momentum_value: [0.5, 0.9]"),
              HasSubstr("momentum_stepvalue is 5; the values must be at least 1 and increase"));
  EXPECT_THAT(RestRefusal(steps + "momentum_stepvalue: 5 momentum_value: 1"),
              HasSubstr("momentum_value is 1; it must be at least 0 and below 1"));
  EXPECT_THAT(RestRefusal(std::string(kRest) + "momentum_value: 0.5"),
              HasSubstr("momentum_value is given without momentum_policy: \"multistep\""));
  EXPECT_THAT(RestRefusal(kRest + std::string("ema_decay: 1")),
              EndsWith("ema_decay is 1; it must be at least 0 and below 1"));
  EXPECT_THAT(RestRefusal(kRest + std::string("max_weight_decay: -1")),
              HasSubstr("max_weight_decay is -1; it must be 0 or more"));
}

TEST_F(SolverSpecTest, LarcWithoutItsTurbo) {
  EXPECT_THAT(RestRefusal(kRest + std::string("larc: true larc_eta: 0")),
              EndsWith("larc_eta is 0; it must be above 0, e.g. 0.001"));
  const Caught turbo =
      Catch([&] { Load("net: 'net.prototxt'\nlarc: true larc_turbo: true" + std::string(kRest)); });
  EXPECT_EQ(turbo.code, ErrorCode::kUnavailable);
  EXPECT_THAT(turbo.text, HasSubstr("s.prototxt:2:12: larc_turbo is not supported"));
}

TEST_F(SolverSpecTest, FieldsWithoutEffectAreNamedOnceEach) {
  testing::internal::CaptureStderr();
  Load(
      "net: 'net.prototxt'\ntest_and_snapshot_last_epochs: 2 solver_data_type: FLOAT16 "
      "store_blobs_in_old_format: false plateau_winsize: 5 ap_version: '11point' "
      "show_per_class_result: true decay_on_bias_and_norm: false" +
      std::string(kRest));
  const std::string log = testing::internal::GetCapturedStderr();
  for (const char* field :
       {"2:1: test_and_snapshot_last_epochs", "solver_data_type", "store_blobs_in_old_format",
        "plateau_winsize", "decay_on_bias_and_norm", "ap_version", "show_per_class_result"}) {
    EXPECT_THAT(log, HasSubstr(std::string(field) + " has no effect: "));
  }
  testing::internal::CaptureStderr();
  Load("net: 'net.prototxt' store_blobs_in_old_format: true solver_data_type: FLOAT" +
       std::string(kRest) + "weight_decay: 0.1 decay_on_bias_and_norm: false");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(HasSubstr("has no effect")));
}

TEST_F(SolverSpecTest, WithAListAllErrorsAreToldAtOnce) {
  const std::string path = folder_.Write(
      "s.prototxt",
      "train_net: 'none.prototxt'\ntest_net: 'net.prototxt' test_net: 'bad.prototxt'\n"
      "test_iter: 1 test_iter: 1 test_interval: 1\n"
      "base_lr: -1 lr_policy: 'fixd' max_iter: 0\n");
  folder_.Write("bad.prototxt", "layer { nme: 'x' }");
  ErrorCollector errors;
  const SolverSpec solver = LoadSolver(path, {}, nullptr, &errors);
  std::vector<std::string> texts;
  for (const Error& error : errors.errors()) texts.emplace_back(error.what());
  EXPECT_THAT(texts, ElementsAre(HasSubstr("base_lr is -1"), HasSubstr("max_iter is 0"),
                                 HasSubstr("Did you mean 'fixed'?"),
                                 HasSubstr("the net file 'none.prototxt' does not exist"),
                                 HasSubstr("bad.prototxt:1:9")));
  EXPECT_EQ(solver.train.net, nullptr);
  ASSERT_EQ(solver.tests.size(), 2u);
  EXPECT_EQ(solver.tests[0].net->file, net_);
  EXPECT_EQ(solver.tests[1].net, nullptr);
}

TEST_F(SolverSpecTest, RefusesSnapshotsAtATimeThatIsNone) {
  for (const char* time : {"soon", "30", "0s", "", "1m1h"}) {
    const std::string text = RestRefusal(
        Join("base_lr: 0.1 lr_policy: 'fixed' max_iter: 10\nsnapshot_every: '", time, "'"));
    EXPECT_THAT(text, StartsWith(Join("s.prototxt:3:1: snapshot_every is '", time,
                                      "'; it must be a time of at least one second, such as "
                                      "\"90s\"")));
  }
  Load("net: 'net.prototxt' snapshot_every: '1h30m'" + std::string(kRest));
}

TEST_F(SolverSpecTest, RefusesTestMetricsThatNothingUses) {
  const std::string rest = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 10\n";
  EXPECT_THAT(RestRefusal(rest + "test_metric: 'f1'"),
              StartsWith("s.prototxt:3:1: test_metric is given without tests, so nothing computes "
                         "it: add test_interval, or remove the line"));
  EXPECT_THAT(RestRefusal(rest + "test_metric_layer: 'loss'"),
              StartsWith("s.prototxt:3:1: test_metric_layer is given without test_metric"));
}

TEST_F(SolverSpecTest, RefusesKeptSnapshotsThatWouldNotBeKept) {
  const std::string rest = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 10\n";
  EXPECT_THAT(RestRefusal(rest + "best_output: 'accuracy'"),
              StartsWith("s.prototxt:3:1: best_output is given without tests, so nothing uses it: "
                         "add test_interval, or remove the line"));
  EXPECT_THAT(RestRefusal(rest + "keep_last: -1"),
              StartsWith("s.prototxt:3:1: keep_last is -1; it must be at least 0"));
  EXPECT_THAT(RestRefusal(rest + "patience: -1"),
              StartsWith("s.prototxt:3:1: patience is -1; it must be at least 0"));
}

TEST_F(SolverSpecTest, RefusesFormsInWhichGradientsDoNotTravel) {
  for (const char* type : {"FLOAT", "FLOAT16", "BFLOAT16"}) {
    Load(std::string("net: 'net.prototxt' exchange_type: ") + type + kRest);
  }
  EXPECT_EQ(RestRefusal("exchange_type: DOUBLE" + std::string(kRest)),
            "s.prototxt:2:1: exchange_type is DOUBLE; gradients can be sent as FLOAT, FLOAT16 or "
            "BFLOAT16");
  EXPECT_THAT(RestRefusal("exchange_type: FLOAT16 virtual_ranks: 4" + std::string(kRest)),
              StartsWith("s.prototxt:2:1: exchange_type is FLOAT16 and virtual_ranks 4: "));
}

}  // namespace
}  // namespace trainer
