#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "support/layer_runner.h"
#include "support/temp_folder.h"
#include "trainer/config/blob.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

constexpr char kLoss[] = R"(type: "InfogainLoss")";

std::string FromFile(const std::string& path) {
  return "type: \"InfogainLoss\"\ninfogain_loss_param { source: \"" + path + "\" }";
}

void WriteMatrix(const std::string& path, const std::vector<int64_t>& dims,
                 const std::vector<float>& values) {
  caffe::BlobProto proto;
  WriteBlob(dims, values, &proto);
  std::ofstream(path, std::ios::binary) << proto.SerializeAsString();
}

TEST(InfogainLossTest, HandValuesOfEqualScores) {
  LayerRunner layer(kLoss, {{1, 2}, {1}, {2, 2}}, {.outputs = 2, .learning_outputs = 1});
  layer.SetInput(1, {1});
  layer.SetInput(2, {5, 7, 1, 3});
  EXPECT_THAT(layer.Forward({2, 2}), ElementsAre(FloatNear(4 * std::log(2.0f), 1e-5f)));
  EXPECT_THAT(layer.Output(1), ElementsAre(FloatNear(0.5, 1e-6f), FloatNear(0.5, 1e-6f)));
  layer.Backward({{1}});
  ExpectNear(layer.InputGradient(), {1, -1}, 1e-5f);
}

