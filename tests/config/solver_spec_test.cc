#include "trainer/config/solver_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/solver_spec_testing.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> Stages(const caffe::NetState& state) {
  return {state.stage().begin(), state.stage().end()};
}

TEST_F(SolverSpecTest, OneFileServesTrainingAndTests) {
  const SolverSpec solver =
      Load("net: 'net.prototxt' test_iter: 5 test_iter: 6 test_interval: 2" + std::string(kRest));
  EXPECT_EQ(solver.nets.size(), 1u);
  EXPECT_EQ(solver.train.net, &solver.nets[0]);
  EXPECT_EQ(solver.train.net->file, net_);
  EXPECT_EQ(solver.train.description, "net file: net.prototxt");
  EXPECT_EQ(solver.train.state.phase(), caffe::TRAIN);
  ASSERT_EQ(solver.tests.size(), 2u);
  EXPECT_EQ(solver.tests[1].net, &solver.nets[0]);
  EXPECT_EQ(solver.tests[1].state.phase(), caffe::TEST);
}

TEST_F(SolverSpecTest, MovingASolverKeepsItsNets) {
  SolverSpec solver = Load("net: 'net.prototxt'" + std::string(kRest));
  const SolverSpec moved = std::move(solver);
  EXPECT_EQ(moved.train.net, &moved.nets[0]);
  EXPECT_EQ(moved.train.net->layers[0].Where("top", 0).line, 1);
}

TEST_F(SolverSpecTest, TestNetsComeInCaffesOrder) {
  folder_.Write("test.prototxt", "name: 'file'");
  const SolverSpec solver = Load(
      "net: 'net.prototxt' test_net: 'test.prototxt' test_net_param { name: 'inline' }\n"
      "test_iter: 1 test_iter: 2 test_iter: 3 test_interval: 1" +
      std::string(kRest));
  ASSERT_EQ(solver.tests.size(), 3u);
  EXPECT_EQ(solver.tests[0].net->proto.name(), "inline");
  EXPECT_EQ(solver.tests[0].description, "test_net_param");
  EXPECT_EQ(solver.tests[1].net->proto.name(), "file");
  EXPECT_EQ(solver.tests[1].description, "test_net file: test.prototxt");
  EXPECT_EQ(solver.tests[2].net->proto.name(), "n");
}

TEST_F(SolverSpecTest, LayersOfANetInsideTheSolverKnowTheirLines) {
  const SolverSpec solver = Load(
      "train_net_param {\n"
      "  layer { name: 'd' type: 'T'\n"
      "    top: 'x' }\n"
      "}" +
      std::string(kRest));
  const LayerSpec& layer = solver.train.net->layers[0];
  EXPECT_EQ(layer.Where("top", 0).ToString(), solver.file + ":3:5");
  EXPECT_EQ(solver.train.description, "train_net_param");
}

TEST_F(SolverSpecTest, StatesMergeInOrderAndStagesAdd) {
  folder_.Write("staged.prototxt", "state { level: 3 stage: 'net' }");
  const SolverSpec solver = Load(
      "net: 'staged.prototxt' train_state { stage: 'train' level: 9 }\n"
      "test_iter: 1 test_iter: 1 test_interval: 1\n"
      "test_state { stage: 'one' level: 7 } test_state { stage: 'two' }" +
          std::string(kRest),
      {.level = 4, .stages = {"flag"}});
  EXPECT_EQ(solver.train.state.level(), 4);
  EXPECT_THAT(Stages(solver.train.state), ElementsAre("net", "train", "flag"));
  EXPECT_EQ(solver.tests[0].state.level(), 7);
  EXPECT_THAT(Stages(solver.tests[0].state), ElementsAre("net", "one"));
  EXPECT_EQ(solver.tests[1].state.level(), 3);
  EXPECT_THAT(Stages(solver.tests[1].state), ElementsAre("net", "two"));
}

TEST_F(SolverSpecTest, WithoutFlagsTheTrainingLevelIsZeroAndOneStageIsEmpty) {
  const SolverSpec solver =
      Load("net: 'net.prototxt' train_state { level: 9 }" + std::string(kRest));
  EXPECT_EQ(solver.train.state.level(), 0);
  EXPECT_THAT(Stages(solver.train.state), ElementsAre(""));
}

