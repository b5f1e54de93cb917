#include "trainer/config/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config_testing.h"
#include "trainer/config/resolved_solver.h"
#include "trainer/config/solver_spec.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr char kNet[] = R"(name: "n"
layer { name: "d" type: "Input" top: "x" include { phase: TRAIN } input_param { shape { dim: 8 } } }
layer { name: "d" type: "Input" top: "x" include { phase: TEST } input_param { shape { dim: 9 } } }
layer { name: "conv/1" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 4 } }
)";
constexpr char kSolver[] = R"(net: "net.prototxt" base_lr: 0.1 lr_policy: "multistep" max_iter: 10
stepvalue: 3 stepvalue: 6 gamma: 0.1 snapshot_prefix: "p" test_iter: 1 test_interval: 5
)";

class OverridesTest : public testing::Test {
 protected:
  OverridesTest() {
    folder_.Write("net.prototxt", kNet);
    folder_.Write("solver.prototxt", kSolver);
  }
  SolverSpec Solver(const std::vector<std::string>& set) const {
    Overrides overrides(set);
    return LoadSolver(folder_.path() + "/solver.prototxt", {}, &overrides);
  }
  NetSpec Net(const std::vector<std::string>& set) const {
    Overrides overrides(set);
    return LoadNet(folder_.path() + "/net.prototxt", &overrides);
  }
  std::string Refusal(const std::vector<std::string>& set) const {
    const Caught caught = Catch([&] { Solver(set); });
    EXPECT_EQ(caught.code, ErrorCode::kUsage);
    return caught.text;
  }

  TempFolder folder_;
};

TEST_F(OverridesTest, SetsFieldsOfTheSolver) {
  const SolverSpec spec =
      Solver({"base_lr=0.05", "snapshot_prefix=a b", "stepvalue[1]=8", "solver_mode=CPU"});
  EXPECT_FLOAT_EQ(spec.proto.base_lr(), 0.05f);
  EXPECT_EQ(spec.proto.snapshot_prefix(), "a b");
  EXPECT_THAT(spec.proto.stepvalue(), ElementsAre(3, 8));
  EXPECT_EQ(spec.proto.solver_mode(), caffe::SolverParameter::CPU);
}

TEST_F(OverridesTest, AWholeListTakesThePlaceOfAnother) {
  EXPECT_THAT(Solver({"stepvalue=[1,2,4]"}).proto.stepvalue(), ElementsAre(1, 2, 4));
  EXPECT_THAT(Solver({"stepvalue=5"}).proto.stepvalue(), ElementsAre(5));
}

TEST_F(OverridesTest, SetsFieldsOfLayersAndOfTheNet) {
  const SolverSpec spec =
      Solver({"layer[conv/1].convolution_param.num_output=64",
              "layer[conv/1].convolution_param.weight_filler.type=msra", "force_backward=true"});
  const caffe::LayerParameter& conv = spec.train.net->layers[2].proto();
  EXPECT_EQ(conv.convolution_param().num_output(), 64u);
  EXPECT_EQ(conv.convolution_param().weight_filler().type(), "msra");
  EXPECT_TRUE(spec.train.net->proto.force_backward());
}

TEST_F(OverridesTest, APhaseChoosesBetweenLayersOfOneName) {
  auto dims = [&](const std::string& set) {
    const NetSpec net = Net({set});
    return std::pair(net.layers[0].proto().input_param().shape(0).dim(0),
                     net.layers[1].proto().input_param().shape(0).dim(0));
  };
  EXPECT_THAT(dims("layer[d].input_param.shape[0].dim[0]=5"), Pair(5, 5));
  EXPECT_THAT(dims("layer[d,TEST].input_param.shape[0].dim=5"), Pair(8, 5));
}

TEST_F(OverridesTest, APatternChangesEveryLayerWhoseWholeNameMatches) {
  const auto frozen = [&](const std::string& index) {
    std::string names;
    const NetSpec net = Net({"layer[" + index + "].freeze=true"});
    for (const LayerSpec& layer : net.layers) names += layer.proto().freeze() ? "1" : "0";
    return names;
  };
  EXPECT_EQ(frozen("/conv.*/"), "001");
  EXPECT_EQ(frozen("/conv/[0-9]/"), "001") << "brackets and slashes of the pattern";
  EXPECT_EQ(frozen("/d/,TEST"), "010");
  EXPECT_EQ(frozen("/.*/"), "111");
  EXPECT_EQ(Refusal({"layer[/conv/].freeze=true"}),
            "--set layer[/conv/].freeze=true: no layer has a name that matches /conv/; the pattern "
            "must match the whole name, as /.*conv.*/ does for every name that contains 'conv'");
  EXPECT_THAT(Refusal({"layer[/conv(/].freeze=true"}), HasSubstr("is not a regular expression"));
}

