#include "trainer/onnx/export_onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "onnx/exported.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kInput[] =
    "name: 'small'\n"
    "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 4 dim: 3 dim: 2 "
    "dim: "
    "2 } } }\n";

std::string Small(const std::string& layers) { return kInput + layers; }

TEST(ExportOnnxTest, TheModelSaysWhoWroteItAndWhichOperatorsItNeeds) {
  const Exported exported(Small("layer { name: 'y' type: 'TanH' bottom: 'data' top: 'y' }"));
  const onnx::ModelProto& model = exported.result.model;
  EXPECT_EQ(model.producer_name(), "trainer");
  EXPECT_EQ(model.ir_version(), 8);
  ASSERT_EQ(model.opset_import_size(), 1);
  EXPECT_EQ(model.opset_import(0).version(), 17);
  EXPECT_EQ(model.graph().name(), "small");
}

TEST(ExportOnnxTest, TheBatchSizeIsFree) {
  const Exported exported(Small("layer { name: 'y' type: 'Flatten' bottom: 'data' top: 'y' }"));
  EXPECT_EQ(Exported::Shapes(exported.graph().input()), "data (batch, 3, 2, 2)");
  EXPECT_EQ(Exported::Shapes(exported.graph().output()), "y (batch, 12)");
  EXPECT_THAT(exported.result.notes, ElementsAre("The batch size is free"));
}

TEST(ExportOnnxTest, ANetThatFixesItsBatchSizeSaysWhere) {
  const char* const layer =
      "layer { name: 'y' type: 'Reshape' bottom: 'data' top: 'y' reshape_param { shape { dim: 4 "
      "dim: "
      "12 } } }";
  const Exported exported(Small(layer));
  EXPECT_EQ(Exported::Shapes(exported.graph().input()), "data (4, 3, 2, 2)");
  ASSERT_EQ(exported.result.notes.size(), 1u);
  EXPECT_THAT(exported.result.notes[0], StartsWith("The batch size is fixed: "));
  EXPECT_THAT(exported.result.notes[0], HasSubstr("net.prototxt:3"));
}

TEST(ExportOnnxTest, FixedBatchKeepsTheSizeOfTheNet) {
  OnnxExportOptions options;
  options.fixed_batch = true;
  const Exported exported(Small("layer { name: 'y' type: 'TanH' bottom: 'data' top: 'y' }"),
                          options);
  EXPECT_EQ(Exported::Shapes(exported.graph().input()), "data (4, 3, 2, 2)");
}

// Returns the lengths that a Reshape node reads as its second input.
std::vector<int64_t> LengthsOf(const Exported& exported, const std::string& node) {
  const onnx::GraphProto& graph = exported.graph();
  const auto reshape = std::ranges::find(graph.node(), node, &onnx::NodeProto::name);
  if (reshape == graph.node().end()) return {};
  const auto constant =
      std::ranges::find(graph.initializer(), reshape->input(1), &onnx::TensorProto::name);
  std::vector<int64_t> values(constant->raw_data().size() / sizeof(int64_t));
  std::memcpy(values.data(), constant->raw_data().data(), constant->raw_data().size());
  return values;
}

TEST(ExportOnnxTest, AReshapeKeepsTheBatchSizeFree) {
  const Exported exported(Small(
      "layer { name: 'a' type: 'Reshape' bottom: 'data' top: 'a' reshape_param { shape { dim: "
      "0 dim: 6 dim: -1 } } }\n"
      "layer { name: 'b' type: 'Reshape' bottom: 'a' top: 'b' reshape_param { shape { dim: -1 "
      "dim: 2 } } }"));
  EXPECT_THAT(LengthsOf(exported, "a"), ElementsAre(0, 6, 2));
  EXPECT_THAT(LengthsOf(exported, "b"), ElementsAre(-1, 2));
}

