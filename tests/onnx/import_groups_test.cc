// Tests the groups of nodes that become one layer, and the layers' names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/import_testing.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

TEST(ImportGroupsTest, GeluByItsParts) {
  for (const bool half_first : {false, true}) {
    TestModel model;
    model.Input("x", {1, 3}).Floats("root", {}, {std::sqrt(2.0f)}).Floats("one", {}, {1});
    model.Floats("half", {}, {0.5f});
    model.Node("Div", {"x", "root"}, {"a"})
        .Node("Erf", {"a"}, {"b"})
        .Node("Add", {"b", "one"}, {"c"});
    if (half_first) {
      model.Node("Mul", {"x", "half"}, {"h"}).Node("Mul", {"h", "c"}, {"y"});
    } else {
      model.Node("Mul", {"x", "c"}, {"d"}).Node("Mul", {"d", "half"}, {"y"});
    }
    model.Output("y");
    const ImportedNet imported = model.Import();
    EXPECT_THAT(TypesOf(imported), ElementsAre("GELU"));
    EXPECT_THAT(Compute(imported, {{-1, 0, 2}}),
                Pointwise(FloatNear(1e-4f), {-0.158655f, 0.0f, 1.9545f}));
  }
}

TEST(ImportGroupsTest, ErfAloneIsRefused) {
  TestModel model;
  model.Input("x", {1, 3}).Node("Erf", {"x"}, {"y"}).Output("y");
  EXPECT_THROW(model.Import(), Error);
}

TEST(ImportGroupsTest, GatesOfTheirInput) {
  TestModel model;
  model.Input("x", {1, 2});
  model.Node("Sigmoid", {"x"}, {"s"}).Node("Mul", {"x", "s"}, {"a"});
  model.Node("HardSigmoid", {"a"}, {"h"}).WithFloat("alpha", 1 / 6.0f).WithFloat("beta", 0.5f);
  model.Node("Mul", {"h", "a"}, {"b"});
  model.Floats("three", {}, {3}).Floats("zero", {}, {0}).Floats("six", {}, {6});
  model.Node("Add", {"b", "three"}, {"c"}).Node("Clip", {"c", "zero", "six"}, {"d"});
  model.Node("Mul", {"b", "d"}, {"e"}).Node("Div", {"e", "six"}, {"f"});
  model.Node("Softplus", {"f"}, {"g"}).Node("Tanh", {"g"}, {"i"}).Node("Mul", {"f", "i"}, {"y"});
  model.Output("y");
  EXPECT_THAT(TypesOf(model.Import()), ElementsAre("SiLU", "HardSwish", "HardSwish", "Mish"));
}

TEST(ImportGroupsTest, LayerNormByItsParts) {
  TestModel model;
  model.Input("x", {1, 2, 2}).Floats("two", {}, {2}).Floats("eps", {}, {0});
  model.Floats("scale", {2}, {1, 2}).Floats("shift", {2}, {0, 1});
  model.Node("ReduceMean", {"x"}, {"m"}).With("axes", {-1}).Node("Sub", {"x", "m"}, {"d"});
  model.Node("Pow", {"d", "two"}, {"q"}).Node("ReduceMean", {"q"}, {"v"}).With("axes", {-1});
  model.Node("Add", {"v", "eps"}, {"e"}).Node("Sqrt", {"e"}, {"r"}).Node("Div", {"d", "r"}, {"n"});
  model.Node("Mul", {"n", "scale"}, {"s"}).Node("Add", {"s", "shift"}, {"y"}).Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_THAT(TypesOf(imported), ElementsAre("LayerNorm"));
  EXPECT_THAT(Compute(imported, {{1, 3, 4, 8}}),
              Pointwise(FloatNear(1e-4f), {-1.0f, 3.0f, -1.0f, 3.0f}));
}