// An earlier version changed only the first net that was read.
TEST_F(OverridesTest, AFieldOfTheNetChangesEachNetFile) {
  folder_.Write("other.prototxt", kNet);
  const std::string solver =
      folder_.Write("two.prototxt",
                    "train_net: \"net.prototxt\" test_net: \"other.prototxt\" base_lr: 1 "
                    "lr_policy: \"fixed\" max_iter: 4 test_iter: 1 test_interval: 2 "
                    "snapshot_prefix: \"p\"");
  Overrides overrides({"force_backward=true", "layer[conv/1].freeze=true", "base_lr=0.5"});
  const SolverSpec spec = LoadSolver(solver, {}, &overrides);
  EXPECT_FLOAT_EQ(spec.proto.base_lr(), 0.5f);
  for (const NetSpec* net : {spec.train.net, spec.tests[0].net}) {
    EXPECT_TRUE(net->proto.force_backward()) << net->file;
    EXPECT_TRUE(net->layers[2].proto().freeze()) << net->file;
  }
}

TEST_F(OverridesTest, ChangesAreCheckedLikeTheFile) {
  const Caught caught = CatchConfig([&] { Solver({"base_lr=-1"}); });
  EXPECT_THAT(caught.text, HasSubstr("base_lr"));
}

TEST_F(OverridesTest, RefusesFloatsThatAreNotFinite) {
  EXPECT_EQ(Refusal({"momentum=nan"}),
            "--set momentum=nan: momentum is nan; it must be a finite number");
  EXPECT_EQ(Refusal({"layer[conv/1].convolution_param.weight_filler={ std: inf }"}),
            "--set layer[conv/1].convolution_param.weight_filler={ std: inf }: std is inf; it must "
            "be a finite number");
}

TEST_F(OverridesTest, RefusesWhatFindsNothing) {
  EXPECT_THAT(Refusal({"base_lr"}), HasSubstr("--set base_lr: not of the form key=value"));
  EXPECT_THAT(Refusal({"a..b=1"}), HasSubstr("not of the form key=value"));
  EXPECT_EQ(Refusal({"base_rl=1"}),
            "--set base_rl=1: there is no field 'base_rl'. Did you mean 'base_lr'?");
  EXPECT_THAT(Refusal({"learning_rate=1"}), HasSubstr("Did you mean 'base_lr'?"));
  EXPECT_THAT(Refusal({"epochs=3"}), HasSubstr("'epochs'. Did you mean 'max_epoch'?"));
  EXPECT_EQ(Refusal({"layer[conv1].name=x"}),
            "--set layer[conv1].name=x: there is no layer 'conv1'. Did you mean 'conv/1'?");
  EXPECT_THAT(Refusal({"layer[conv/1].convolution_param.num_ouput=x"}),
              HasSubstr("there is no field 'num_ouput'. Did you mean 'num_output'?"));
  EXPECT_THAT(Refusal({"layer[conv/1]=3"}), HasSubstr("no field of the layer"));
  EXPECT_EQ(Refusal({"base_lr=fast"}),
            "--set base_lr=fast: 'fast' is not a value of base_lr: it needs a number");
  EXPECT_THAT(Refusal({"max_iter=1.5"}), HasSubstr("of max_iter: it needs a whole number"));
  EXPECT_THAT(Refusal({"max_iter=99999999999"}), HasSubstr("the number is out of range"));
  EXPECT_THAT(Refusal({"solver_mode=FPGA"}), HasSubstr("it needs one of CPU, GPU"));
  EXPECT_THAT(Refusal({"layer[conv/1].freeze=maybe"}), HasSubstr("it needs true or false"));
  EXPECT_THAT(
      Refusal({"layer[conv/1].convolution_param.weight_filler={ sdt: 1 }"}),
      HasSubstr("not a value of weight_filler: there is no field 'sdt'. Did you mean 'std'"));
  EXPECT_THAT(Refusal({"base_lr.x=1"}), HasSubstr("'base_lr' has no fields of its own"));
  EXPECT_THAT(Refusal({"stepvalue[2]=1"}), HasSubstr("no element '2' in stepvalue"));
  EXPECT_THAT(Refusal({"test_state[0].level=1"}), HasSubstr("number of elements: 0"));
}

TEST_F(OverridesTest, AKeyThatBeginsWithALayerIsShownWithItsIndex) {
  EXPECT_EQ(Refusal({"conv/1.convolution_param.num_output=64"}),
            "--set conv/1.convolution_param.num_output=64: there is no field 'conv/1'. Did you "
            "mean 'layer[conv/1].convolution_param.num_output=64'?");
  EXPECT_THAT(Refusal({"conv1.freeze=true"}),
              HasSubstr("Did you mean 'layer[conv/1].freeze=true'"));
  EXPECT_THAT(Refusal({"layer.freeze=true"}),
              HasSubstr("it names no layer; write layer[NAME].FIELD=VALUE"));
}

TEST_F(OverridesTest, TheResolvedSolverRepeatsTheRun) {
  const SolverSpec spec = Solver({"base_lr=0.05", "layer[conv/1].convolution_param.num_output=64"});
  const SolverSpec again =
      LoadSolver(folder_.Write("resolved.prototxt", ResolvedSolver(spec).DebugString()));
  EXPECT_FLOAT_EQ(again.proto.base_lr(), 0.05f);
  ASSERT_EQ(again.train.net->layers.size(), 3u);
  EXPECT_EQ(again.train.net->layers[2].proto().convolution_param().num_output(), 64u);
  EXPECT_EQ(again.tests.size(), 1u);
}

}  // namespace
}  // namespace trainer
