#include "trainer/metrics/predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "inference/small_net.h"
#include "support/error_of.h"
#include "trainer/inference/evaluate/confusion_matrix.h"
#include "trainer/inference/predict/blob_source.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::vector<int64_t>> CellsOf(const std::vector<ConfusionMatrix::Cell>& cells) {
  std::vector<std::vector<int64_t>> rows;
  for (const ConfusionMatrix::Cell& cell : cells) {
    rows.push_back({cell.label, cell.predicted, cell.count});
  }
  return rows;
}

// Uses a net of only two inputs.
class PredictionsTest : public testing::Test {
 protected:
  void Run(const std::string& shapes, const std::vector<float>& scores,
           const std::vector<float>& labels, int axis, ConfusionMatrix* matrix) {
    const SmallNet small("layer { name: 'in' type: 'Input' top: 'x' top: 'y' input_param { " +
                         shapes + " } }");
    const std::vector<InputBlob> inputs = InputBlobs(*small.net);
    small.net->WriteNchw(scores, inputs[0].value);
    small.net->WriteNchw(labels, inputs[1].value);
    predictions_ =
        ReadPredictions(*small.net, {inputs[0].value, inputs[1].value, axis, has_ignore_, 255, "y"},
                        matrix->classes());
    for (const Prediction& one : predictions_) matrix->Add(one.label, one.predicted);
  }

  bool has_ignore_ = false;
  std::vector<Prediction> predictions_;
};

TEST_F(PredictionsTest, TheLossIsThatOfSoftmaxOrOfProbabilities) {
  ConfusionMatrix matrix(2);
  const float third = std::log(2.0f);  // with a score of 0, one third and two thirds
  Run("shape { dim: 3 dim: 2 } shape { dim: 3 }", {0, third, 0.25, 0.75, 1, NAN}, {0, 1, 0}, 1,
      &matrix);
  ASSERT_EQ(predictions_.size(), 3u);
  EXPECT_NEAR(predictions_[0].loss, std::log(3), 1e-6);
  EXPECT_NEAR(predictions_[0].confidence, 2.0 / 3, 1e-6);
  EXPECT_NEAR(predictions_[1].loss, -std::log(0.75), 1e-6);
  EXPECT_NEAR(predictions_[1].confidence, 0.75, 1e-6);
  EXPECT_TRUE(std::isinf(predictions_[2].loss));
  EXPECT_EQ(predictions_[2].index, 2);
}

TEST_F(PredictionsTest, TheHighestScoreIsPredicted) {
  ConfusionMatrix matrix(3);
  Run("shape { dim: 3 dim: 3 } shape { dim: 3 }", {1, 3, 2, 5, 0, 1, -1, -2, -3}, {1, 2, 0}, 1,
      &matrix);
  EXPECT_THAT(CellsOf(matrix.Cells()),
              ElementsAre(ElementsAre(0, 0, 1), ElementsAre(1, 1, 1), ElementsAre(2, 0, 1)));
}

TEST_F(PredictionsTest, TiesAndNumbersThatAreNoneAreMisses) {
  const float nan = NAN;
  ConfusionMatrix matrix(3);
  Run("shape { dim: 4 dim: 3 } shape { dim: 4 }", {1, 1, 0, 0, 0, 0, nan, 1, 0, 1, 0, nan},
      {0, 1, 0, 0}, 1, &matrix);
  EXPECT_THAT(CellsOf(matrix.Cells()),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(0, 2, 1), ElementsAre(1, 0, 1)));
}

TEST_F(PredictionsTest, EveryPixelOfAnImageCountsButIgnoredLabels) {
  has_ignore_ = true;
  ConfusionMatrix matrix(2);
  // The scores of class 0 and then of class 1, for the pixels a b / c d.
  Run("shape { dim: 1 dim: 2 dim: 2 dim: 2 } shape { dim: 1 dim: 1 dim: 2 dim: 2 }",
      {1, 0, 1, 0, 0, 1, 0, 1}, {0, 1, 1, 255}, 1, &matrix);
  EXPECT_THAT(CellsOf(matrix.Cells()),
              ElementsAre(ElementsAre(0, 0, 1), ElementsAre(1, 0, 1), ElementsAre(1, 1, 1)));
}

TEST_F(PredictionsTest, RefusesWhatDoesNotFit) {
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

TEST(PredictTest, LogitsThatSumTo1AreNoProbabilities) {
  const float scores[] = {0.25f, 0.75f};
  double probabilities[2];
  ReadProbabilities(scores, probabilities);
  EXPECT_EQ(probabilities[1], 0.75);
  ReadProbabilities(scores, probabilities, ScoreKind::kLogits);
  EXPECT_NEAR(probabilities[1], 1 / (1 + std::exp(-0.5)), 1e-12);
  const Prediction prediction = Predict(scores, 2, 1, 1, ScoreKind::kLogits);
  EXPECT_NEAR(prediction.loss, std::log1p(std::exp(-0.5)), 1e-12);
  EXPECT_NEAR(prediction.confidence, probabilities[1], 1e-12);
}

}  // namespace
}  // namespace trainer
