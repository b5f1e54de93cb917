// Tests models that are damaged or hostile. The importer must refuse each with one line that names
// the place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/import_testing.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/onnx/onnx_file.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

TestModel SmallModel() {
  TestModel model;
  model.Input("x", {1, 2}).Floats("w", {2, 2}, {1, 2, 3, 4});
  model.Node("MatMul", {"x", "w"}, {"y"}, "fc").Output("y");
  return model;
}

void ExpectRefused(const TestModel& model, const std::string& message,
                   ErrorCode expected = ErrorCode::kData) {
  const auto [code, text] = ErrorOf([&] { model.Import(); });
  EXPECT_EQ(code, expected) << text;
  EXPECT_THAT(text, HasSubstr("model.onnx: "));
  EXPECT_THAT(text, HasSubstr(message));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
}

TEST(ImportHostileTest, FilesThatAreNotModels) {
  const TempFolder folder;
  const auto refused = [&](const std::string& content) {
    const auto [code, text] = ErrorOf([&] { ReadOnnx(folder.Write("m.onnx", content)); });
    EXPECT_EQ(code, ErrorCode::kData);
    EXPECT_THAT(text, Not(HasSubstr("\n")));
    return text;
  };
  EXPECT_THAT(refused(""), HasSubstr("m.onnx: the file is empty"));
  EXPECT_THAT(refused("PK\3\4 a zip file"), HasSubstr("m.onnx: the file "));
  const std::string whole = SmallModel().proto().SerializeAsString();
  EXPECT_EQ(ReadOnnx(folder.Write("m.onnx", whole)).graph().node_size(), 1);
  for (size_t bytes = 1; bytes < whole.size(); ++bytes) {
    const std::string path = folder.Write("m.onnx", whole.substr(0, bytes));
    const auto [code, text] = ErrorOf([&] { ImportOnnx(ReadOnnx(path), path); });
    EXPECT_EQ(code, ErrorCode::kData) << bytes << ": " << text;
  }
  EXPECT_EQ(ErrorOf([&] { ReadOnnx(folder / "none.onnx"); }).first, ErrorCode::kNoInput);
}

TEST(ImportHostileTest, AnyChangedByteGivesAnErrorOrANet) {
  const std::string whole = SmallModel().proto().SerializeAsString();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      onnx::ModelProto model;
      if (!model.ParseFromString(changed)) continue;
      try {
        ImportOnnx(model, "model.onnx");
      } catch (const Error& e) {
        EXPECT_THAT(std::string(e.what()), Not(HasSubstr("\n")));
      }
    }
  }
}

TEST(ImportHostileTest, GraphsThatAreNotInOrder) {
  TestModel cycle;
  cycle.Input("x", {1, 2}).Node("Add", {"x", "b"}, {"a"}, "first").Node("Relu", {"a"}, {"b"});
  cycle.Output("b");
  ExpectRefused(cycle, "node 'first' (Add): no node before it computes its input 'b'");
  TestModel twice = SmallModel();
  twice.Node("Relu", {"y"}, {"y"});
  ExpectRefused(twice, "two nodes, constants or inputs have the name 'y'");
  TestModel no_output = SmallModel();
  no_output.Output("z");
  ExpectRefused(no_output, "no node computes the output 'z'");
}

TEST(ImportHostileTest, OperatorsWithoutALayer) {
  TestModel model = SmallModel();
  model.Node("Einsum", {"y", "y"}, {"z"}, "ein\x1b[2J");
  ExpectRefused(model, "node 'ein\\x1b[2J' (Einsum): no layer of a net computes this operator");
  TestModel other = SmallModel();
  other.Node("Gelu", {"y"}, {"z"}, "g");
  other.proto().mutable_graph()->mutable_node(1)->set_domain("com.microsoft");
  ExpectRefused(other, "operator of the domain 'com.microsoft'");
  TestModel loop = SmallModel();
  loop.Node("Loop", {"y"}, {"z"}, "l");
  loop.proto().mutable_graph()->mutable_node(1)->add_attribute()->mutable_g();
  ExpectRefused(loop, "the node contains a graph");
  ExpectRefused(TestModel(5).Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y"),
                "version 5 of the operators");
}

