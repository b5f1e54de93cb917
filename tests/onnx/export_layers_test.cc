#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/layer_export.h"
#include "onnx/exported.h"
#include "support/error_of.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

constexpr char kImage[] =
    "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 6 dim: 5 } "
    "} }\n";

std::string WithImage(const std::string& layers) { return kImage + layers; }

void ExpectExportRefused(const std::string& text, const std::string& part) {
  const auto [code, message] = ErrorOf([&] { const Exported exported(text); });
  EXPECT_EQ(code, ErrorCode::kConfig) << message;
  EXPECT_THAT(message, HasSubstr(part));
}

TEST(ExportLayersTest, EachLayerTypeHasARule) {
  for (const auto& [type, doc] : LayerDocs()) {
    if (type.starts_with("Test")) continue;  // tests/support registers these
    EXPECT_TRUE(ExportRules().contains(type)) << type << " needs a rule in src/onnx/export/";
  }
}

TEST(ExportLayersTest, ConvolutionHasTheAttributesOfItsFields) {
  const Exported exported(WithImage(R"(
layer { name: "conv" type: "Convolution" bottom: "x" top: "y" convolution_param {
  num_output: 6 kernel_h: 3 kernel_w: 2 stride: 2 pad_h: 1 dilation: 1 group: 3 } })"));
  EXPECT_EQ(exported.Nodes(),
            "conv: Conv(x, conv.weight, conv.bias) kernel_shape=3,2 strides=2,2 pads=1,0,1,0 "
            "dilations=1,1 group=3 -> y\n");
}

// With a mean of 4 and a variance of 4 - eps, the weight 2 and the bias 1 of the convolution become
// 2 * 3 / 2 and (1 - 4) * 3 / 2 + 5.
TEST(ExportLayersTest, BatchNormAndScaleChangeTheWeightsOfAConvolution) {
  Exported exported(WithImage(R"(
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv" convolution_param { num_output: 1
  kernel_size: 1 weight_filler { value: 2 } bias_filler { value: 1 } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" batch_norm_param { eps: 1 } }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true
  filler { value: 3 } bias_filler { value: 5 } } })"));
  Net& net = exported.net->net();
  for (const Param* param : net.params()) {
    const float values[] = {8, 6, 2};  // sums of weight 2: the mean is 4 and the variance 3
    if (param->layer == "bn") *param->weight = values[param->index];
  }
  exported.result = ExportOnnx(exported.spec, net, {});
  EXPECT_EQ(exported.graph().node_size(), 1) << exported.Nodes();
  EXPECT_EQ(exported.graph().node(0).output(0), "conv");
  EXPECT_THAT(exported.Constant("conv.weight"), ElementsAre(FloatEq(3), FloatEq(3), FloatEq(3)));
  EXPECT_THAT(exported.Constant("conv.bias"), ElementsAre(FloatEq(0.5f)));
}

TEST(ExportLayersTest, AFrozenBatchNormUsesItsStoredStatistics) {
  const auto nodes = [](const char* freeze) {
    return Exported(WithImage(Join("layer { name: 'y' type: 'BatchNorm' bottom: 'x' top: 'y' ",
                                   "batch_norm_param { use_global_stats: false } ", freeze, " }")))
        .Nodes();
  };
  EXPECT_THAT(nodes("freeze: true"), HasSubstr("y: BatchNormalization(x, "));
  EXPECT_THAT(nodes(""), HasSubstr("ReduceMean(x)"));
}

TEST(ExportLayersTest, ABlobWithAnotherReaderOrAnOutputIsNotFolded) {
  const char* const layers = R"(
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param { num_output: 4 } }
layer { name: "scale" type: "Scale" bottom: "ip" top: "scaled" })";
  OnnxExportOptions options;
  options.outputs = {"ip", "scaled"};
  EXPECT_EQ(Exported(WithImage(layers), options).Nodes(),
            "ip/Flatten: Flatten(x) axis=1 -> ip/Flatten\n"
            "ip: Gemm(ip/Flatten, ip.weight, ip.bias) transB=1 -> ip\n"
            "scale: Mul(ip, scale.scale) -> scaled\n");
  EXPECT_THAT(Exported(WithImage(layers)).Nodes(),
              HasSubstr("ip: Gemm(ip/Flatten, ip.weight, ip.bias) transB=1 -> scaled\n"));
}

