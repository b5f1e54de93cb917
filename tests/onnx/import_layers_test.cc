// Compares nets that were imported from single nodes with values computed by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/import_testing.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

TEST(ImportLayersTest, AConvolutionWithPaddingAtOneEndGetsALargerKernel) {
  TestModel model;
  model.Input("x", {1, 1, 2, 2}).Floats("w", {1, 1, 2, 2}, {1, 10, 100, 1000});
  model.Node("Conv", {"x", "w"}, {"y"}).With("pads", {0, 0, 1, 1}).Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_EQ(imported.net.layer(1).convolution_param().kernel_size(0), 3u);
  // The input is x = 1 2 / 3 4, with zeros after the last row and column.
  EXPECT_THAT(Compute(imported, {{1, 2, 3, 4}}),
              ElementsAre(1 + 20 + 300 + 4000, 2 + 400, 3 + 40, 4));
}

TEST(ImportLayersTest, AutoPadKeepsTheSize) {
  TestModel model;
  model.Input("x", {1, 1, 1, 4}).Floats("w", {1, 1, 1, 2}, {1, 10});
  model.Node("Conv", {"x", "w"}, {"y"}).WithText("auto_pad", "SAME_LOWER").Output("y");
  EXPECT_THAT(Compute(model, {{1, 2, 3, 4}}), ElementsAre(10, 21, 32, 43));
}

TEST(ImportLayersTest, ATransposedConvolutionWithPositionsAfterTheLastWindow) {
  for (const bool shape : {false, true}) {
    TestModel model;
    model.Input("x", {1, 1, 1, 2}).Floats("w", {1, 1, 1, 2}, {1, 10});
    model.Node("ConvTranspose", {"x", "w"}, {"y"}).With("strides", {1, 2}).Output("y");
    if (shape) {
      model.With("output_shape", {1, 5});
    } else {
      model.With("output_padding", {0, 1});
    }
    EXPECT_THAT(Compute(model, {{3, 4}}), ElementsAre(3, 30, 4, 40, 0));
  }
}

TEST(ImportLayersTest, AMaximumWithPaddingAtOneEnd) {
  TestModel model;
  model.Input("x", {1, 1, 1, 4});
  model.Node("MaxPool", {"x"}, {"y"})
      .With("kernel_shape", {1, 3})
      .With("strides", {1, 2})
      .With("pads", {0, 0, 0, 1})
      .Output("y");
  EXPECT_THAT(Compute(model, {{-1, -2, -3, -4}}), ElementsAre(-1, -3));
}

TEST(ImportLayersTest, AMaximumWithMorePaddingAtTheEndThanALayerHas) {
  TestModel model;
  model.Input("x", {1, 1, 1, 3});
  model.Node("MaxPool", {"x"}, {"y"})
      .With("kernel_shape", {1, 2})
      .With("pads", {0, 0, 0, 1})
      .Output("y");
  EXPECT_THAT(Compute(model, {{-1, -2, -3}}), ElementsAre(-1, -2, -3));
}

TEST(ImportLayersTest, AMeanCountsPaddingOnlyIfTheNodeDoes) {
  for (const bool counts : {false, true}) {
    TestModel model;
    model.Input("x", {1, 1, 1, 3});
    model.Node("AveragePool", {"x"}, {"y"})
        .With("kernel_shape", {1, 3})
        .With("pads", {0, 1, 0, 1})
        .WithInt("count_include_pad", counts ? 1 : 0)
        .Output("y");
    const float ends = counts ? 3 : 2;
    EXPECT_THAT(
        Compute(model, {{3, 6, 12}}),
        ElementsAre(FloatNear(9 / ends, 1e-5f), FloatNear(7, 1e-5f), FloatNear(18 / ends, 1e-5f)));
  }
}

TEST(ImportLayersTest, PoolingThatRoundsUp) {
  TestModel model;
  model.Input("x", {1, 1, 1, 4});
  model.Node("AveragePool", {"x"}, {"y"})
      .With("kernel_shape", {1, 3})
      .With("strides", {1, 2})
      .WithInt("ceil_mode", 1)
      .Output("y");
  EXPECT_THAT(Compute(model, {{3, 6, 12, 2}}), ElementsAre(7, 7));
}