TEST(InfogainLossTest, AnIdentityMatrixFromAFileIsSoftmaxWithLoss) {
  TempFolder folder;
  WriteMatrix(folder / "h", {1, 1, 3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  std::vector<std::vector<float>> losses, gradients;
  for (const std::string& text :
       {FromFile(folder / "h"), std::string(R"(type: "SoftmaxWithLoss")")}) {
    LayerRunner layer(text, {{4, 3}, {4}});
    layer.SetInput(0, LayerRunner::SomeValues(12, 1));
    layer.SetInput(1, {0, 2, 1, 1});
    layer.Forward();
    losses.push_back(layer.Output());
    layer.Backward({{1}});
    gradients.push_back(layer.InputGradient());
  }
  ExpectNear(losses[0], losses[1], 1e-6f);
  ExpectNear(gradients[0], gradients[1], 1e-6f);
}

TEST(InfogainLossTest, HandValuesOfAProbabilityOfZeroStayFinite) {
  LayerRunner layer(kLoss, {{1, 2}, {1}, {2, 2}});
  layer.SetInput(1, {1});
  layer.SetInput(2, {1, 0, 0, 1});
  EXPECT_THAT(layer.Forward({300, 0}), ElementsAre(FloatNear(46.0517f, 1e-3f)));
}

TEST(InfogainLossTest, GradientMatchesDifferences) {
  LayerRunner layer(kLoss, {{2, 3, 1, 2}, {2, 1, 1, 2}, {3, 3}});
  layer.SetInput(0, LayerRunner::SomeValues(12, 1));
  layer.SetInput(1, {0, 2, 1, 1});
  layer.SetInput(2, {1, 0.5, 0, 0.25, 2, 1, 0, 0.5, 3});
  layer.ExpectGradient();
}

// Without weights both rows have the loss 4 log 2; the weights of their labels, 3 and 1, sum to 4.
TEST(InfogainLossTest, HandValuesOfClassWeights) {
  LayerRunner layer("type: \"InfogainLoss\" loss_param { class_weight: 3 class_weight: 1 }",
                    {{2, 2}, {2}, {2, 2}});
  layer.SetInput(1, {0, 1});
  layer.SetInput(2, {3, 1, 1, 3});
  ExpectNear(layer.Forward({2, 2, 1, 1}), {4 * std::log(2.0f)}, 1e-5f);
  layer.Backward({{2}});
  ExpectNear(layer.InputGradient(), {-1.5, 1.5, 0.5, -0.5}, 1e-5f);
}

TEST(InfogainLossTest, ClassWeightsOfAnIdentityMatrixAreThoseOfSoftmaxWithLoss) {
  const std::string weights =
      " loss_param { class_weight: 0.5 class_weight: 2 class_weight: 3 ignore_label: 0 }";
  std::vector<std::vector<float>> losses, gradients;
  for (const char* type : {"InfogainLoss", "SoftmaxWithLoss"}) {
    const bool infogain = type == std::string("InfogainLoss");
    std::vector<Shape> inputs = {{4, 3}, {4}};
    if (infogain) inputs.push_back({3, 3});
    LayerRunner layer("type: \"" + std::string(type) + "\"" + weights, inputs);
    layer.SetInput(0, LayerRunner::SomeValues(12, 1));
    layer.SetInput(1, {0, 2, 1, 1});
    if (infogain) layer.SetInput(2, {1, 0, 0, 0, 1, 0, 0, 0, 1});
    layer.Forward();
    losses.push_back(layer.Output());
    layer.Backward({{1}});
    gradients.push_back(layer.InputGradient());
  }
  ExpectNear(losses[0], losses[1], 1e-6f);
  ExpectNear(gradients[0], gradients[1], 1e-6f);
}

TEST(InfogainLossTest, GradientMatchesDifferencesWithClassWeights) {
  TempFolder folder;
  WriteMatrix(folder / "h", {3, 3}, {1, 0.5, 0, 0.25, 2, 1, 0, 0.5, 3});
  LayerRunner layer(
      FromFile(folder / "h") + " loss_param { class_weight: 2 class_weight: 0.5 class_weight: 1 }",
      {{2, 3, 1, 2}, {2, 1, 1, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(12, 1));
  layer.SetInput(1, {0, 2, 1, 1});
  layer.ExpectGradient();
}

TEST(InfogainLossTest, RefusesAnotherNumberOfClassWeights) {
  EXPECT_THAT(RefusalOf("type: \"InfogainLoss\" loss_param { class_weight: 3 class_weight: 1 }",
                        {{2, 3}, {2}, {3, 3}}),
              HasSubstr("class_weight is given 2 times for 3 classes; give one per class"));
}

TEST(InfogainLossTest, GoldenValues) {
  ExpectGoldenFile("layers/losses/infogain_loss.txt");
  ExpectGoldenFile("layers/losses/infogain_loss_weighted.txt");
}

TEST(InfogainLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(kLoss, {{2, 3}, {2}, {3, 3}}, {{}, {1, 2}});
}

TEST(InfogainLossTest, RefusesAMatrixThatIsMissingOrGivenTwice) {
  EXPECT_THAT(RefusalOf(kLoss, {{2, 3}, {2}}),
              HasSubstr("layer 'it' (InfogainLoss): the matrix is missing; give it as a third "
                        "bottom, or as infogain_loss_param.source, a binaryproto file"));
  EXPECT_THAT(RefusalOf(FromFile("h"), {{2, 3}, {2}, {3, 3}}),
              HasSubstr("net.prototxt:4:23: layer 'it' (InfogainLoss): the matrix is given twice, "
                        "as the third bottom and as source; keep one"));
}

TEST(InfogainLossTest, RefusesAMatrixOfAnotherSize) {
  EXPECT_THAT(RefusalOf(kLoss, {{2, 3}, {2}, {2, 3}}),
              HasSubstr("the matrix has 6 numbers; 3 classes need 3 x 3, as shape (3, 3)"));
  TempFolder folder;
  WriteMatrix(folder / "h", {4, 4}, std::vector<float>(16, 1.0f));
  EXPECT_THAT(RefusalOf(FromFile(folder / "h"), {{2, 3}, {2}}),
              HasSubstr("the matrix has 16 numbers; 3 classes need 3 x 3 in " + folder / "h"));
}

TEST(InfogainLossTest, RefusesAFileThatIsNoMatrix) {
  TempFolder folder;
  std::ofstream(folder / "h") << "text";
  EXPECT_THAT(RefusalOf(FromFile(folder / "h"), {{2, 3}, {2}}),
              HasSubstr("not a matrix: its 4 bytes are not a BlobProto message"));
}

TEST(InfogainLossTest, RefusesTheOldNormalizeAndBadLabels) {
  EXPECT_THAT(
      RefusalOf("type: \"InfogainLoss\" loss_param { normalize: true }", {{2, 3}, {2}, {3, 3}}),
      HasSubstr("InfogainLoss does not support normalize; write normalization: VALID instead of "
                "true, BATCH_SIZE instead of false"));
  LayerRunner layer(kLoss, {{2, 3}, {2}, {3, 3}});
  layer.SetInput(1, {0, 3});
  EXPECT_THAT([&] { layer.Forward(); },
              testing::ThrowsMessage<Error>(HasSubstr("label 3 of item 1 of the batch")));
}

}  // namespace
}  // namespace trainer
