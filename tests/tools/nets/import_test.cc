// ONNX models become nets that predict and train.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "in_process.h"
#include "job.h"
#include "onnx/test_model.h"
#include "trainer/datasets/digits.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ImportVerbTest : public testing::Test {
 protected:
  Outcome Run(const std::vector<std::string>& command) const {
    return RunHere(command, {.folder = folder_.path()});
  }
  Outcome Import(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {"import", "digits.onnx", "--out=net.prototxt",
                                        "--weights=net.caffemodel"};
    command.insert(command.end(), more.begin(), more.end());
    return Run(command);
  }
  void ExpectRefused(const Outcome& outcome, int code, const std::string& part) const {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_THAT(outcome.Errors(), ElementsAre(HasSubstr(part)));
    EXPECT_THAT(folder_.Names(), Not(testing::Contains("net.prototxt")));
  }
  // Writes a classifier of images (1, 28, 28) in two classes; the mean of four regions decides.
  void WriteDigitsModel(int64_t batch = -1) const {
    TestModel model;
    model.Input("image", {batch, 1, 28, 28});
    model.Floats("w", {1, 1, 14, 14}, std::vector<float>(196, 1 / 196.0f));
    model.Floats("fc.weight", {2, 4}, Rising(8)).Floats("fc.bias", {2}, {0, 0});
    model.Node("Conv", {"image", "w"}, {"a"}, "conv").With("strides", {14, 14});
    model.Node("Relu", {"a"}, {"b"}, "relu").Node("Flatten", {"b"}, {"c"}, "flat");
    model.Node("Gemm", {"c", "fc.weight", "fc.bias"}, {"d"}).WithInt("transB", 1);
    model.Node("Softmax", {"d"}, {"answer"}, "prob").WithInt("axis", 1).Output("answer");
    folder_.Write("digits.onnx", model.proto().SerializeAsString());
  }

  TempFolder folder_;
};

TEST_F(ImportVerbTest, WritesANetThatOtherVerbsTake) {
  WriteDigitsModel();
  const Outcome made = Import();
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out,
            "net.prototxt: 6 layers\n"
            "net.caffemodel: 206 weights of 2 layers\n"
            "output 'answer' of the model: blob 'prob'\n");
  EXPECT_THAT(ReadText(folder_ / "net.prototxt"),
              testing::StartsWith("# Imported from digits.onnx.\n"));
  const Outcome features = Run({"features", "--model=net.prototxt", "--weights=net.caffemodel",
                                "--random", "--iterations=1", "--blobs=prob", "--out=p.h5"});
  EXPECT_EQ(features.exit_code, 0) << features.err;
  EXPECT_THAT(Import().err, HasSubstr("--force"));
  EXPECT_EQ(Import({"--force"}).exit_code, 0);
}