TEST(ImportLayersTest, AProductOfRowsAndConstants) {
  TestModel model;
  model.Input("x", {2, 2}).Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}).Floats("b", {3}, {10, 20, 30});
  model.Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"p", "b"}, {"y"}).Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_THAT(TypesOf(imported), ElementsAre("InnerProduct"));
  EXPECT_THAT(Compute(imported, {{1, 0, 0, 1}}), ElementsAre(11, 22, 33, 14, 25, 36));
}

TEST(ImportLayersTest, AGemmWithFactors) {
  TestModel model;
  model.Input("x", {1, 2}).Floats("w", {1, 2}, {1, 2}).Floats("b", {1}, {5});
  model.Node("Gemm", {"x", "w", "b"}, {"y"})
      .WithInt("transB", 1)
      .WithFloat("alpha", 2)
      .WithFloat("beta", 3)
      .Output("y");
  EXPECT_THAT(Compute(model, {{7, 8}}), ElementsAre(2 * (7 + 16) + 15));
}

TEST(ImportLayersTest, BatchNormIsTwoLayers) {
  TestModel model;
  model.Input("x", {1, 2, 1, 1});
  model.Floats("bn.weight", {2}, {2, 3}).Floats("bn.bias", {2}, {1, -1});
  model.Floats("mean", {2}, {1, 2}).Floats("var", {2}, {4, 9});
  model.Node("BatchNormalization", {"x", "bn.weight", "bn.bias", "mean", "var"}, {"y"})
      .WithFloat("epsilon", 0)
      .Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_THAT(TypesOf(imported), ElementsAre("BatchNorm", "Scale"));
  EXPECT_THAT(LayerNamesOf(imported), ElementsAre("bn", "bn_scale"));
  EXPECT_THAT(Compute(imported, {{5, 5}}), Pointwise(FloatNear(1e-5f), {5.0f, 2.0f}));
}

TEST(ImportLayersTest, ABroadcastFactorIsAScaleLayer) {
  TestModel model;
  model.Input("x", {1, 2, 1, 2}).Input("s", {1, 2, 1, 1});
  model.Node("Mul", {"x", "s"}, {"y"}).Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_THAT(TypesOf(imported), ElementsAre("Flatten", "Scale"));
  EXPECT_THAT(Compute(imported, {{1, 2, 3, 4}, {10, 100}}), ElementsAre(10, 20, 300, 400));
}

TEST(ImportLayersTest, ArithmeticWithConstants) {
  struct Case {
    const char* op;
    bool constant_first;
    std::vector<float> expected;  // for x = 1 2 / 4 8 by channel, c = 2 4
  };
  for (const Case& c : std::vector<Case>{{"Add", true, {3, 4, 8, 12}},
                                         {"Sub", true, {1, 0, 0, -4}},
                                         {"Sub", false, {-1, 0, 0, 4}},
                                         {"Mul", false, {2, 4, 16, 32}},
                                         {"Div", true, {2, 1, 1, 0.5f}},
                                         {"Div", false, {0.5f, 1, 1, 2}}}) {
    TestModel model;
    model.Input("x", {1, 2, 1, 2}).Floats("c", {2, 1, 1}, {2, 4});
    const std::vector<std::string> inputs = {c.constant_first ? "c" : "x",
                                             c.constant_first ? "x" : "c"};
    model.Node(c.op, inputs, {"y"}).Output("y");
    EXPECT_THAT(Compute(model, {{1, 2, 4, 8}}), Pointwise(FloatNear(1e-5f), c.expected))
        << c.op << c.constant_first;
  }
}

TEST(ImportLayersTest, PartsAndPlacesOfArrays) {
  TestModel model;
  model.Input("x", {1, 4, 1, 2}).Ints("starts", {1}).Ints("ends", {3}).Ints("axes", {1});
  model.Node("Slice", {"x", "starts", "ends", "axes"}, {"part"});
  model.Node("Transpose", {"part"}, {"turned"}).With("perm", {0, 3, 2, 1});
  model.Ints("last", {1}).Node("Gather", {"turned", "last"}, {"y"}).WithInt("axis", 1).Output("y");
  EXPECT_THAT(Compute(model, {Rising(8)}), ElementsAre(3, 5));
}

