#include "trainer/onnx/fine_tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/import_testing.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

TestModel Classifier() {
  TestModel model;
  model.Input("input", {1, 3, 2, 2}).Floats("w", {1, 3, 2, 2}, Rising(12, 1));
  model.Floats("fc.weight", {2, 1}, {1, -1}).Floats("fc.bias", {2}, {0, 0});
  model.Node("Conv", {"input", "w"}, {"a"}, "conv").Node("Relu", {"a"}, {"b"}, "relu");
  model.Node("Flatten", {"b"}, {"c"}, "flat");
  model.Node("Gemm", {"c", "fc.weight", "fc.bias"}, {"d"}).WithInt("transB", 1);
  model.Node("Softmax", {"d"}, {"y"}, "prob").WithInt("axis", 1).Output("y");
  return model;
}

FineTuneOptions Options(bool takes_caffe_pixels = false) {
  FineTuneOptions options;
  if (takes_caffe_pixels) options.means = {103.53f, 116.28f, 123.675f};
  if (takes_caffe_pixels) options.scale = 1;
  options.classes = 12;
  options.source = "train_lmdb";
  return options;
}

TEST(FineTuneTest, TheLastLayerIsNewAndTheSoftmaxALoss) {
  FineTuneOptions options = Options(true);
  options.test_source = "test_lmdb";
  const FineTuneNet tuned = MakeFineTuneNet(Classifier().Import(), options);
  std::vector<std::string> layers;
  for (const caffe::LayerParameter& layer : tuned.net.layer()) {
    layers.push_back(layer.name() + ":" + layer.type());
  }
  EXPECT_THAT(layers, ElementsAre("data:Data", "data:Data", "conv:Convolution", "relu:ReLU",
                                  "flat:Flatten", "fc_new:InnerProduct", "loss:SoftmaxWithLoss",
                                  "accuracy:Accuracy", "top5:Accuracy"));
  EXPECT_EQ(tuned.old_layer, "fc");
  const caffe::LayerParameter& last = tuned.net.layer(5);
  EXPECT_EQ(last.inner_product_param().num_output(), 12u);
  EXPECT_EQ(last.inner_product_param().weight_filler().type(), "gaussian");
  EXPECT_EQ(last.param(0).lr_mult(), 10);
  EXPECT_EQ(tuned.net.layer(6).bottom(0), "fc_new");
  const caffe::LayerParameter& data = tuned.net.layer(0);
  EXPECT_THAT(data.top(), ElementsAre("input", "label"));
  EXPECT_EQ(data.transform_param().crop_size(), 2u);
  EXPECT_TRUE(data.transform_param().mirror());
  EXPECT_FALSE(tuned.net.layer(1).transform_param().mirror());
}

TEST(FineTuneTest, PixelsArePreparedAsTheOptionsSay) {
  FineTuneOptions options = Options();
  options.means = {1, 2, 3};
  options.scale = 1;
  const FineTuneNet tuned = MakeFineTuneNet(Classifier().Import(), options);
  EXPECT_THAT(tuned.net.layer(0).transform_param().mean_value(), ElementsAre(1, 2, 3));
  EXPECT_FALSE(tuned.net.layer(0).transform_param().has_scale());
}

TEST(FineTuneTest, ScoresAreNotRectified) {
  TestModel model;
  model.Input("x", {1, 3, 2, 2}).Floats("w", {2, 3, 1, 1}, Rising(6));
  model.Node("Conv", {"x", "w"}, {"a"}, "conv").Node("Relu", {"a"}, {"b"}, "relu");
  model.Node("GlobalAveragePool", {"b"}, {"c"}, "pool").Node("Flatten", {"c"}, {"y"}, "flat");
  model.Output("y");
  const FineTuneNet tuned = MakeFineTuneNet(model.Import(), Options(true));
  std::vector<std::string> layers;
  for (const caffe::LayerParameter& layer : tuned.net.layer()) layers.push_back(layer.name());
  EXPECT_THAT(layers, ElementsAre("data", "conv_new", "pool", "flat", "loss"));
  EXPECT_EQ(tuned.net.layer(2).bottom(0), "conv_new");
  EXPECT_EQ(tuned.score, "flat");
}

TEST(FineTuneTest, WithoutATestSetThereIsNoTest) {
  const FineTuneNet tuned = MakeFineTuneNet(Classifier().Import(), Options());
  EXPECT_EQ(tuned.net.layer(tuned.net.layer_size() - 1).name(), "loss");
  EXPECT_FLOAT_EQ(tuned.net.layer(0).transform_param().scale(), 1 / 255.0f);
  const std::string solver =
      FineTuneSolverText(Options(), "net_train.prototxt", "net_solver.prototxt", "w", "net");
  EXPECT_THAT(solver, Not(HasSubstr("test_interval")));
  EXPECT_THAT(solver, HasSubstr("trainer train --solver=net_solver.prototxt --weights=w"));
}

TEST(FineTuneTest, PixelsOfThisProgramGiveTheSameNumbers) {
  ImportedNet own = Classifier().Import(), changed = own;
  ASSERT_TRUE(TakeCaffePixels(&changed));
  // The test prepares one image twice: for torchvision (red, green, blue, normalised) and for
  // Caffe.
  const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
  std::vector<float> normal(12), pixels(12);
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < 4; ++i) {
      const float value = static_cast<float>(20 * c + 50 * i);  // a pixel in [0, 255]
      normal[c * 4 + i] = (value / 255 - mean[c]) / deviation[c];
      pixels[(2 - c) * 4 + i] = value - kTorchvisionMean[2 - c];
    }
  }
  own.first_output = changed.first_output = "conv";
  for (ImportedNet* net : {&own, &changed}) {
    net->net.mutable_layer()->DeleteSubrange(2, net->net.layer_size() - 2);
  }
  EXPECT_THAT(Compute(changed, {pixels}), Pointwise(FloatNear(1e-3f), Compute(own, {normal})));
}

TEST(FineTuneTest, TheConvolutionOfTheImageLearnsAsFastAsInTheModel) {
  const FineTuneNet scaled = MakeFineTuneNet(Classifier().Import(), Options());
  EXPECT_EQ(scaled.net.layer(1).param_size(), 0);
  const FineTuneNet tuned = MakeFineTuneNet(Classifier().Import(), Options(true));
  const caffe::LayerParameter& conv = tuned.net.layer(1);
  ASSERT_EQ(conv.name(), "conv");
  // Weights that are 57.63 times smaller have gradients that are 57.63 times larger.
  EXPECT_NEAR(conv.param(0).lr_mult() * 57.63 * 57.63, 1, 1e-3);
  EXPECT_NEAR(conv.param(0).lr_mult() * conv.param(0).decay_mult(), 1, 1e-5);
}

TEST(FineTuneTest, OtherNetsAreRefusedWithTheReason) {
  TestModel rows;
  rows.Input("x", {1, 2}).Node("Relu", {"x"}, {"y"}).Output("y");
  const auto [code, text] = ErrorOf([&] { MakeFineTuneNet(rows.Import(), Options()); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(text, HasSubstr("--train: the model's input is not images"));
  TestModel no_scores;
  no_scores.Input("x", {1, 3, 2, 2}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(ErrorOf([&] { MakeFineTuneNet(no_scores.Import(), Options()); }).second,
              HasSubstr("no layer with a score for each class leads to the output"));
  ImportedNet imported = rows.Import();
  EXPECT_FALSE(TakeCaffePixels(&imported));
}

}  // namespace
}  // namespace trainer