// With 1 step and 1 sequence, the rows are as many as the steps. The export must not conclude that
// this holds for other batches.
TEST(ExportOnnxTest, AReshapeMergesStepsAndSequences) {
  const Exported exported(R"(
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 1 dim: 4 } } }
layer { name: "cont" type: "Input" top: "cont" input_param { shape { dim: 1 dim: 1 } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "h" recurrent_param {
  num_output: 2 } }
layer { name: "rows" type: "Reshape" bottom: "h" top: "rows" reshape_param { shape { dim: -1
  dim: 2 } } })");
  EXPECT_EQ(Exported::Shapes(exported.graph().input()), "x (time, batch, 4); cont (time, batch)");
  EXPECT_THAT(LengthsOf(exported, "rows"), ElementsAre(-1, 2));
}

TEST(ExportOnnxTest, WeightsWhoseShapeDependsOnTheBatchSizeFixIt) {
  const Exported exported(
      Small("layer { name: 'y' type: 'Bias' bottom: 'data' top: 'y' bias_param { axis: 0 } }"));
  EXPECT_EQ(Exported::Shapes(exported.graph().input()), "data (4, 3, 2, 2)");
  EXPECT_THAT(exported.result.notes, ElementsAre(HasSubstr("the weights of layer 'y'")));
}

// The last value of a blob gets the blob's name, as `trainer features` shows it. The value before
// it gets the layer's name.
TEST(ExportOnnxTest, BlobsAndLayersKeepTheirNames) {
  const Exported exported(Small(R"(
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param {
  num_output: 1 kernel_size: 1 bias_term: false } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "drop1" type: "Dropout" bottom: "conv1" top: "out" })"));
  EXPECT_EQ(exported.Nodes(),
            "conv1: Conv(data, conv1.weight) kernel_shape=1,1 strides=1,1 pads=0,0,0,0 "
            "dilations=1,1 group=1 -> conv1/conv1\n"
            "relu1: Relu(conv1/conv1) -> conv1\n"
            "out: Identity(conv1) -> out\n");
}

TEST(ExportOnnxTest, OutputsCanBeChosenAndTheRestIsLeftOut) {
  const char* const layers =
      "layer { name: 'a' type: 'TanH' bottom: 'data' top: 'a' }\n"
      "layer { name: 'b' type: 'Sigmoid' bottom: 'a' top: 'b' }";
  OnnxExportOptions options;
  options.outputs = {"a", "a"};
  const Exported exported(Small(layers), options);
  EXPECT_EQ(exported.Nodes(), "a: Tanh(data) -> a\n");
  EXPECT_EQ(Exported::Shapes(exported.graph().output()), "a (batch, 3, 2, 2)");
  options.outputs = {"aa"};
  const auto [code, message] = ErrorOf([&] { const Exported refused(Small(layers), options); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(message, HasSubstr("--output: the net has no blob 'aa'. Did you mean 'a'?"));
}

TEST(ExportOnnxTest, PreprocessingComesFirst) {
  OnnxExportOptions options;
  options.preprocessing = OnnxPreprocessing{.scale = 0.5f, .mean = {1, 2, 3}, .rgb = true};
  const Exported exported(Small("layer { name: 'y' type: 'TanH' bottom: 'data' top: 'y' }"),
                          options);
  EXPECT_EQ(exported.Nodes(),
            "preprocess/Gather: Gather(data, preprocess/const) axis=1 -> preprocess/Gather\n"
            "preprocess/Sub: Sub(preprocess/Gather, preprocess.mean) -> preprocess/Sub\n"
            "preprocess/Mul: Mul(preprocess/Sub, preprocess/const_1) -> preprocess/Mul\n"
            "y: Tanh(preprocess/Mul) -> y\n");
  EXPECT_THAT(exported.Constant("preprocess.mean"), ElementsAre(1, 2, 3));
}

TEST(ExportOnnxTest, AnOpsetThatIsNotKnownIsRefused) {
  OnnxExportOptions options;
  options.opset = 12;
  const auto [code, message] = ErrorOf([&] {
    const Exported exported(Small("layer { name: 'y' type: 'TanH' bottom: 'data' top: 'y' }"),
                            options);
  });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_EQ(message, "--opset=12: it must be 13 to 18");
}

}  // namespace
}  // namespace trainer
