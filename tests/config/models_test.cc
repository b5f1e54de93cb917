// Tests the nets and solvers that come with the program, and syntax that published models use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "config/config_testing.h"
#include "support/source_folder.h"
#include "trainer/base/text/text.h"
#include "trainer/config/net_layers.h"
#include "trainer/config/solver_spec.h"

namespace trainer {
namespace {

using testing::ElementsAre;

std::vector<LayerSpec> Compile(const NetSpec& net, caffe::Phase phase) {
  caffe::NetState state;
  state.set_phase(phase);
  return ConnectedLayers(net, state);
}

TEST(ModelsTest, EverySolverOfTheModelsFolderLoadsAndItsNetsConnect) {
  int solvers = 0;
  const std::filesystem::path models = std::filesystem::path(SourceFolder()) / "models";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(models)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("solver") || !name.ends_with(".prototxt")) continue;
    SCOPED_TRACE(entry.path().string());
    const SolverSpec solver = LoadSolver(entry.path().string());
    EXPECT_FALSE(ConnectedLayers(*solver.train.net, solver.train.state).empty());
    for (const NetUse& test : solver.tests) {
      EXPECT_FALSE(ConnectedLayers(*test.net, test.state).empty());
    }
    ++solvers;
  }
  EXPECT_GT(solvers, 0);
}

TEST(ModelsTest, AnInceptionModuleSplitsItsInput) {
  const TempFolder folder;
  std::string text = "layer { name: 'data' type: 'Input' top: 'pool' }\n";
  for (const char* branch : {"1x1", "3x3_reduce", "5x5_reduce"}) {
    text +=
        Join("layer { name: 'a/", branch, "' type: 'Convolution' bottom: 'pool' top: 'a/", branch,
             "' convolution_param { num_output: 4 kernel_size: 1 weight_filler { type: 'xavier' "
             "std: 0.03 } } }\n",
             "layer { name: 'a/relu_", branch, "' type: 'ReLU' bottom: 'a/", branch, "' top: 'a/",
             branch, "' }\n");
  }
  text +=
      "layer { name: 'a/out' type: 'Concat' bottom: 'a/1x1' bottom: 'a/3x3_reduce' bottom: "
      "'a/5x5_reduce' top: 'a/out' }\n"
      "layer { name: 'loss1' type: 'SoftmaxWithLoss' bottom: 'a/out' top: 'l' loss_weight: 0.3 }";
  const NetSpec net = LoadNet(folder.Write("net.prototxt", text));
  const auto layers = Compile(net, caffe::TRAIN);
  ASSERT_EQ(layers.size(), net.layers.size() + 1);
  EXPECT_EQ(layers[1].name(), "pool_data_0_split");
  EXPECT_EQ(layers[1].proto().top_size(), 3);
  EXPECT_THAT(layers[4].proto().bottom(), ElementsAre("pool_data_0_split_1"));
}

TEST(ModelsTest, ASolverMayHoldOldNetsAndSeveralTests) {
  const TempFolder folder;
  const std::string net =
      "net_param {\n"
      "  layers {\n"
      "    name: 'd' type: DATA top: 'x' data_param { source: 's' scale: 0.5 }\n"
      "    include: { phase: TRAIN }\n"
      "  }\n"
      "  layers { name: 't' type: DUMMY_DATA top: 'x' include { stage: 'b' } }\n"
      "}\n";
  const SolverSpec solver = LoadSolver(
      folder.Write("s.prototxt", "test_iter: 1\n" + net +
                                     "base_lr: 1 lr_policy: 'fixed' max_iter: 5 test_interval: 1\n"
                                     "test_state: { stage: 'b' }"));
  const auto train = FilterLayers(*solver.train.net, solver.train.state);
  ASSERT_EQ(train.size(), 1u);
  EXPECT_EQ(train[0].type(), "Data");
  EXPECT_FLOAT_EQ(train[0].proto().transform_param().scale(), 0.5);
  EXPECT_EQ(train[0].WhereIn("data_param", "source").ToString(), solver.file + ":4:48");
  const auto test = FilterLayers(*solver.tests[0].net, solver.tests[0].state);
  ASSERT_EQ(test.size(), 1u);
  EXPECT_EQ(test[0].name(), "t");
}

}  // namespace
}  // namespace trainer
