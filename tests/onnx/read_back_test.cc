#include "trainer/onnx/read_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/exported.h"
#include "support/temp_folder.h"
#include "trainer/onnx/write_onnx.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kNet[] = R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 6 dim: 6 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
  num_output: 4 kernel_size: 3 weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param {
  num_output: 5 weight_filler { type: "gaussian" std: 0.1 } } }
)";

TEST(ReadBackTest, AModelComputesTheSameNumbers) {
  const TempFolder folder;
  Exported exported(kNet);
  WriteOnnx(&exported.result.model, folder / "m.onnx");
  const ReadBackResult result =
      CompareWithModel(folder / "m.onnx", exported.net->net(), OnnxExportOptions());
  EXPECT_THAT(result.why_not, IsEmpty());
  EXPECT_EQ(result.output, "ip");
  EXPECT_GT(result.largest, 0);
  EXPECT_LT(result.Relative(), 1e-5f);
}

TEST(ReadBackTest, AChangedModelIsSeen) {
  const TempFolder folder;
  Exported exported(kNet);
  for (onnx::TensorProto& tensor : *exported.result.model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() != "ip.bias") continue;
    const std::vector<float> bias(5, 1.0f);
    tensor.set_raw_data(bias.data(), bias.size() * sizeof(float));
  }
  WriteOnnx(&exported.result.model, folder / "m.onnx");
  const ReadBackResult result =
      CompareWithModel(folder / "m.onnx", exported.net->net(), OnnxExportOptions());
  EXPECT_NEAR(result.difference, 1, 1e-4);
  EXPECT_THAT(ToText(result), HasSubstr("Read back: the largest difference from the net is 1"));
}

// The pass that computes the constant cont leaves a state in the net. The model starts without it,
// so the comparison must reset it.
TEST(ReadBackTest, ARecurrentNetBeginsWithoutAState) {
  const TempFolder folder;
  Exported exported(R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 3 dim: 1 dim: 4 } } }
layer { name: "cont" type: "DummyData" top: "cont" dummy_data_param { shape { dim: 3 dim: 1 }
  data_filler { value: 1 } } }
layer { name: "y" type: "LSTM" bottom: "data" bottom: "cont" top: "y" recurrent_param {
  num_output: 2 weight_filler { type: "gaussian" std: 0.5 } bias_filler { value: 1 } } })");
  WriteOnnx(&exported.result.model, folder / "m.onnx");
  const ReadBackResult result =
      CompareWithModel(folder / "m.onnx", exported.net->net(), OnnxExportOptions());
  EXPECT_THAT(result.why_not, IsEmpty());
  EXPECT_LT(result.Relative(), 1e-5f);
}

TEST(ReadBackTest, AModelThatCannotBeImportedIsNotCompared) {
  const TempFolder folder;
  Exported exported(R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 3 dim: 1 dim: 4 } } }
layer { name: "cont" type: "Input" top: "cont" input_param { shape { dim: 3 dim: 1 } } }
layer { name: "y" type: "RNN" bottom: "data" bottom: "cont" top: "y" recurrent_param {
  num_output: 2 } })");
  WriteOnnx(&exported.result.model, folder / "m.onnx");
  const ReadBackResult result =
      CompareWithModel(folder / "m.onnx", exported.net->net(), OnnxExportOptions());
  EXPECT_THAT(result.why_not, HasSubstr("Scan"));
  EXPECT_THAT(ToText(result), HasSubstr("Read back, but not compared with the net"));
}

}  // namespace
}  // namespace trainer
