// Graphs without memory, and the errors of all layers at once.

#include "trainer/net/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kCompiledNet[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 20 } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

NetOptions Options() {
  NetOptions options;
  options.state = StateOf(caffe::TRAIN);
  options.training = true;
  options.log = false;
  return options;
}

TEST(CompileTest, KnowsShapesAndMemoryAndTakesNone) {
  const NetSpec spec = NetFromText(kCompiledNet);
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore planned(*device), taken(*device);
  const NetOptions options = Options();
  const Net real(spec, options, *device, taken);
  const std::unique_ptr<const Graph> graph = Compile(spec, options, *device, planned);
  EXPECT_EQ(graph->Find("ip").shape, (Shape{4, 20}));
  EXPECT_EQ(graph->Find("ip").data, nullptr);
  EXPECT_EQ(graph->memory.arena_bytes, real.graph().memory.arena_bytes);
  ASSERT_EQ(graph->params.size(), 2u);
  EXPECT_EQ(graph->params[0]->shape, (Shape{20, 3}));
  EXPECT_EQ(graph->params[0]->weight, nullptr);
  EXPECT_EQ(planned.WeightBytes(), 0u);
  EXPECT_EQ(planned.RequiredBytes(), taken.WeightBytes());
  EXPECT_EQ(taken.RequiredBytes(), taken.WeightBytes());
}

TEST(NetErrorsTest, LayersThatDoNotDependOnABadOneAreCheckedToo) {
  const NetSpec spec = NetFromText(R"(
layer { name: "data" type: "DummyData" top: "x" dummy_data_param { shape { dim: 4 dim: 3 } } }
layer { name: "bad" type: "InnerProduct" bottom: "x" top: "bad" }
layer { name: "behind" type: "Reshape" bottom: "bad" top: "behind" }
layer { name: "typo" type: "Poling" bottom: "behind" top: "typo" }
layer { name: "other" type: "Softmax" bottom: "x" top: "other" softmax_param { axis: 5 } }
)");
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params(*device);
  ErrorCollector errors;
  EXPECT_FALSE(errors.Try([&] { Net(spec, Options(), *device, params); }));
  std::vector<std::string> texts;
  for (const Error& error : errors.errors()) texts.emplace_back(error.what());
  EXPECT_THAT(texts, ElementsAre(HasSubstr("layer 'bad'"), HasSubstr("Did you mean 'Pooling'?"),
                                 HasSubstr("layer 'other'")));
}

TEST(NetValuesTest, ALayersInputAndOutputAreItsOwnWhoeverWritesTheBlobLater) {
  const NetSpec spec = NetFromText(kCompiledNet);
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params(*device);
  NetOptions options = Options();
  options.memory = BufferReuse::kSeparate;
  const Net net(spec, options, *device, params);
  const auto& nodes = net.graph().nodes;
  const Node &ip = nodes[NodeId(1)], &next = nodes[NodeId(2)], &loss = nodes[NodeId(3)];
  EXPECT_EQ(ip.spec.name(), "ip");
  EXPECT_EQ(net.Value(ip.out[0]).data, net.Value(next.in[0]).data);
  EXPECT_NE(net.Value(ip.out[0]).data, net.Value(next.out[0]).data);
  EXPECT_EQ(net.Value(next.out[0]).data, net.Value("ip").data);
  EXPECT_EQ(net.Value(loss.in[1]).shape, (Shape{4}));
}

}  // namespace
}  // namespace trainer
