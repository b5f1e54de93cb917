#include "trainer/metrics/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inference/small_net.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// Returns a net with scores "x" and "z" (4 x 3), labels "y" (4), and targets "t" (4 x 3).
std::string InputsAnd(const std::string& layers) {
  return R"(
layer { name: "in" type: "Input" top: "x" top: "y" top: "z" top: "t" input_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 } shape { dim: 4 dim: 3 } shape { dim: 4 dim: 3 } } }
)" + layers;
}

std::string FoundIn(const std::string& layers, const std::string& name = "") {
  const SmallNet small(InputsAnd(layers));
  const std::optional<Comparison> found = FindComparison(small.net->graph(), name);
  return found ? Describe(*found, small.net->graph()) : "nothing";
}

const char kLoss[] =
    "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x' bottom: 'y' top: 'l' } ";
const char kSoft[] =
    "layer { name: 's' type: 'SoftmaxWithLoss' bottom: 'z' bottom: 't' top: 's' } ";
const char kAccuracy[] = "layer { name: 'a' type: 'Accuracy' bottom: 'z' bottom: 'y' top: 'a' } ";
const char kAccuracy2[] = "layer { name: 'b' type: 'Accuracy' bottom: 'x' bottom: 'y' top: 'b' } ";
const char kSigmoid[] =
    "layer { name: 'c' type: 'SigmoidCrossEntropyLoss' bottom: 'x' bottom: 't' top: 'c' } ";
const char kEuclid[] =
    "layer { name: 'e' type: 'EuclideanLoss' bottom: 'x' bottom: 't' top: 'e' } ";

TEST(ComparisonTest, TakesTheFirstAccuracyThenTheFirstLoss) {
  const std::string all = std::string(kEuclid) + kSigmoid + kSoft + kLoss + kAccuracy + kAccuracy2;
  EXPECT_EQ(FoundIn(all), "layer 'a' (Accuracy)");
  EXPECT_EQ(FoundIn(all, "b"), "layer 'b' (Accuracy)");
  EXPECT_EQ(FoundIn(all, "e"), "layer 'e' (EuclideanLoss)");
  EXPECT_EQ(FoundIn(all, "in"), "nothing");
  EXPECT_EQ(FoundIn(std::string(kEuclid) + kSigmoid + kSoft + kLoss),
            "layer 'l' (SoftmaxWithLoss)");
  EXPECT_EQ(FoundIn(std::string(kEuclid) + kSigmoid + kSoft),
            "layer 'c' (SigmoidCrossEntropyLoss)");
  EXPECT_EQ(FoundIn(kEuclid), "layer 'e' (EuclideanLoss)");
  EXPECT_EQ(FoundIn(kSoft), "nothing") << "distributions over the classes are no labels";
}

// The scores of both layers pass through a Split layer.
TEST(ComparisonTest, ScoresOfASoftmaxLossAreLogits) {
  const SmallNet small(InputsAnd(std::string(kLoss) + kAccuracy + kAccuracy2));
  const Graph& graph = small.net->graph();
  EXPECT_EQ(FindComparison(graph, "l")->scores, ScoreKind::kLogits);
  EXPECT_EQ(FindComparison(graph, "b")->scores, ScoreKind::kLogits) << "it reads the same scores";
  EXPECT_EQ(FindComparison(graph, "a")->scores, ScoreKind::kByValues);
}

TEST(ComparisonTest, KnowsFocalLossesAndL1Loss) {
  for (const auto& [type, kind] : std::vector<std::pair<std::string, TargetKind>>{
           {"SigmoidFocalLoss", TargetKind::kLabels}, {"L1Loss", TargetKind::kNumbers}}) {
    const SmallNet small(R"(
layer { name: "in" type: "Input" top: "x" top: "t" input_param {
  shape { dim: 4 dim: 3 } shape { dim: 4 dim: 3 } } }
layer { name: "l" type: ")" +
                         type + R"(" bottom: "x" bottom: "t" top: "l" })");
    const std::optional<Comparison> found = FindComparison(small.net->graph(), "l");
    ASSERT_TRUE(found.has_value()) << type;
    EXPECT_EQ(found->kind, kind) << type;
  }
}

TEST(ComparisonTest, TheAxisAfterTheRecordsCountsLabelsOrNumbers) {
  const SmallNet small(R"(
layer { name: "in" type: "Input" top: "x" top: "t" input_param {
  shape { dim: 4 dim: 3 dim: 2 dim: 5 } shape { dim: 4 dim: 3 dim: 2 dim: 5 } } }
layer { name: "c" type: "SigmoidCrossEntropyLoss" bottom: "x" bottom: "t"
  loss_param { ignore_label: 9 } })");
  const std::optional<Comparison> found = FindComparison(small.net->graph());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, TargetKind::kLabels);
  EXPECT_EQ(found->columns, 3);
  EXPECT_EQ(found->inner, 10);
  EXPECT_TRUE(found->has_ignore);
  EXPECT_EQ(found->ignore, 9);
}

TEST(ComparisonTest, NamedBlobsAreComparedByTheirShapes) {
  const SmallNet small(InputsAnd(
      "layer { name: 'p' type: 'Sigmoid' bottom: 'x' top: 'p' } "
      "layer { name: 'one' type: 'InnerProduct' bottom: 'z' top: 'one' inner_product_param { "
      "num_output: 1 } } "));
  const Graph& graph = small.net->graph();
  EXPECT_EQ(CompareBlobs(graph, "x", "y", false).kind, TargetKind::kClasses);
  EXPECT_EQ(CompareBlobs(graph, "x", "t", true).kind, TargetKind::kNumbers);
  const Comparison labels = CompareBlobs(graph, "x", "t", false);
  EXPECT_EQ(labels.kind, TargetKind::kLabels);
  EXPECT_EQ(labels.columns, 3);
  EXPECT_FALSE(labels.are_probabilities);
  EXPECT_TRUE(CompareBlobs(graph, "p", "t", false).are_probabilities);
  EXPECT_EQ(Describe(labels, graph), "'x' and 't'");
  EXPECT_EQ(CompareBlobs(graph, "x", "one", false).kind, TargetKind::kClasses);
  EXPECT_THAT(ErrorOf([&] { CompareBlobs(graph, "y", "t", false); }).second,
              HasSubstr("labels 't' of shape 4 3 (12) do not match the scores 'y' of shape 4 (4)"));
}

}  // namespace
}  // namespace trainer