TEST_F(SolverSpecTest, TheSnapshotPrefixFollowsTheSolversPath) {
  const std::string net = "net: 'net.prototxt'" + std::string(kRest);
  EXPECT_EQ(Load(net).proto.snapshot_prefix(), folder_.path() + "/s");
  EXPECT_EQ(Load(net + "snapshot_prefix: '" + folder_.path() + "'").proto.snapshot_prefix(),
            folder_.path() + "/s");
  EXPECT_EQ(Load(net + "snapshot_prefix: 'some/where'").proto.snapshot_prefix(), "some/where");
}

TEST_F(SolverSpecTest, TheOldSolverTypeBecomesType) {
  const std::string rest = "net: 'net.prototxt'" + std::string(kRest);
  EXPECT_EQ(Load(rest + "solver_type: ADADELTA").proto.type(), "AdaDelta");
  EXPECT_EQ(Load(rest + "solver_type: 1").proto.type(), "Nesterov");
  EXPECT_EQ(Load(rest).proto.type(), "SGD");
  EXPECT_THAT(
      Refusal(rest + "solver_type: ADAM type: 'Adam'"),
      StartsWith("s.prototxt:3:1: solver_type is the old name of type, and both are given"));
}

TEST_F(SolverSpecTest, ExactlyOneTrainingNet) {
  EXPECT_EQ(Refusal(kRest),
            "s.prototxt: there is no training net: give one of net, net_param, train_net or "
            "train_net_param");
  EXPECT_EQ(
      Refusal("net: 'net.prototxt'\n train_net: 'net.prototxt'" + std::string(kRest)),
      "s.prototxt:2:2: the training net is given more than once (net, train_net); give one of "
      "net, net_param, train_net or train_net_param");
}

TEST_F(SolverSpecTest, AMissingNetFileNamesAllPathsTried) {
  const Caught caught = Catch([&] { Load("net: 'none.prototxt'" + std::string(kRest)); });
  EXPECT_EQ(caught.code, ErrorCode::kNoInput);
  EXPECT_THAT(caught.text,
              HasSubstr("s.prototxt:1:1: the net file 'none.prototxt' does not exist"));
  EXPECT_THAT(caught.text, EndsWith("/none.prototxt and " + folder_.path() + "/none.prototxt"));
}

TEST_F(SolverSpecTest, TestCountsMustFit) {
  EXPECT_THAT(RestRefusal("test_iter: 1" + std::string(kRest)),
              HasSubstr("there is a test net but no test_interval"));
  EXPECT_THAT(Refusal("train_net: 'net.prototxt'\ntest_interval: 1" + std::string(kRest)),
              StartsWith("s.prototxt:2:1: test_interval is set, but test_iter is missing"));
  EXPECT_THAT(
      Refusal("train_net: 'net.prototxt' test_iter: 1 test_interval: 1" + std::string(kRest)),
      HasSubstr("there are 0 test nets and 1 test_iter; give one test_iter per test net"));
  EXPECT_THAT(RestRefusal("test_iter: 1 test_interval: 1 test_state { } test_state { }" +
                          std::string(kRest)),
              HasSubstr("there are 1 test nets and 2 test_state; give none, or one per test net"));
  EXPECT_THAT(RestRefusal("test_iter: 3 test_iter: -1 test_interval: 1" + std::string(kRest)),
              StartsWith("s.prototxt:2:14: test_iter is -1; it must be at least 1, or 0 for one "
                         "exact pass"));
}

TEST_F(SolverSpecTest, WithoutTestIterATestIsOneExactPass) {
  for (const char* fields : {"test_interval: 1", "test_interval: 1 test_iter: 0"}) {
    const SolverSpec spec = Load("net: 'net.prototxt' " + std::string(fields) + std::string(kRest));
    EXPECT_EQ(spec.tests.size(), 1u) << fields;
    EXPECT_THAT(spec.proto.test_iter(), testing::ElementsAre(kExactPass)) << fields;
  }
}

}  // namespace
}  // namespace trainer
