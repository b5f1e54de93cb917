#include "trainer/inference/confusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "inference/small_net.h"
#include "support/error_of.h"
#include "trainer/inference/net_inputs.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::vector<int64_t>> Rows(const std::vector<ConfusionMatrix::Cell>& cells) {
  std::vector<std::vector<int64_t>> rows;
  for (const ConfusionMatrix::Cell& cell : cells) {
    rows.push_back({cell.label, cell.answer, cell.count});
  }
  return rows;
}

// By hand:        answer 0  1  2
//        label 0         3  1  0
//        label 1         0  2  2
//        label 2         0  0  0
ConfusionMatrix HandMade() {
  ConfusionMatrix matrix(3);
  for (const auto& [label, answer] : std::vector<std::pair<int, int>>{
           {0, 0}, {1, 2}, {0, 1}, {0, 0}, {1, 1}, {1, 2}, {0, 0}, {1, 1}}) {
    matrix.Add(label, answer);
  }
  return matrix;
}

TEST(ConfusionMatrixTest, CountsHitsOfEachClass) {
  const ConfusionMatrix matrix = HandMade();
  EXPECT_EQ(matrix.total(), 8);
  EXPECT_EQ(matrix.hits(), 5);
  EXPECT_DOUBLE_EQ(matrix.accuracy(), 0.625);
  EXPECT_DOUBLE_EQ(matrix.Of(0).recall(), 0.75);
  EXPECT_DOUBLE_EQ(matrix.Of(0).precision(), 1);
  EXPECT_DOUBLE_EQ(matrix.Of(1).recall(), 0.5);
  EXPECT_DOUBLE_EQ(matrix.Of(1).precision(), 2.0 / 3);
  EXPECT_EQ(matrix.Of(2).labels, 0);
  EXPECT_EQ(matrix.Of(2).answers, 2);
  EXPECT_EQ(matrix.Of(2).recall(), 0) << "no records, no division by zero";
  EXPECT_DOUBLE_EQ(matrix.MeanRecall(), 0.625) << "of two classes";
  EXPECT_EQ(matrix.Count(1, 2), 2);
  EXPECT_EQ(matrix.Count(2, 0), 0);
}

TEST(ConfusionMatrixTest, ListsCellsAndTheWorstMistakes) {
  const ConfusionMatrix matrix = HandMade();
  EXPECT_THAT(Rows(matrix.Cells()), ElementsAre(ElementsAre(0, 0, 3), ElementsAre(0, 1, 1),
                                                ElementsAre(1, 1, 2), ElementsAre(1, 2, 2)));
  EXPECT_THAT(Rows(matrix.Worst(5)), ElementsAre(ElementsAre(1, 2, 2), ElementsAre(0, 1, 1)));
  EXPECT_THAT(Rows(matrix.Worst(1)), ElementsAre(ElementsAre(1, 2, 2)));
  EXPECT_EQ(ConfusionMatrix(2).accuracy(), 0);
  EXPECT_EQ(ConfusionMatrix(2).MeanRecall(), 0);
}

// A net of nothing but two inputs.
class AnswersTest : public testing::Test {
 protected:
  void Run(const std::string& shapes, const std::vector<float>& scores,
           const std::vector<float>& labels, int axis, ConfusionMatrix* matrix) {
    const SmallNet small("layer { name: 'in' type: 'Input' top: 'x' top: 'y' input_param { " +
                         shapes + " } }");
    const std::vector<InputBlob> inputs = InputBlobs(*small.net);
    small.net->WritePlain(scores, inputs[0].value);
    small.net->WritePlain(labels, inputs[1].value);
    answers_ =
        AnswersOf(*small.net, {inputs[0].value, inputs[1].value, axis, has_ignore_, 255, "y"},
                  matrix->classes());
    for (const LabelAnswer& answer : answers_) matrix->Add(answer.label, answer.answer);
  }