TEST(ImportGroupsTest, PaddingBelongsToTheConvolution) {
  TestModel model;
  model.Input("x", {1, 1, 1, 2}).Ints("pads", {0, 0, 0, 1, 0, 0, 0, 1});
  model.Floats("w", {1, 1, 1, 3}, {1, 10, 100}).Floats("b", {1, 1, 1}, {0.5f});
  model.Node("Pad", {"x", "pads"}, {"p"}).Node("Conv", {"p", "w"}, {"c"});
  model.Node("Add", {"c", "b"}, {"y"}).Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_THAT(TypesOf(imported), ElementsAre("Convolution"));
  EXPECT_THAT(Compute(imported, {{1, 2}}), ElementsAre(210.5f, 21.5f));
}

TEST(ImportGroupsTest, TransposesThatCancelLeaveNoLayer) {
  TestModel model;
  model.Input("x", {1, 2, 3});
  model.Node("Transpose", {"x"}, {"a"}).With("perm", {0, 2, 1});
  model.Node("Transpose", {"a"}, {"b"}).With("perm", {0, 2, 1}).Node("Relu", {"b"}, {"y"});
  model.Output("y");
  EXPECT_THAT(TypesOf(model.Import()), ElementsAre("ReLU"));
}

TEST(ImportGroupsTest, AProductAndASumWithConstantsAreOneScale) {
  TestModel model;
  model.Input("x", {1, 2, 1, 1}).Floats("s", {2, 1, 1}, {2, 3}).Floats("b", {2, 1, 1}, {1, -1});
  model.Node("Mul", {"x", "s"}, {"a"}).Node("Add", {"a", "b"}, {"y"}).Output("y");
  const ImportedNet imported = model.Import();
  EXPECT_THAT(TypesOf(imported), ElementsAre("Scale"));
  EXPECT_THAT(Compute(imported, {{5, 7}}), ElementsAre(11, 20));
}

// Returns attention with two heads of one number each over two positions, with the packed product
// that PyTorch writes.
TestModel AttentionModel(bool fits, bool has_zero = false) {
  TestModel model;
  model.Input("x", {1, 2, 2});
  model.Floats("in", {2, 6}, {1, 0, 0, 1, 1, 2, 0, 1, 1, 0, 3, 1}).Floats("in_b", {6}, Rising(6));
  model.Floats("out", {2, 2}, {1, 2, 3, 4}).Floats("out_b", {2}, {0.5f, -0.5f});
  model.Ints("packed", {2, 1, 3, 2}).Ints("heads", {2, 2, 1}).Ints("back", {2, 1, 2});
  model.Node("Transpose", {"x"}, {"first"}).With("perm", {1, 0, 2});
  model.Node("MatMul", {"first", "in"}, {"p"}).Node("Add", {"p", "in_b"}, {"q"});
  model.Node("Reshape", {"q", "packed"}, {"r"});
  for (const char* which : {"0", "1", "2"}) {
    const std::string i = which;
    onnx::TensorProto* const index = model.proto().mutable_graph()->add_initializer();
    index->set_name("i" + i);
    index->set_data_type(onnx::TensorProto::INT64);
    index->add_int64_data(which[0] - '0');
    model.Node("Gather", {"r", "i" + i}, {"g" + i}).WithInt("axis", 2);
    model.Node("Reshape", {"g" + i, "heads"}, {"h" + i});
  }
  model.Node("Transpose", {"h0"}, {"Q"}).With("perm", {1, 0, 2});
  model.Node("Transpose", {"h1"}, {"K"}).With("perm", {1, 2, 0});
  model.Node("Transpose", {"h2"}, {"V"}).With("perm", {1, 0, 2});
  model.Floats("scale", {}, {fits ? 1.0f : 2.0f});
  model.Node("MatMul", {"Q", "K"}, {"s"}).Node("Mul", {"s", "scale"}, {"t"});
  model.Floats("zero", {1, 1}, {0});
  if (has_zero) model.Node("Add", {"t", "zero"}, {"masked"});
  model.Node("Softmax", {has_zero ? "masked" : "t"}, {"a"}, "/self_attention/Softmax");
  model.WithInt("axis", -1);
  model.Node("MatMul", {"a", "V"}, {"o"});
  model.Node("Transpose", {"o"}, {"c"}).With("perm", {1, 0, 2});
  model.Node("Reshape", {"c", "back"}, {"d"});
  model.Node("MatMul", {"d", "out"}, {"e"}).Node("Add", {"e", "out_b"}, {"f"});
  model.Node("Transpose", {"f"}, {"y"}).With("perm", {1, 0, 2}).Output("y");
  return model;
}

