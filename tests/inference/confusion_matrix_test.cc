#include "trainer/inference/evaluate/confusion_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using testing::ElementsAre;

std::vector<std::vector<int64_t>> Rows(const std::vector<ConfusionMatrix::Cell>& cells) {
  std::vector<std::vector<int64_t>> rows;
  for (const ConfusionMatrix::Cell& cell : cells) {
    rows.push_back({cell.label, cell.predicted, cell.count});
  }
  return rows;
}

// By hand:        predicted 0  1  2
//           label 0         3  1  0
//           label 1         0  2  2
//           label 2         0  0  0
ConfusionMatrix HandMade() {
  ConfusionMatrix matrix(3);
  for (const auto& [label, predicted] : std::vector<std::pair<int, int>>{
           {0, 0}, {1, 2}, {0, 1}, {0, 0}, {1, 1}, {1, 2}, {0, 0}, {1, 1}}) {
    matrix.Add(label, predicted);
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
  EXPECT_EQ(matrix.Of(2).predictions, 2);
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

}  // namespace
}  // namespace trainer