  bool has_ignore_ = false;
  std::vector<LabelAnswer> answers_;
};

TEST_F(AnswersTest, TheLossIsThatOfSoftmaxOrOfProbabilities) {
  ConfusionMatrix matrix(2);
  const float third = std::log(2.0f);  // against 0: one third and two thirds
  Run("shape { dim: 3 dim: 2 } shape { dim: 3 }", {0, third, 0.25, 0.75, 1, NAN}, {0, 1, 0}, 1,
      &matrix);
  ASSERT_EQ(answers_.size(), 3u);
  EXPECT_NEAR(answers_[0].loss, std::log(3), 1e-6);
  EXPECT_NEAR(answers_[0].confidence, 2.0 / 3, 1e-6);
  EXPECT_NEAR(answers_[1].loss, -std::log(0.75), 1e-6);
  EXPECT_NEAR(answers_[1].confidence, 0.75, 1e-6);
  EXPECT_TRUE(std::isinf(answers_[2].loss));
  EXPECT_EQ(answers_[2].place, 2);
}

TEST_F(AnswersTest, TheHighestScoreIsTheAnswer) {
  ConfusionMatrix matrix(3);
  Run("shape { dim: 3 dim: 3 } shape { dim: 3 }", {1, 3, 2, 5, 0, 1, -1, -2, -3}, {1, 2, 0}, 1,
      &matrix);
  EXPECT_THAT(Rows(matrix.Cells()),
              ElementsAre(ElementsAre(0, 0, 1), ElementsAre(1, 1, 1), ElementsAre(2, 0, 1)));
}

TEST_F(AnswersTest, TiesAndNumbersThatAreNoneAreMisses) {
  const float nan = NAN;
  ConfusionMatrix matrix(3);
  Run("shape { dim: 4 dim: 3 } shape { dim: 4 }", {1, 1, 0, 0, 0, 0, nan, 1, 0, 1, 0, nan},
      {0, 1, 0, 0}, 1, &matrix);
  EXPECT_THAT(Rows(matrix.Cells()),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(0, 2, 1), ElementsAre(1, 0, 1)));
}

TEST_F(AnswersTest, EveryPixelOfAnImageCountsButIgnoredLabels) {
  has_ignore_ = true;
  ConfusionMatrix matrix(2);
  // Class 0 and then class 1 of the pixels a b / c d.
  Run("shape { dim: 1 dim: 2 dim: 2 dim: 2 } shape { dim: 1 dim: 1 dim: 2 dim: 2 }",
      {1, 0, 1, 0, 0, 1, 0, 1}, {0, 1, 1, 255}, 1, &matrix);
  EXPECT_THAT(Rows(matrix.Cells()),
              ElementsAre(ElementsAre(0, 0, 1), ElementsAre(1, 0, 1), ElementsAre(1, 1, 1)));
}

TEST_F(AnswersTest, RefusesWhatDoesNotFit) {
  ConfusionMatrix matrix(3);
  const std::string shapes = "shape { dim: 1 dim: 3 } shape { dim: 1 }";
  for (const float label : {3.0f, -1.0f, 3.5f, static_cast<float>(NAN)}) {
    const auto [code, message] = ErrorOf([&] { Run(shapes, {1, 2, 3}, {label}, 1, &matrix); });
    EXPECT_EQ(code, ErrorCode::kData);
    EXPECT_THAT(message, HasSubstr("in 'y' is not a class: there are 3, 0 to 2"));
  }
  const auto [code, message] = ErrorOf([&] {
    Run("shape { dim: 1 dim: 3 } shape { dim: 2 }", {1, 2, 3}, {0, 0}, 1, &matrix);
  });
  EXPECT_EQ(code, ErrorCode::kConfig);
  EXPECT_THAT(message, HasSubstr("labels 'y' of shape 2 (2) do not match the scores"));
}

}  // namespace
}  // namespace trainer