TEST_F(ImportVerbTest, TheNameOfTheWeightsSelectsTheirFormat) {
  WriteDigitsModel();
  ASSERT_EQ(Import().exit_code, 0);
  const Outcome made =
      Run({"import", "digits.onnx", "--out=n.prototxt", "--weights=imported.safetensors"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("imported.safetensors: 206 weights of 2 layers\n"));
  const Outcome converted =
      Run({"export", "--weights=net.caffemodel", "--out=converted.safetensors"});
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  EXPECT_EQ(ReadText(folder_ / "imported.safetensors"),
            ReadText(folder_ / "converted.safetensors"));
}

TEST_F(ImportVerbTest, ANetForAnotherTaskLearns) {
  WriteDigitsModel();
  WriteDigits({.folder = folder_ / "digits", .train = 200, .test = 40});
  const Outcome made =
      Import({"--train", "--classes=10", "--source=digits/train_lmdb", "--batch=20"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("net_train.prototxt: layer 'fc' is now 'fc_new', for 10 classes\n"
                                  "net_train.prototxt: the input is pixels * 0.003921569\n"
                                  "next: trainer train --solver=net_solver.prototxt "));
  EXPECT_THAT(ReadText(folder_ / "net_train.prototxt"), HasSubstr("digits/test_lmdb"));
  const Outcome check = Run({"check", "--solver=net_solver.prototxt", "--weights=net.caffemodel"});
  EXPECT_EQ(check.exit_code, 0) << check.err << check.out;
  const Outcome trained = Run({"train", "--solver=net_solver.prototxt", "--weights=net.caffemodel",
                               "--freeze=all-but-last", "--set", "max_epoch=1"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("Loaded 1 layer from net.caffemodel"));
}

TEST_F(ImportVerbTest, TheLabelsNextToTheSetCountTheClasses) {
  WriteDigitsModel();
  WriteDigits({.folder = folder_ / "digits", .train = 20, .test = 10});
  folder_.Write("digits/labels.txt", "zero\none\ntwo\n");
  const Outcome made = Import({"--train", "--source=digits/train_lmdb"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("layer 'fc' is now 'fc_new', for 3 classes\n"));
  const Outcome other =
      Import({"--train", "--source=digits/train_lmdb", "--classes=10", "--force"});
  EXPECT_THAT(other.err,
              HasSubstr("--classes=10, but digits/labels.txt has 3 lines: predictions "));
  EXPECT_THAT(other.out, HasSubstr("for 10 classes\n"));
}

// The model's properties say how its images are prepared.
TEST_F(ImportVerbTest, ImagesArePreparedAsTheModelSays) {
  WriteDigitsModel();
  WriteDigits({.folder = folder_ / "digits", .train = 20, .test = 10});
  const auto describe = [&](const std::string& key, const std::string& value) {
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(ReadText(folder_ / "digits.onnx")));
    onnx::StringStringEntryProto& property = *model.add_metadata_props();
    property.set_key(key);
    property.set_value(value);
    folder_.Write("digits.onnx", model.SerializeAsString());
  };
  const std::vector<std::string> train = {"--train", "--source=digits/train_lmdb", "--classes=10",
                                          "--force"};
  EXPECT_THAT(Import(train).out,
              HasSubstr("net_train.prototxt: the input is pixels * 0.003921569\n"));
  describe("model_info mean_values", "26.5");
  describe("model_info scale_values", "64");
  EXPECT_THAT(Import(train).out, HasSubstr("the input is (pixels - (26.5)) * 0.015625\n"));
  EXPECT_THAT(ReadText(folder_ / "net_train.prototxt"),
              testing::AllOf(HasSubstr("mean_value: 26.5"), HasSubstr("scale: 0.015625")));
  EXPECT_THAT(ReadText(folder_ / "net.prototxt"),
              HasSubstr("trainer predict --mean_value=26.5 --scale=0.015625\n"));
  describe("Image.BitmapPixelFormat", "Gray8");
  WriteDigitsModel();
  describe("Image.BitmapPixelFormat", "Rgb8");
  const Outcome rgb = Import(train);
  EXPECT_EQ(rgb.exit_code, 64);
  EXPECT_THAT(rgb.err, HasSubstr("the model takes pixels in the order red, green, blue"));
  EXPECT_THAT(Import({"--force"}).err, HasSubstr("the model takes pixels in the order red, "));
  WriteDigitsModel();
  describe("Image.BitmapPixelFormat", "Gray8");
  EXPECT_THAT(Import(train).out, HasSubstr("the input is pixels\n"));
}

TEST_F(ImportVerbTest, SaysThatThereIsNoTestSet) {
  WriteDigitsModel();
  WriteDigits({.folder = folder_ / "digits", .train = 20, .test = 10});
  std::filesystem::rename(folder_ / "digits/train_lmdb", folder_ / "digits/pictures");
  const Outcome made = Import({"--train", "--source=digits/pictures", "--classes=10"});
  EXPECT_THAT(made.out, HasSubstr("there is no test set next to digits/pictures, so the run will "
                                  "have no tests: give one with --test_source=SET\n"));
  EXPECT_THAT(ReadText(folder_ / "net_train.prototxt"), Not(HasSubstr("Accuracy")));
}

TEST_F(ImportVerbTest, FlagsThatDoNotFitAreRefused) {
  WriteDigitsModel();
  ExpectRefused(Run({"import", "--out=net.prototxt", "--weights=w"}), 64, "needs MODEL");
  ExpectRefused(Import({"--weights=w.pth"}), 64,
                "--weights=w.pth: the name must end in .caffemodel");
  ExpectRefused(Run({"import", "digits.onnx", "--out=net.onnx", "--weights=w.npz"}), 64,
                "--out=net.onnx: the name must end in .prototxt");
  ExpectRefused(Import({"--classes=10"}), 64, "give --train, too");
  ExpectRefused(Import({"--out=a\"b.prototxt"}), 64, "must not contain a quotation mark");
  ExpectRefused(Import({"--weights=a,b.npz"}), 64, "must not contain a comma");
  ExpectRefused(Import({"--train"}), 64, "--train needs --source=SET");
  ExpectRefused(Import({"--train", "--source=train_lmdb"}), 66, "train_lmdb");
  WriteDigits({.folder = folder_ / "digits", .train = 20, .test = 10});
  ExpectRefused(Import({"--train", "--source=digits"}), 66, "'trainer dataset images' makes a ");
  ExpectRefused(Import({"--train", "--source=digits/train_lmdb"}), 64,
                "because there is no labels.txt next to digits/train_lmdb");
  folder_.Write("digits/labels.txt", "one\n\n");
  ExpectRefused(Import({"--train", "--source=digits/train_lmdb"}), 64, "labels.txt has 1 line");
  ExpectRefused(Import({"--pixels=torchvision"}), 64, "is not a color image");
  ExpectRefused(Import({"--shape=3,28,28"}), 65, "does not fit its input 1x3x28x28");
  ExpectRefused(Import({"--shape=1,60,60"}), 65,
                "the size of the input is that of --shape=1,60,60");
  ExpectRefused(Import({"--shape=28,28"}), 64,
                "--shape=28,28 has 2 numbers, but an item of the model's input 'image' has 3");
  WriteDigitsModel(1);
  ExpectRefused(Import({"--batch=8"}), 64,
                "--batch=8: the model fixes the shape of its input 'image' to 1x1x28x28");
}

TEST_F(ImportVerbTest, TheTrainingSetMustExistAndFitTheNet) {
  WriteDigitsModel();
  ExpectRefused(Import({"--train", "--classes=10", "--source=none_lmdb"}), 66, "none_lmdb");
  std::filesystem::create_directories(folder_ / "small/0");
  folder_.Write("small/0/a.pgm", "P5 20 24 255\n" + std::string(480, 'x'));
  ASSERT_EQ(Run({"dataset", "images", "small", "small_lmdb", "--gray"}).exit_code, 0);
  ExpectRefused(Import({"--train", "--classes=10", "--source=small_lmdb"}), 78,
                "the images have 24 x 20 pixels, but the net reads 28 x 28");
  WriteDigits({.folder = folder_ / "digits", .train = 20, .test = 10});
  TestModel map;
  map.Input("x", {1, 1, 14, 14}).Floats("w", {2, 1, 7, 7}, std::vector<float>(98, 0.01f));
  map.Node("Conv", {"x", "w"}, {"y"}, "conv").With("strides", {7, 7}).Output("y");
  folder_.Write("map.onnx", map.proto().SerializeAsString());
  const Outcome pixels =
      Run({"import", "map.onnx", "--out=net.prototxt", "--weights=net.caffemodel", "--train",
           "--classes=10", "--source=digits/train_lmdb"});
  EXPECT_EQ(pixels.exit_code, 64);
  EXPECT_THAT(pixels.err, testing::AllOf(HasSubstr("--train: the output of the model has the shape "
                                                   "32 10 2 2 (1280), not one score per class"),
                                         HasSubstr("the images have 28 x 28 pixels, and the net "
                                                   "reads a random part of 14 x 14")));
  ASSERT_EQ(Run({"dataset", "images", "small", "color_lmdb"}).exit_code, 0);
  ExpectRefused(Import({"--train", "--classes=10", "--source=color_lmdb"}), 78,
                "the images have 3 channels, but the net reads 1; make the set with gray images");
}

TEST_F(ImportVerbTest, FilesThatAreNotModelsAreRefused) {
  ExpectRefused(Import(), 66, "digits.onnx");
  folder_.Write("digits.onnx", "");
  ExpectRefused(Import(), 65, "digits.onnx: the file is empty");
  folder_.Write("digits.onnx", std::string(1000, 'x'));  // field 15 of another message
  ExpectRefused(Import(), 65, "digits.onnx: the file has no graph with nodes");
  folder_.Write("digits.onnx", "name: 'net'");
  ExpectRefused(Import(), 65, "digits.onnx: the file cannot be parsed as an ONNX model");
  ExpectRefused(Run({"import", "w.pth", "--out=net.prototxt", "--weights=net.npz"}), 65,
                "w.pth: this is a file of weights, which does not say what the layers compute");
}

}  // namespace
}  // namespace trainer
