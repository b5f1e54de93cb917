// Tests fractional labels, and labels of any shape, in every layer that reads labels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/error_of.h"
#include "support/layer_runner.h"
#include "trainer/base/text/text.h"
#include "trainer/layers/label_rule.h"

namespace trainer {
namespace {

TEST(LabelRuleTest, FractionsAreCutTowardsZeroAsInCaffe) {
  const LabelRule rule{.classes = 3, .has_ignore = true, .ignore = -1};
  EXPECT_EQ(rule.Read(0.5f), 0);
  EXPECT_EQ(rule.Read(-0.5f), 0);
  EXPECT_EQ(rule.Read(2.99f), 2);
  EXPECT_EQ(rule.Read(3), kBadLabel);
  EXPECT_EQ(rule.Read(-1.5f), kIgnoredLabel);
  EXPECT_EQ(rule.Read(-2), kBadLabel);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(), -3e9f, 3e9f}) {
    EXPECT_EQ(rule.Read(bad), kBadLabel) << bad;
  }
}

// Returns the first output for these labels.
std::vector<float> Outputs(const char* text, const std::vector<float>& labels) {
  LayerRunner layer(text, {{3, 2}, {3}});
  layer.SetInput(0, {0.25, 0.5, 0.75, 0.25, 0.5, 0.125});
  layer.SetInput(1, labels);
  layer.Forward();
  return layer.Output(0);
}