TEST(ImportLayersTest, PartsWithSteps) {
  TestModel model;
  model.Input("x", {1, 4, 1, 3}).Ints("starts", {-1, 0}).Ints("ends", {-9, 9});
  model.Ints("axes", {1, 3}).Ints("steps", {-2, 2});
  model.Node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"}).Output("y");
  EXPECT_THAT(Compute(model, {Rising(12)}), ElementsAre(9, 11, 3, 5));
}

TEST(ImportLayersTest, ShapesThatTheModelComputesAreConstants) {
  TestModel model;
  model.Input("x", {-1, 2, 3});
  model.Ints("zero", {0}).Ints("minus", {-1});
  model.Node("Shape", {"x"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"batch"});
  model.Node("Concat", {"batch", "minus"}, {"wanted"}).WithInt("axis", 0);
  model.Node("Reshape", {"x", "wanted"}, {"y"}).Output("y");
  const ImportedNet imported = model.Import({.batch = 2});
  EXPECT_THAT(TypesOf(imported), ElementsAre("Flatten"));
  EXPECT_EQ(Compute(imported, {Rising(12)}), Rising(12));
}

TEST(ImportLayersTest, ArraysOfConstantsAreJoinedAndTurned) {
  TestModel model;
  model.Input("x", {1, 4}).Floats("a", {2, 1}, {1, 2}).Floats("b", {2, 2}, {3, 4, 5, 6});
  model.Node("Concat", {"a", "b", "a"}, {"rows"}).WithInt("axis", 1);  // 1 3 4 1 / 2 5 6 2
  model.Node("Transpose", {"rows"}, {"columns"});
  model.Ints("start", {-1}).Ints("end", {-9}).Ints("zero", {0}).Ints("step", {-2});
  model.Node("Slice", {"columns", "start", "end", "zero", "step"}, {"part"});  // 1 2 / 3 5
  model.Ints("flat", {1, 4}).Node("Reshape", {"part", "flat"}, {"numbers"});
  model.Node("Add", {"x", "numbers"}, {"y"}).Output("y");
  EXPECT_THAT(Compute(model, {{0, 0, 0, 0}}), ElementsAre(1, 2, 3, 5));
}

TEST(ImportLayersTest, ATokenInFrontOfASequenceFitsAnyBatch) {
  TestModel model;
  model.Input("x", {-1, 2, 2}).Floats("token", {1, 1, 2}, {7, 8});
  model.Node("Concat", {"token", "x"}, {"y"}).WithInt("axis", 1).Output("y");
  ImportedNet imported = model.Import();
  imported.net.mutable_layer(0)->mutable_input_param()->mutable_shape(0)->set_dim(0, 2);
  EXPECT_THAT(Compute(imported, {{1, 2, 3, 4, 5, 6, 7, 8}}),
              ElementsAre(7, 8, 1, 2, 3, 4, 7, 8, 5, 6, 7, 8));
}

TEST(ImportLayersTest, ATokenAsLongAsItsSequenceLeavesTheSequence) {
  TestModel model;
  model.Input("x", {1, 1, 2}).Floats("token", {1, 1, 2}, {7, 8});
  model.Node("Abs", {"x"}, {"a"}).Node("Concat", {"token", "a"}, {"y"}).WithInt("axis", 1);
  model.Output("y");
  EXPECT_THAT(Compute(model, {{-1, 2}}), ElementsAre(7, 8, 1, 2));
}

TEST(ImportLayersTest, AResizeToANumberOfPixelsThatIsNoMultiple) {
  TestModel model;
  model.Input("x", {1, 1, 1, 3}).Ints("sizes", {1, 1, 1, 4});
  model.Node("Resize", {"x", "", "", "sizes"}, {"y"})
      .WithText("coordinate_transformation_mode", "asymmetric")
      .WithText("nearest_mode", "ceil")
      .Output("y");
  EXPECT_THAT(Compute(model, {{1, 2, 3}}), ElementsAre(1, 2, 3, 3));
}

TEST(ImportLayersTest, ImagesAreResizedByMatrices) {
  TestModel model;
  model.Input("x", {1, 1, 1, 2}).Floats("scales", {4}, {1, 1, 1, 2});
  model.Node("Resize", {"x", "", "scales"}, {"y"}).WithText("mode", "linear").Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_THAT(Compute(imported, {{0, 4}}), Pointwise(FloatNear(1e-5f), {0.0f, 1.0f, 3.0f, 4.0f}));
}

