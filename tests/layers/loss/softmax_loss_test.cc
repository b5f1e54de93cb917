#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/layer_runner.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::string LossSoftmaxLoss(const std::string& fields = "") {
  return "type: \"SoftmaxWithLoss\"\nloss_param { " + fields + " }";
}

// Runs one pass and returns the error message.
std::string RunRefusal(const std::string& prototxt, const Shape& scores,
                       const std::vector<float>& labels, const Shape& label_shape) {
  LayerRunner loss(prototxt, {scores, label_shape});
  loss.SetInput(1, labels);
  try {
    loss.Forward();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kData);
    return error.what();
  }
  return "";
}

TEST(SoftmaxLossTest, HandValues) {
  LayerRunner loss(LossSoftmaxLoss(), {{2, 2}, {2}}, {.outputs = 2});
  loss.SetInput(0, {0, 0, 0, std::log(3.0f)});
  loss.SetInput(1, {0, 1});
  loss.Forward();
  EXPECT_EQ(loss.OutputShape(), Shape());
  ExpectNear(loss.Output(0), {(std::log(2.0f) + std::log(4.0f / 3)) / 2}, 1e-6f);
  ExpectNear(loss.Output(1), {0.5, 0.5, 0.25, 0.75}, 1e-6f);
  loss.Backward({{3}});
  ExpectNear(loss.InputGradient(), {-0.75f, 0.75f, 0.375f, -0.375f}, 1e-6f);
}

// --- Class probabilities as targets, as mixup creates them ---

TEST(SoftmaxLossTest, HandValuesOfShares) {
  LayerRunner loss(LossSoftmaxLoss(), {{2, 2}, {2, 2}});
  loss.SetInput(0, {0, 0, 0, std::log(3.0f)});
  loss.SetInput(1, {0.25f, 0.75f, 0.5f, 0.5f});
  // Row 0 has the loss log 2, row 1 has -(log 1/4 + log 3/4) / 2.
  const float second = (std::log(4.0f) + std::log(4.0f / 3)) / 2;
  loss.Forward();
  ExpectNear(loss.Output(0), {(std::log(2.0f) + second) / 2}, 1e-6f);
  loss.Backward({{3}});
  ExpectNear(loss.InputGradient(), {0.375f, -0.375f, -0.375f, 0.375f}, 1e-6f);
}

TEST(SoftmaxLossTest, SharesOfOneClassAreItsLabel) {
  for (const char* fields : {"", "label_smoothing: 0.3", "normalization: NONE"}) {
    LayerRunner labels(LossSoftmaxLoss(fields), {{3, 4}, {3}}),
        shares(LossSoftmaxLoss(fields), {{3, 4}, {3, 4}});
    labels.SetInput(1, {2, 0, 3});
    shares.SetInput(1, {0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1});
    const std::vector<float> scores = {1, -2, 0.5f, 3, 0, 0, 1, 2, -1, 4, 2, 0};
    ExpectNear(shares.Forward(scores), labels.Forward(scores), 1e-5f);
    labels.Backward({{2}});
    shares.Backward({{2}});
    ExpectNear(shares.InputGradient(), labels.InputGradient(), 1e-5f);
  }
}

TEST(SoftmaxLossTest, RefusesWhatIsSaidOfLabelsWithShares) {
  EXPECT_THAT(RefusalOf(LossSoftmaxLoss("ignore_label: 1"), {{2, 3}, {2, 3}}),
              HasSubstr("ignore_label works with class labels"));
  EXPECT_THAT(RefusalOf(LossSoftmaxLoss("class_weight: 1 class_weight: 1 class_weight: 1"),
                        {{2, 3}, {2, 3}}),
              HasSubstr("class_weight works with class labels"));
}