TEST(LabelsTest, FractionalLabelsCountAsTheirWholePart) {
  for (const char* text : {R"(type: "SoftmaxWithLoss")", R"(type: "HingeLoss")",
                           R"(type: "MultinomialLogisticLoss")", R"(type: "Accuracy")"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(Outputs(text, {0.5, 1.75, -0.25}), Outputs(text, {0, 1, 0}));
  }
  LayerRunner pairs(R"(type: "ContrastiveLoss")", {{2, 2}, {2, 2}, {2}});
  for (const int i : {0, 1}) pairs.SetInput(i, LayerRunner::SomeValues(4, 1 + i));
  pairs.SetInput(2, {0, 1});
  pairs.Forward();
  const std::vector<float> whole = pairs.Output(0);
  pairs.SetInput(2, {0.5, 1.5});
  pairs.Forward();
  EXPECT_EQ(pairs.Output(0), whole);
}

// Returns the outputs and the scores' gradient for labels of this shape, in row-major order.
std::vector<std::vector<float>> Results(const std::string& text, const Shape& scores,
                                        const Shape& labels, bool learns) {
  std::vector<Shape> inputs = {scores, labels};
  if (text.find("Infogain") != text.npos) inputs.push_back({5, 5});
  LayerRunner layer(text, inputs, {.outputs = 2, .training = learns, .learning_outputs = 1});
  std::vector<float> label(static_cast<size_t>(labels.Count()));
  for (size_t i = 0; i < label.size(); ++i) label[i] = static_cast<float>(i * 7 % 5);
  layer.SetInput(0, LayerRunner::SomeValues(scores.Count(), 1));
  layer.SetInput(1, label);
  if (inputs.size() > 2) layer.SetInput(2, LayerRunner::SomeValues(25, 3));
  layer.Forward();
  std::vector<std::vector<float>> results = {layer.Output(0), layer.Output(1)};
  if (!learns) return results;
  layer.Backward({{1}});
  results.push_back(layer.InputGradient());
  return results;
}

// Caffe compares both in row-major order. Five axes store the same scores in that order.
TEST(LabelsTest, AnyShapeOfTheRightCountIsTakenInRowMajorOrder) {
  struct Case {
    const char* axis;
    Shape scores, five;
    std::vector<Shape> labels;
  };
  const std::vector<Case> cases = {
      {"axis: 3", {6, 2, 3, 5}, {1, 6, 2, 3, 5}, {{6, 2, 3}, {6, 2, 3, 1}, {36}, {6, 3, 2, 1}}},
      {"axis: 2", {6, 2, 5, 3}, {1, 6, 2, 5, 3}, {{6, 2, 3}, {6, 2, 1, 3}, {3, 2, 3, 2}}},
      {"axis: 1", {6, 5, 2, 3}, {1, 6, 5, 2, 3}, {{6, 2, 3}, {6, 1, 2, 3}, {3, 2, 3, 2}}}};
  for (const Case& one : cases) {
    const std::string axis = one.axis, deep = "axis: " + std::to_string(axis.back() - '0' + 1);
    const auto texts = [](const std::string& field) {
      return std::vector<std::string>{
          "type: \"SoftmaxWithLoss\" softmax_param { " + field +
              " } loss_param { class_weight: 1 "
              "class_weight: 2 class_weight: 3 class_weight: 1 class_weight: 2 }",
          "type: \"InfogainLoss\" infogain_loss_param { " + field + " }",
          "type: \"Accuracy\" accuracy_param { " + field + " }"};
    };
    for (size_t i = 0; i < 3; ++i) {
      const bool learns = i < 2;
      const auto want = Results(texts(deep)[i], one.five, {36}, learns);
      for (const Shape& labels : one.labels) {
        const auto got = Results(texts(axis)[i], one.scores, labels, learns);
        for (size_t k = 0; k < want.size(); ++k) {
          SCOPED_TRACE(texts(axis)[i] + labels.ToString() + " result " + std::to_string(k));
          ExpectNear(got[k], want[k], 1e-6f);
        }
      }
    }
  }
}

TEST(LabelsTest, SwappedBottomsAreNamedAsSuch) {
  for (const std::string type :
       {"SoftmaxWithLoss", "HingeLoss", "MultinomialLogisticLoss", "Accuracy"}) {
    SCOPED_TRACE(type);
    for (const Shape& labels : {Shape{3}, Shape{3, 1}}) {
      const auto [code, message] = ErrorOf([&] {
        LayerRunner("type: \"" + type + "\"", {labels, {3, 2}});
      });
      EXPECT_EQ(code, ErrorCode::kConfig);
      EXPECT_THAT(message, testing::HasSubstr("the labels must be the second bottom, but '"));
      EXPECT_THAT(message, testing::HasSubstr("of shape (3, 2) are the second; swap the two"));
    }
  }
}

TEST(LabelsTest, LabelsOfASequenceNameTheAxis) {
  for (const auto& [type, param] :
       {std::pair("SoftmaxWithLoss", "softmax_param"), std::pair("Accuracy", "accuracy_param"),
        std::pair("InfogainLoss", "infogain_loss_param")}) {
    std::vector<Shape> inputs = {{4, 5, 7}, {4, 5}};
    if (type == std::string("InfogainLoss")) inputs.push_back({7, 7});
    EXPECT_THAT(RefusalOf(Join("type: \"", type, "\""), inputs),
                testing::HasSubstr(Join("which needs 28 labels, e.g. shape (4, 1, 7); if the "
                                        "classes are on axis 2, write ",
                                        param, " { axis: 2 }")));
  }
}

TEST(LabelsTest, LabelsOfMixupAreNamedAsSuch) {
  const auto refusal = [](const std::string& type, const Shape& scores, const Shape& labels) {
    return RefusalOf(Join("type: \"", type, "\""), {scores, labels});
  };
  const std::string made = "; if mixup or cutmix of transform_param made these labels, ";
  EXPECT_THAT(refusal("Accuracy", {4, 5}, {4, 5}),
              testing::HasSubstr(made + "add include { phase: TEST } to this layer, because in "
                                        "TRAIN they are a share for each class"));
  EXPECT_THAT(refusal("SoftmaxFocalLoss", {4, 5}, {4, 5}),
              testing::HasSubstr(made + "use SoftmaxWithLoss, which takes a share for each class, "
                                        "or remove both"));
  EXPECT_THAT(refusal("SoftmaxWithLoss", {4, 5}, {4, 10}),
              testing::HasSubstr(made + "set mixup_classes: 5, the number of scores"));
  EXPECT_THAT(refusal("SoftmaxWithLoss", {4, 5, 1, 1}, {4, 5}),
              testing::HasSubstr(made + "put a Flatten layer before this one, so that both shapes "
                                        "are equal"));
}

}  // namespace
}  // namespace trainer