TEST(ImportLayersTest, RepeatedPixelsAreADeconvolution) {
  TestModel model;
  model.Input("x", {1, 2, 1, 2}).Floats("scales", {4}, {1, 1, 2, 2});
  model.Node("Resize", {"x", "", "scales"}, {"y"})
      .WithText("coordinate_transformation_mode", "asymmetric")
      .WithText("nearest_mode", "floor")
      .Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_THAT(TypesOf(imported), ElementsAre("Deconvolution"));
  EXPECT_THAT(Compute(imported, {{1, 2, 3, 4}}),
              ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4));
}

TEST(ImportLayersTest, PaddingByReflection) {
  TestModel model;
  model.Input("x", {1, 1, 1, 3}).Ints("pads", {0, 0, 0, 2, 0, 0, 0, 1});
  model.Node("Pad", {"x", "pads"}, {"y"}).WithText("mode", "reflect").Output("y");
  EXPECT_THAT(Compute(model, {{1, 2, 3}}), ElementsAre(3, 2, 1, 2, 3, 2));
}

TEST(ImportLayersTest, MeansOverAnyAxes) {
  TestModel model;
  model.Input("x", {1, 2, 3});
  model.Node("ReduceMean", {"x"}, {"y"}).With("axes", {1}).WithInt("keepdims", 0).Output("y");
  EXPECT_THAT(Compute(model, {{1, 2, 3, 5, 6, 7}}), ElementsAre(3, 4, 5));
}

TEST(ImportLayersTest, ExtremesOverAnyAxes) {
  for (const bool least : {false, true}) {
    TestModel model;
    model.Input("x", {2, 3, 2});
    model.Node(least ? "ReduceMin" : "ReduceMax", {"x"}, {"y"}).With("axes", {1}).Output("y");
    EXPECT_THAT(Compute(model, {{-1, 5, -3, 4, -2, 6, 7, 0, 8, 1, 9, 2}}),
                least ? ElementsAre(-3, 4, 7, 0) : ElementsAre(-1, 6, 9, 2));
  }
}

TEST(ImportLayersTest, AnLstmOfOneNumber) {
  // All gates are sigmoid(0) = 1/2 except g = tanh(x), so c = c / 2 + g / 2 and h = tanh(c) / 2.
  TestModel model;
  model.Input("x", {2, 1, 1})
      .Floats("w", {1, 4, 1}, {0, 0, 0, 1})
      .Floats("r", {1, 4, 1}, {0, 0, 0, 0});
  model.Node("LSTM", {"x", "w", "r"}, {"y"}).WithInt("hidden_size", 1).Output("y");
  onnx::AttributeProto* const usual =
      model.proto().mutable_graph()->mutable_node(0)->add_attribute();
  usual->set_name("activations");
  for (const char* function : {"Sigmoid", "Tanh", "Tanh"}) usual->add_strings(function);
  const float c1 = std::tanh(1.0f) / 2, c2 = c1 / 2 + std::tanh(2.0f) / 2;
  EXPECT_THAT(Compute(model, {{1, 2}}),
              Pointwise(FloatNear(1e-5f), {std::tanh(c1) / 2, std::tanh(c2) / 2}));
}

TEST(ImportLayersTest, AnLstmOfBothDirections) {
  TestModel model;
  model.Input("x", {2, 1, 1}).Floats("w", {2, 4, 1}, {0, 0, 0, 1, 0, 0, 0, 1});
  model.Floats("r", {2, 4, 1}, std::vector<float>(8, 0.0f));
  model.Node("LSTM", {"x", "w", "r"}, {"y"})
      .WithInt("hidden_size", 1)
      .WithText("direction", "bidirectional")
      .Output("y");
  const float first = std::tanh(std::tanh(1.0f) / 2) / 2,
              second = std::tanh(std::tanh(2.0f) / 2) / 2;
  const std::vector<float> y = Compute(model, {{1, 2}});  // shape (steps, directions)
  ASSERT_EQ(y.size(), 4u);
  EXPECT_NEAR(y[0], first, 1e-5f);
  EXPECT_NEAR(y[3], second, 1e-5f);
}

}  // namespace
}  // namespace trainer