TEST(ImportGroupsTest, SelfAttentionIsOneLayerWithTheSameNumbers) {
  const ImportedNet layer = AttentionModel(true).Import(), parts = AttentionModel(false).Import();
  EXPECT_THAT(TypesOf(layer), ElementsAre("MultiHeadAttention"));
  EXPECT_THAT(LayerNamesOf(layer), ElementsAre("self_attention"));
  EXPECT_THAT(TypesOf(parts), testing::Contains("MatMul"));
  // Computes the expected values by hand for x = 1 0 / 0 1: q = x W + b and so on, for each head.
  const float w[2][6] = {{1, 0, 0, 1, 1, 2}, {0, 1, 1, 0, 3, 1}};
  float mixed[2][2];
  for (int head = 0; head < 2; ++head) {
    const auto of = [&](int position, int part) {
      return w[position][2 * part + head] + static_cast<float>(2 * part + head);
    };
    for (int i = 0; i < 2; ++i) {
      const float e0 = std::exp(of(i, 0) * of(0, 1)), e1 = std::exp(of(i, 0) * of(1, 1));
      mixed[i][head] = (e0 * of(0, 2) + e1 * of(1, 2)) / (e0 + e1);
    }
  }
  std::vector<float> expected;
  for (const auto& row : mixed) {
    expected.push_back(row[0] + 3 * row[1] + 0.5f);
    expected.push_back(2 * row[0] + 4 * row[1] - 0.5f);
  }
  EXPECT_THAT(Compute(layer, {{1, 0, 0, 1}}), Pointwise(FloatNear(1e-4f), expected));
}

TEST(ImportGroupsTest, AddingZeroToAttentionIsNotACausalMask) {
  EXPECT_THAT(TypesOf(AttentionModel(true, true).Import()), testing::Contains("MatMul"));
}

TEST(ImportGroupsTest, NamesComeFromModules) {
  TestModel model;
  model.Input("x", {1, 1, 2, 2}).Floats("onnx::Conv_1", {1, 1, 1, 1}, {1});
  model.Floats("head.weight", {1, 4}, {1, 1, 1, 1});
  model.Node("Conv", {"x", "onnx::Conv_1"}, {"a"}, "/layer1/layer1.0/downsample/downsample.0/Conv");
  model.Node("Relu", {"a"}, {"b"}, "/layer1/layer1.0/relu_1/Relu");
  model.Node("Add", {"b", "b"}, {"c"}, "/layer1/layer1.0/Add");
  model.Node("Sigmoid", {"c"}, {"d"}, "my gate");
  model.Node("Flatten", {"d"}, {"e"}, "/Flatten");
  model.Node("Gemm", {"e", "head.weight"}, {"f"}, "node_linear").WithInt("transB", 1);
  model.Node("Tanh", {"f"}, {"y"}).Output("y");
  EXPECT_THAT(LayerNamesOf(model.Import()),
              ElementsAre("layer1.0.downsample.0", "layer1.0.relu_1", "layer1.0.add", "my gate",
                          "flatten", "head", "tanh1"));
}

TEST(ImportGroupsTest, ActivationsWorkInPlaceWhereNothingElseReads) {
  TestModel model;
  model.Input("x", {1, 2}).Floats("w", {2, 2}, {1, 2, 3, 4});
  model.Node("MatMul", {"x", "w"}, {"a"}, "fc").Node("Relu", {"a"}, {"b"}, "relu");
  model.Node("Sigmoid", {"b"}, {"c"}, "gate").Node("Add", {"b", "c"}, {"y"}, "sum").Output("y");
  const caffe::NetParameter net = model.Import().net;
  EXPECT_EQ(net.layer(2).top(0), "fc");    // relu
  EXPECT_EQ(net.layer(3).top(0), "gate");  // the sum reads the input of the gate, too
}

}  // namespace
}  // namespace trainer