TEST(ImportHostileTest, ConstantsWhoseNumbersDoNotFit) {
  const auto with = [](const auto& change) {
    TestModel model = SmallModel();
    change(model.proto().mutable_graph()->mutable_initializer(0));
    return model;
  };
  ExpectRefused(with([](onnx::TensorProto* t) { t->set_dims(0, 3); }),
                "constant 'w': it has 4 numbers, but its shape is 3x2");
  ExpectRefused(with([](onnx::TensorProto* t) { t->set_dims(0, -2); }), "its shape -2x2");
  ExpectRefused(with([](onnx::TensorProto* t) {
                  t->set_dims(0, int64_t{1} << 40);
                  t->set_dims(1, int64_t{1} << 40);
                }),
                "is not possible");
  ExpectRefused(with([](onnx::TensorProto* t) { t->set_raw_data("123"); }), "it has 3 bytes");
  ExpectRefused(with([](onnx::TensorProto* t) { t->set_data_type(8); }), "type 8");
  ExpectRefused(with([](onnx::TensorProto* t) { t->set_float_data(0, NAN); }),
                "node 'fc' (Linear): a weight is infinite or not a number");
}

TEST(ImportHostileTest, SmallModelsThatAskForMuchMemory) {
  TestModel model = SmallModel();
  model.Ints("huge", {1 << 20, 1 << 20}).Node("ConstantOfShape", {"huge"}, {"z"}, "fill");
  ExpectRefused(model, "node 'fill' (ConstantOfShape): it would compute a constant of the shape");
  TestModel tile = SmallModel();
  tile.Ints("times", {int64_t{1} << 40, int64_t{1} << 40}).Node("Tile", {"y", "times"}, {"z"}, "t");
  ExpectRefused(tile, "node 't' (Tile): its output would have the shape");
}

TEST(ImportHostileTest, LayersWithMoreNumbersThanTheFileHas) {
  TestModel gather;
  gather.Input("x", {1, 1 << 30}).Ints("i", {2, 1}).Node("Gather", {"x", "i"}, {"y"}, "g");
  gather.WithInt("axis", 1).Output("y");
  ExpectRefused(gather, "node 'g' (Gather): its layer would have 2147483648 fixed numbers");
  TestModel conv;
  conv.Input("x", {1, 1, 1, 1}).Floats("w", {1, 1, 1, 1}, {1});
  conv.Node("Conv", {"x", "w"}, {"y"}, "c").With("pads", {0, 0, 1 << 14, 1 << 14}).Output("y");
  ExpectRefused(conv, "node 'c' (Conv): its layer would have");
  TestModel scale;
  scale.Input("x", {1, 2, 1 << 30, 2}).Floats("s", {2, 1, 2}, {1, 2, 3, 4});
  scale.Node("Mul", {"x", "s"}, {"y"}, "m").Output("y");
  ExpectRefused(scale, "node 'm' (Mul): its layer would have");
}

TEST(ImportHostileTest, InputsAndOutputsThatAreMissing) {
  TestModel sum;
  sum.Input("x", {1, 2}).Node("Add", {"x"}, {"y"}, "a").Output("y");
  ExpectRefused(sum, "node 'a' (Add): it must have two inputs");
  TestModel pool;
  pool.Input("x", {1, 1, 2, 2}).Node("MaxPool", {"x"}, {"", "places"}, "p");
  pool.With("kernel_shape", {2, 2}).Output("places");
  ExpectRefused(pool, "node 'p' (MaxPool): the positions of the greatest values");
  TestModel mask;
  mask.Input("x", {1, 2}).Floats("c", {2}, {1, 2}).Node("Dropout", {"c"}, {"d", "m"}, "drop");
  mask.Node("Add", {"x", "m"}, {"y"}, "a").Output("y");
  ExpectRefused(mask, "node 'a' (Add): its input 'm' is an output that no layer gives");
}

TEST(ImportHostileTest, ArraysThatAreTooShort) {
  TestModel perm = SmallModel();
  perm.Node("Transpose", {"w"}, {"z"}, "t").With("perm", {0, 0});
  ExpectRefused(perm, "node 't' (Transpose): perm 0x0 does not name each of 2 axes once");
  const auto lstm = [](std::initializer_list<int64_t> recurrent, std::initializer_list<int64_t> h) {
    TestModel model;
    model.Input("x", {2, 1, 1}).Floats("w", {1, 4, 1}, Rising(4));
    model.Floats("r", recurrent, Rising(recurrent.size() == 3 ? 4u : 0u)).Floats("h", h, {0});
    model.Node("LSTM", {"x", "w", "r", "", "", "h"}, {"y"}, "l").Output("y");
    return model;
  };
  ExpectRefused(lstm({1, 4, 1, 0}, {1, 1, 1}), "node 'l' (LSTM): its weights 1x4x1 and 1x4x1x0");
  ExpectRefused(lstm({1, 4, 1}, {1}), "its first state (input 5) has the shape 1");
}