TEST(SoftmaxLossTest, RefusesSharesWithoutTheSumOne) {
  EXPECT_THAT(
      RunRefusal(LossSoftmaxLoss(), {2, 3}, {0.5f, 0.25f, 0.25f, 1, 0, 1}, {2, 3}),
      HasSubstr(
          "layer 'it' (SoftmaxWithLoss): the class shares in 'x1' of item 1 of the batch have "
          "the sum 2; they must be 0 or more, with sum 1: divide each row by its sum, or use "
          "SigmoidCrossEntropyLoss if a record can have several classes"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {-0.5f, nan, std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(RunRefusal(LossSoftmaxLoss("label_smoothing: 0.1"), {1, 2}, {bad, 1.5f}, {1, 2}),
                HasSubstr("of item 0 of the batch include one below 0 or not finite; they must"));
  }
  EXPECT_THAT(RunRefusal(LossSoftmaxLoss(), {1, 2, 1, 2}, {1, 0, 0, 0}, {1, 2, 1, 2}),
              HasSubstr("of item 0, position 1, of the batch have the sum 0"));
  EXPECT_EQ(RunRefusal(LossSoftmaxLoss(), {1, 3}, {0.333f, 0.333f, 0.333f}, {1, 3}), "")
      << "rounded shares";
}

TEST(SoftmaxLossTest, RefusesOneClass) {
  for (const char* type : {"SoftmaxWithLoss", "SoftmaxFocalLoss"}) {
    EXPECT_THAT(RefusalOf(Join("type: \"", type, "\""), {{4, 1}, {4}}),
                HasSubstr("scores 'x0' of shape (4, 1) have one class on axis 1, so its "
                          "probability is always 1 and nothing is learned; compute one score per "
                          "class, i.e. 2 for two classes, or use SigmoidCrossEntropyLoss"));
  }
}

TEST(SoftmaxLossTest, HandValuesOfASureMistakeEndWhereCaffesDo) {
  LayerRunner loss(LossSoftmaxLoss(), {{1, 2}, {1}});
  loss.SetInput(1, {1});
  ExpectNear(loss.Forward({1000, 0}), {87.33654f}, 1e-6f);
}

TEST(SoftmaxLossTest, HandValuesOfNanScoresAreNan) {
  LayerRunner loss(LossSoftmaxLoss(), {{1, 2}, {1}});
  EXPECT_TRUE(std::isnan(loss.Forward({std::numeric_limits<float>::quiet_NaN(), 0})[0]));
}

TEST(SoftmaxLossTest, HandValuesWithEverythingIgnored) {
  LayerRunner loss(LossSoftmaxLoss("ignore_label: 7"), {{2, 2}, {2}});
  loss.SetInput(1, {7, 7});
  EXPECT_THAT(loss.Forward({1, 2, 3, 4}), ElementsAre(0));
  loss.Backward({{1}});
  EXPECT_THAT(loss.InputGradient(), Each(0));
}

TEST(SoftmaxLossTest, HandValuesOfSmoothing) {
  // The targets are 0.1 / 2 + 0.9 and 0.1 / 2, the log probabilities -log 4 and log 3 - log 4.
  LayerRunner loss(LossSoftmaxLoss("label_smoothing: 0.1"), {{1, 2}, {1}});
  loss.SetInput(1, {1});
  const float expected = std::log(4.0f) - 0.95f * std::log(3.0f);
  ExpectNear(loss.Forward({0, std::log(3.0f)}), {expected}, 1e-6f);
  loss.Backward({{1}});
  ExpectNear(loss.InputGradient(), {0.25f - 0.05f, 0.75f - 0.95f}, 1e-6f);
}

TEST(SoftmaxLossTest, HandValuesOfClassWeights) {
  // Both rows have the loss log 2; the weights of their labels, 1 and 3, sum to 4.
  const std::string fields = "class_weight: 3 class_weight: 1";
  LayerRunner mean(LossSoftmaxLoss(fields), {{2, 2}, {2}}),
      sum(LossSoftmaxLoss(fields + " normalization: NONE"), {{2, 2}, {2}});
  for (LayerRunner* loss : {&mean, &sum}) loss->SetInput(1, {1, 0});
  ExpectNear(mean.Forward({0, 0, 5, 5}), {std::log(2.0f)}, 1e-6f);
  ExpectNear(sum.Forward({0, 0, 5, 5}), {4 * std::log(2.0f)}, 1e-6f);
  mean.Backward({{4}});
  ExpectNear(mean.InputGradient(), {0.5, -0.5, -1.5, 1.5}, 1e-6f);
}

TEST(SoftmaxLossTest, HandValuesOfClassesThatDoNotCountAreZero) {
  LayerRunner loss(LossSoftmaxLoss("class_weight: 0 class_weight: 1"), {{1, 2}, {1}});
  loss.SetInput(1, {0});
  EXPECT_THAT(loss.Forward({-1000, 3}), ElementsAre(0));
  loss.Backward({{1}});
  EXPECT_THAT(loss.InputGradient(), Each(0));
}

TEST(SoftmaxLossTest, GradientMatchesDifferences) {
  for (const char* fields :
       {"", "normalization: FULL ignore_label: 1", "ignore_label: 1", "normalization: BATCH_SIZE",
        "normalization: NONE", "normalize: false ignore_label: 1", "label_smoothing: 0.2",
        "class_weight: 1 class_weight: 0 class_weight: 0.5 class_weight: 2 label_smoothing: 0.1"}) {
    SCOPED_TRACE(fields);
    for (const int outputs : {1, 2}) {
      LayerRunner loss(LossSoftmaxLoss(fields), {{2, 4, 3, 2}, {2, 1, 3, 2}}, {.outputs = outputs});
      loss.SetInput(0, LayerRunner::SomeValues(48, 1));
      loss.SetInput(1, {0, 1, 2, 3, 1, 1, 0, 0, 2, 3, 3, 1});
      loss.ExpectGradient({.bound = 2e-2f});
    }
  }
}

TEST(SoftmaxLossTest, GradientAlongAnotherAxisMatchesDifferences) {
  LayerRunner loss(LossSoftmaxLoss() + " softmax_param { axis: -1 }", {{2, 3, 4}, {2, 3}});
  loss.SetInput(0, LayerRunner::SomeValues(24, 1));
  loss.SetInput(1, {0, 1, 2, 3, 1, 1});
  loss.ExpectGradient();
}

TEST(SoftmaxLossTest, GoldenValues) {
  for (const GoldenCase& golden : ReadGolden("layers/losses/softmax_loss.txt")) {
    ExpectGolden(golden, {.inputs = {"x", "label"}, .outputs = {"loss"}});
    ExpectGolden(golden, {.inputs = {"x", "label"}, .outputs = {"loss", "p"}});
  }
}

TEST(SoftmaxLossTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(LossSoftmaxLoss(), {{2, 3, 4, 5}, {2, 1, 4, 5}},
                     {{}, std::vector<float>(40, 2)});
}

TEST(SoftmaxLossTest, GoldenValuesOfClassWeights) {
  ExpectGoldenFile("layers/losses/softmax_loss_weighted.txt");
}

TEST(SoftmaxLossTest, RefusesLabelsThatAreNoClass) {
  EXPECT_THAT(
      RunRefusal(LossSoftmaxLoss(), {3, 10}, {0, 9, 10}, {3}),
      HasSubstr("layer 'it' (SoftmaxWithLoss): label 10 of item 2 of the batch is not a class: "
                "there are 10 classes, 0 to 9; correct the labels, raise num_output of the layer "
                "that computes the scores, or set ignore_label"));
  EXPECT_THAT(RunRefusal(LossSoftmaxLoss(), {1, 10}, {-1}, {1}),
              HasSubstr("label -1 of item 0 of the batch"));
  EXPECT_THAT(RunRefusal(LossSoftmaxLoss(), {1, 10}, {10.5}, {1}),
              HasSubstr("label 10.5 of item 0 of the batch is not a class: there are 10"));
  EXPECT_THAT(
      RunRefusal(LossSoftmaxLoss(), {1, 10}, {std::numeric_limits<float>::quiet_NaN()}, {1}),
      HasSubstr("label nan of item 0 of the batch is not a finite number"));
  EXPECT_THAT(
      RunRefusal(LossSoftmaxLoss("ignore_label: 255"), {2, 3, 1, 2}, {255, 0, 2, 3}, {2, 1, 1, 2}),
      HasSubstr("label 3 of item 1, position 1, of the batch is not a class: there are 3"));
}

TEST(SoftmaxLossTest, RefusesLabelsOfAnotherCount) {
  EXPECT_THAT(RefusalOf(LossSoftmaxLoss(), {{4, 10}, {5}}),
              HasSubstr("labels 'x1' have shape (5) but scores 'x0' have (4, 10) with the classes "
                        "on axis 1, which needs 4 labels, e.g. shape (4, 1)"));
}

TEST(SoftmaxLossTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(LossSoftmaxLoss("label_smoothing: 1.5"), {{4, 10}, {4}}),
              HasSubstr("net.prototxt:4:14: layer 'it' (SoftmaxWithLoss): label_smoothing is 1.5; "
                        "it must be from 0 to 1"));
}

TEST(SoftmaxLossTest, RefusesBadClassWeights) {
  EXPECT_THAT(RefusalOf(LossSoftmaxLoss("class_weight: 1 class_weight: 2"), {{4, 3}, {4}}),
              HasSubstr("layer 'it' (SoftmaxWithLoss): class_weight is given 2 times for 3 "
                        "classes; give one per class, class 0 first"));
  EXPECT_THAT(RefusalOf(LossSoftmaxLoss("class_weight: 1 class_weight: -2"), {{4, 2}, {4}}),
              HasSubstr("class_weight is -2; it must be a finite factor, 0 or more"));
  for (const char* field : {"class_weight", "class_weight_power"}) {
    EXPECT_THAT(
        RefusalOf(Join("type: \"SigmoidCrossEntropyLoss\" loss_param { ", field, ": 1 }"),
                  {{4, 2}, {4, 2}}),
        HasSubstr(Join("only SoftmaxWithLoss, SoftmaxFocalLoss and InfogainLoss support ", field,
                       "; pos_weight is "
                       "the weight of the targets that are 1")));
  }
}

TEST(SoftmaxLossTest, RefusesAWrongPowerOfClassWeights) {
  EXPECT_THAT(RefusalOf(LossSoftmaxLoss("class_weight_power: 5"), {{4, 2}, {4}}),
              HasSubstr("class_weight_power is 5; it must be from 0 (no weights) to 4; 1 weighs "
                        "classes by their inverse frequency"));
  EXPECT_THAT(
      RefusalOf(LossSoftmaxLoss("class_weight: 1 class_weight: 1 class_weight_power: 1"),
                {{4, 2}, {4}}),
      HasSubstr("class_weight_power sets class_weight, which is given as well; keep one of them"));
  EXPECT_THAT(RefusalOf(LossSoftmaxLoss("class_weight_power: 1"), {{4, 2}, {4, 2}}),
              HasSubstr("class_weight_power works with class labels"));
}

// Some nets, such as the net of `trainer test`, have no class counts.
TEST(SoftmaxLossTest, APowerOfClassesThatWereNotCountedWeighsThemEqually) {
  std::vector<std::vector<float>> losses;
  for (const char* fields : {"", "class_weight_power: 1"}) {
    LayerRunner loss(LossSoftmaxLoss(fields), {{4, 3}, {4}});
    loss.SetInput(1, {0, 2, 1, 1});
    losses.push_back(loss.Forward(LayerRunner::SomeValues(12, 1)));
  }
  ExpectNear(losses[0], losses[1], 1e-6f);
}

TEST(SoftmaxLossTest, RefusesAGradientOfTheProbabilities) {
  LayerRunner loss(LossSoftmaxLoss(), {{1, 2}, {1}}, {.outputs = 2, .learning_outputs = 2});
  loss.Forward({1, 2});
  EXPECT_THAT(
      [&] {
        loss.Backward({{}, {1, 1}});
      },
      testing::ThrowsMessage<Error>(HasSubstr("the probabilities (second top) have no gradient")));
}

}  // namespace
}  // namespace trainer