// With an image of 6 x 5, kernel 3 and stride 2, rounding up gives 3 x 2 windows, and the last
// window exceeds the image by 1 row.
TEST(ExportLayersTest, PoolingRoundsUpByPaddingAtTheEnd) {
  EXPECT_EQ(Exported(WithImage(R"(
layer { name: "y" type: "Pooling" bottom: "x" top: "y" pooling_param { kernel_size: 3 stride: 2 } })"))
                .Nodes(),
            "y: MaxPool(x) kernel_shape=3,3 strides=2,2 pads=0,0,1,0 -> y\n");
}

TEST(ExportLayersTest, AveragesCountThePaddingButNotWhatIsBeyondIt) {
  const auto nodes = [](const std::string& fields) {
    return Exported(WithImage(Join("layer { name: 'y' type: 'Pooling' bottom: 'x' top: 'y' ",
                                   "pooling_param { pool: AVE ", fields, " } }")))
        .Nodes();
  };
  EXPECT_EQ(nodes("kernel_size: 3 stride: 2"),
            "y: AveragePool(x) kernel_shape=3,3 strides=2,2 pads=0,0,1,0 -> y\n");
  EXPECT_EQ(nodes("kernel_size: 3 stride: 1 pad: 1"),
            "y: AveragePool(x) kernel_shape=3,3 strides=1,1 pads=1,1,1,1 count_include_pad=1 -> "
            "y\n");
  EXPECT_EQ(nodes("kernel_size: 3 stride: 2 pad: 1"),
            "y/Pad: Pad(x, y/const) -> y/Pad\n"
            "y: AveragePool(y/Pad) kernel_shape=3,3 strides=2,2 pads=0,0,1,0 -> y\n");
  EXPECT_EQ(nodes("global_pooling: true"), "y: GlobalAveragePool(x) -> y\n");
}

TEST(ExportLayersTest, DropoutIsLeftOut) {
  EXPECT_EQ(Exported(WithImage(R"(
layer { name: "relu" type: "ReLU" bottom: "x" top: "a" }
layer { name: "drop" type: "Dropout" bottom: "a" top: "b" }
layer { name: "tanh" type: "TanH" bottom: "b" top: "c" })"))
                .Nodes(),
            "relu: Relu(x) -> a\ntanh: Tanh(a) -> c\n");
}

TEST(ExportLayersTest, OperatorsTakeTheFormOfTheOpset) {
  const char* const layer =
      "layer { name: 'y' type: 'LayerNorm' bottom: 'x' top: 'y' layer_norm_param { axis: -1 } }";
  OnnxExportOptions options;
  options.opset = 17;
  EXPECT_THAT(Exported(WithImage(layer), options).Nodes(),
              HasSubstr("y: LayerNormalization(x, y.scale, y.bias) axis=3 epsilon=1e-05 -> y\n"));
  options.opset = 13;
  const Exported old(WithImage(layer), options);
  EXPECT_THAT(old.Nodes(), HasSubstr("ReduceMean(x) axes=3 keepdims=1"));
  EXPECT_EQ(old.result.model.ir_version(), 7);
  options.opset = 18;
  const char* const mean =
      "layer { name: 'y' type: 'Reduction' bottom: 'x' top: 'y' reduction_param { operation: MEAN "
      "axis: 1 } }";
  EXPECT_EQ(Exported(WithImage(mean), options).Nodes(),
            "y: ReduceMean(x, y/const) keepdims=0 -> y\n");
}

TEST(ExportLayersTest, ValuesThatDependOnShapesAreConstants) {
  const Exported exported(WithImage(R"(
layer { name: "pool" type: "Pooling" bottom: "x" top: "map" pooling_param { kernel_size: 5 stride: 5
  } }
layer { name: "prior" type: "PriorBox" bottom: "map" bottom: "x" top: "prior"
  prior_box_param { min_size: 2 } }
layer { name: "twice" type: "Power" bottom: "prior" top: "twice" power_param { scale: 2 } }
layer { name: "z" type: "Input" top: "z" input_param { shape { dim: 1 dim: 2 dim: 8 } } }
layer { name: "y" type: "Eltwise" bottom: "z" bottom: "twice" top: "y" })"));
  EXPECT_EQ(exported.Nodes(), "y: Add(z, twice) -> y\n");
  // The image has two cells of 3 x 5 pixels. The constant holds the squares around (2.5, 1.5) and
  // (2.5, 4.5) as fractions of 5 x 6 pixels, and eight variances of 0.1, all times 2.
  EXPECT_THAT(
      exported.Constant("twice"),
      Pointwise(FloatNear(1e-6f), {0.6f, 1.0f / 6, 1.4f, 5.0f / 6, 0.6f, 7.0f / 6, 1.4f, 11.0f / 6,
                                   0.2f, 0.2f, 0.2f, 0.2f, 0.2f, 0.2f, 0.2f, 0.2f}));
}

TEST(ExportLayersTest, AKnownSequenceIsAnLstmAndAnotherAScan) {
  const auto text = [](const std::string& cont) {
    return Join(
        "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 3 dim: 1 dim: 4 "
        "} } }\n",
        cont,
        "layer { name: 'y' type: 'LSTM' bottom: 'x' bottom: 'cont' top: 'y' "
        "recurrent_param { num_output: 2 } }");
  };
  const Exported scan(
      text("layer { name: 'cont' type: 'Input' top: 'cont' input_param { shape { dim: 3 dim: 1 } } "
           "}\n"));
  EXPECT_THAT(scan.Nodes(), HasSubstr("y: Scan("));
  EXPECT_EQ(Exported::Shapes(scan.graph().input()), "x (time, batch, 4); cont (time, batch)");
  EXPECT_THAT(scan.result.notes, testing::Contains(HasSubstr("states of 1 recurrent layer are 0")));
  const Exported known(
      text("layer { name: 'cont' type: 'DummyData' top: 'cont' dummy_data_param { shape { dim: 3 "
           "dim: 1 } data_filler { value: 1 } } }\n"));
  EXPECT_THAT(known.Nodes(), HasSubstr("LSTM(x, y.weight_x, y.weight_h, y.bias) hidden_size=2"));
}

TEST(ExportLayersTest, WhatOnnxCannotExpressIsRefusedAtItsLine) {
  ExpectExportRefused(
      WithImage("layer { name: 'y' type: 'DummyData' top: 'z' dummy_data_param { shape { "
                "dim: 2 } data_filler { type: 'uniform' } } }\n"
                "layer { name: 'l' type: 'Reduction' bottom: 'z' top: 'w' }"),
      "net.prototxt:2:");
  ExpectExportRefused(
      WithImage("layer { name: 'd' type: 'DummyData' top: 'd' dummy_data_param { shape { "
                "dim: 2 dim: 3 dim: 6 dim: 5 } } }\n"
                "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' bottom: 'd' top: "
                "'l' }"),
      "layer 'l' (EuclideanLoss): cannot be exported to ONNX: it is for training and "
      "tests; make the net for predictions with 'trainer deploy'");
  ExpectExportRefused(
      WithImage("layer { name: 'y' type: 'Pooling' bottom: 'x' top: 'y' pooling_param { "
                "kernel_size: 1 stride: 4 } }"),
      "cannot be exported to ONNX: the last window has no pixel of the image");
  ExpectExportRefused(
      WithImage("layer { name: 'r' type: 'Reshape' bottom: 'x' top: 'r' reshape_param { shape { "
                "dim: 1 dim: 3 dim: -1 dim: 5 } } }\n"
                "layer { name: 'y' type: 'Pooling' bottom: 'r' top: 'y' pooling_param { "
                "kernel_size: 2 } }"),
      "the length of its axis 2 depends on the batch size; give --batch=fixed");
}

TEST(ExportLayersTest, DetectionsAreSuppressedByOneNode) {
  const std::string text = R"(
layer { name: "loc" type: "Input" top: "loc" input_param { shape { dim: 1 dim: 8 } } }
layer { name: "conf" type: "Input" top: "conf" input_param { shape { dim: 1 dim: 6 } } }
layer { name: "prior" type: "Input" top: "prior" input_param { shape { dim: 1 dim: 2 dim: 8 } } }
layer { name: "y" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "prior" top: "y"
  detection_output_param { num_classes: 3 keep_top_k: 5 nms_param { eta: ETA } } })";
  const auto with_eta = [&](const std::string& eta) {
    std::string changed = text;
    return changed.replace(changed.find("ETA"), 3, eta);
  };
  OnnxExportOptions options;
  options.fixed_batch = true;
  const Exported exported(with_eta("1"), options);
  EXPECT_THAT(exported.Nodes(), HasSubstr("y/NonMaxSuppression: NonMaxSuppression("));
  EXPECT_EQ(Exported::Shapes(exported.graph().output()), "y (1, 1, ?, 7)");
  EXPECT_THAT(exported.Nodes(), HasSubstr("y/Max: Max("));  // reorders swapped corners
  ExpectExportRefused(with_eta("0.9"), "eta changes the overlap that is allowed");
}

}  // namespace
}  // namespace trainer