TEST(ImportHostileTest, AttributesThatMakeNoSense) {
  const auto conv = [](const char* attribute, std::initializer_list<int64_t> values) {
    TestModel model;
    model.Input("x", {1, 1, 4, 4}).Floats("w", {1, 1, 3, 3}, std::vector<float>(9, 1.0f));
    model.Node("Conv", {"x", "w"}, {"y"}, "c").With(attribute, values).Output("y");
    return model;
  };
  ExpectRefused(conv("strides", {0, 1}), "node 'c' (Conv): strides has the value 0");
  ExpectRefused(conv("strides", {1}), "strides has 1 values for 2 axes");
  ExpectRefused(conv("dilations", {9, 9}), "does not fit into 4 positions");
  ExpectRefused(conv("pads", {1, 2, 3}), "pads has 3 values for 4 axes");
  ExpectRefused(conv("kernel_shape", {5, 5}), "differs from the weight's 3x3");
  TestModel reshape;
  reshape.Input("x", {1, 4}).Ints("s", {3, -1}).Node("Reshape", {"x", "s"}, {"y"}, "r").Output("y");
  ExpectRefused(reshape, "node 'r' (Reshape): the shape 3x-1 does not fit its input 1x4");
  TestModel axis;
  axis.Input("x", {1, 4}).Node("Softmax", {"x"}, {"y"}, "s").WithInt("axis", 7).Output("y");
  ExpectRefused(axis, "axis 7 does not exist; its input has 2 axes");
}

TEST(ImportHostileTest, AFreeSizeMustBeGiven) {
  TestModel model;
  model.Input("x", {-1, 3, -1, -1}).Node("Relu", {"x"}, {"y"}).Output("y");
  ExpectRefused(model,
                "leaves the size of its input 'x' free; give the shape of one item, such as "
                "--shape=3,224,224",
                ErrorCode::kUsage);
  EXPECT_EQ(model.Import({.shapes = {{"", {3, 2, 2}}}}).net.layer(0).input_param().shape(0).dim(3),
            2);
}

TEST(ImportHostileTest, ExternalDataStaysInTheFolderOfTheModel) {
  const TempFolder folder;
  const std::string path = folder / "m.onnx";
  const std::vector<float> numbers = {5, 6, 7, 8};
  folder.Write("w.bin", std::string(4, '\0') +
                            std::string(reinterpret_cast<const char*>(numbers.data()), 16));
  const auto import = [&](const std::string& location, const std::string& offset,
                          const std::string& length) {
    TestModel model = SmallModel();
    onnx::TensorProto* const tensor = model.proto().mutable_graph()->mutable_initializer(0);
    tensor->clear_float_data();
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair("location", location), std::pair("offset", offset),
                                     std::pair("length", length)}) {
      auto* const entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return ImportOnnx(model.proto(), path);
  };
  EXPECT_EQ(import("w.bin", "4", "16").weights.layer(0).blobs(0).data(0), 5);
  const auto message = [&](const std::string& location, const std::string& offset,
                           const std::string& length) {
    return ErrorOf([&] { import(location, offset, length); }).second;
  };
  for (const char* outside : {"/etc/passwd", "../w.bin", "a/../../w.bin", ""}) {
    EXPECT_THAT(message(outside, "0", "16"),
                HasSubstr("external data must be in the folder of the model"));
  }
  EXPECT_THAT(message("w.bin", "8", "16"), HasSubstr("which has only 20 bytes"));
  EXPECT_THAT(message("w.bin", "-1", "16"), HasSubstr("which is not a number of bytes"));
  EXPECT_THAT(message("w.bin", "18446744073709551615", "16"), HasSubstr("which has only 20 bytes"));
  EXPECT_THAT(message("w.bin", "4", "8"), HasSubstr("it has 8 bytes of 4-byte numbers"));
  const auto [code, missing] = ErrorOf([&] { import("none.bin", "0", "16"); });
  EXPECT_EQ(code, ErrorCode::kNoInput);
  EXPECT_THAT(missing, HasSubstr("which has the weights of m.onnx; copy it next to the model"));
}

}  // namespace
}  // namespace trainer
