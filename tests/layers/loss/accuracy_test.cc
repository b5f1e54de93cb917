#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Accuracy(const std::string& fields = "") {
  return "type: \"Accuracy\"\naccuracy_param { " + fields + " }";
}

std::vector<float> Shares(const std::string& fields, const Shape& shape,
                          const std::vector<float>& x, const std::vector<float>& labels,
                          int output = 0) {
  LayerRunner layer(Accuracy(fields), {shape, {static_cast<int64_t>(labels.size())}},
                    {.outputs = 2, .phase = caffe::TEST, .training = false});
  layer.SetInput(0, x);
  layer.SetInput(1, labels);
  layer.Forward();
  return layer.Output(output);
}

TEST(AccuracyTest, HandValues) {
  const std::vector<float> x = {1, 2, 3, 3, 2, 1, 1, 3, 2, 0, 0, 1};
  EXPECT_THAT(Shares("", {4, 3}, x, {2, 0, 0, 2}), ElementsAre(0.75));
  EXPECT_THAT(Shares("", {4, 3}, x, {2, 0, 0, 2}, 1), ElementsAre(0.5, 0, 1));
  EXPECT_THAT(Shares("top_k: 2", {4, 3}, x, {1, 1, 0, 2}), ElementsAre(0.75));
}

TEST(AccuracyTest, HandValuesOfTiesCountAgainst) {
  EXPECT_THAT(Shares("", {2, 3}, {1, 1, 0, 2, 1, 2}, {0, 2}), ElementsAre(0));
  EXPECT_THAT(Shares("top_k: 2", {2, 3}, {1, 1, 0, 2, 1, 2}, {0, 2}), ElementsAre(1));
}

TEST(AccuracyTest, HandValuesOfNanScoresCountAgainst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Shares("", {2, 2}, {nan, nan, nan, 1}, {0, 1}), ElementsAre(0));
}

TEST(AccuracyTest, HandValuesOfIgnoredLabels) {
  EXPECT_THAT(Shares("ignore_label: 9", {3, 2}, {1, 0, 1, 0, 1, 0}, {0, 9, 1}), ElementsAre(0.5));
  EXPECT_THAT(Shares("ignore_label: 9", {1, 2}, {1, 0}, {9}), ElementsAre(0));
}

TEST(AccuracyTest, HandValuesOfFractionsOfLabels) {
  const std::vector<float> x = {2, 1, 0, 2, 1, 0}, labels = {0.5f, 1.75f};
  EXPECT_THAT(Shares("", {2, 3}, x, labels), ElementsAre(0.5));
  EXPECT_THAT(Shares("", {2, 3}, x, labels, 1), ElementsAre(1, 0, 0)) << "of classes 0 and 1";
}

// The sums over rows are vectorised if there are at least 16 rows.
TEST(AccuracyTest, SharesOfClassesAreRightForManyRows) {
  constexpr int kRows = 500, kClasses = 10;
  std::vector<float> x(kRows * kClasses), labels(kRows);
  std::vector<float> hits(kClasses), counts(kClasses);
  for (int i = 0; i < kRows; ++i) {
    const int label = i * 7 % 11, answer = i % 3 == 0 ? i % kClasses : label % kClasses;
    labels[static_cast<size_t>(i)] = static_cast<float>(label);  // label 10 is ignored
    x[static_cast<size_t>(i * kClasses + answer)] = 1;
    if (label == kClasses) continue;
    ++counts[static_cast<size_t>(label)];
    if (answer == label) ++hits[static_cast<size_t>(label)];
  }
  std::vector<float> shares;
  for (size_t c = 0; c < kClasses; ++c) shares.push_back(hits[c] / counts[c]);
  EXPECT_THAT(Shares("ignore_label: 10", {kRows, kClasses}, x, labels, 1),
              testing::ElementsAreArray(shares));
}

TEST(AccuracyTest, GoldenValues) {
  for (const GoldenCase& golden : ReadGolden("layers/losses/accuracy.txt")) {
    ExpectGolden(golden, {.inputs = {"x", "label"}, .outputs = {"accuracy", "per_class"}});
  }
}

TEST(AccuracyTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Accuracy(), {{2, 3}, {2}}, {{}, {1, 2}},
                     {.phase = caffe::TEST, .training = false});
}

TEST(AccuracyTest, RefusesLabelsThatAreNoClass) {
  LayerRunner layer(Accuracy(), {{2, 3}, {2}});
  layer.SetInput(1, {0, 3});
  EXPECT_THAT([&] { layer.Forward(); },
              testing::ThrowsMessage<Error>(HasSubstr(
                  "layer 'it' (Accuracy): label 3 of item 1 of the batch is not a class: there "
                  "are 3 classes, 0 to 2")));
}

TEST(AccuracyTest, RefusesATopKThatNoClassCountAllows) {
  EXPECT_THAT(RefusalOf(Accuracy("top_k: 4"), {{2, 3}, {2}}),
              HasSubstr("net.prototxt:4:18: layer 'it' (Accuracy): top_k is 4; with 3 classes it "
                        "must be 1 to 3"));
  EXPECT_THAT(RefusalOf(Accuracy("top_k: 0"), {{2, 3}, {2}}), HasSubstr("top_k is 0; with 3"));
}

TEST(AccuracyTest, RefusesLabelsOfAnotherCount) {
  EXPECT_THAT(RefusalOf(Accuracy(), {{4, 10}, {3}}),
              HasSubstr("labels 'x1' have shape (3) but scores 'x0' have (4, 10)"));
}

TEST(AccuracyTest, RefusesAPropagateDown) {
  EXPECT_THAT(RefusalOf(Accuracy() + "propagate_down: true propagate_down: false", {{4, 2}, {4}}),
              HasSubstr("bottom 'x0' cannot get a gradient from this layer"));
}

}  // namespace
}  // namespace trainer
