#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/layer_checks.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr RunnerOptions kDetectionOutputTest{.phase = caffe::TEST, .training = false};

std::string Detect(const std::string& fields) {
  return "type: \"DetectionOutput\"\ndetection_output_param { " + fields + " }";
}

// Each of the three priors covers a third of the image's width; the predictions move the corners.
class ThreeBoxes {
 public:
  explicit ThreeBoxes(const std::string& fields, int64_t items = 1, int64_t classes = 2)
      : layer_(Detect(fields + " num_classes: " + std::to_string(classes)),
               {{items, 12}, {items, 3 * classes}, {1, 2, 12}}, kDetectionOutputTest) {
    layer_.SetInput(0, std::vector<float>(static_cast<size_t>(items * 12), 0.0f));
    layer_.SetInput(2, {0, 0, 3, 2, 3, 0, 6, 2, 6, 0, 9, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  }
  void Move(const std::vector<float>& values) { layer_.SetInput(0, values); }
  std::vector<float> Run(const std::vector<float>& scores) {
    layer_.SetInput(1, scores);
    layer_.Forward();
    return layer_.Output();
  }
  const Shape& OutputShape() const { return layer_.OutputShape(); }

 private:
  LayerRunner layer_;
};

TEST(DetectionOutputTest, HandValuesOfTheSurestOfTwoThatOverlap) {
  ThreeBoxes boxes("confidence_threshold: 0.2");
  boxes.Move({1, 0, 1, 0, -1, 0, -1, 0, 0, 0, 0, 0});  // the first two become 1 to 4 and 2 to 5
  EXPECT_THAT(boxes.Run({0, 0.5, 0, 0.75, 0, 0.25}),
              ElementsAre(0, 1, 0.75, 2, 0, 5, 2, 0, 1, 0.25, 6, 0, 9, 2));
  EXPECT_EQ(boxes.OutputShape(), Shape({1, 1, 2, 7}));
}

TEST(DetectionOutputTest, HandValuesOfAnOverlapAsLargeAsTheThreshold) {
  ThreeBoxes boxes("nms_param { nms_threshold: 0.5 }");
  boxes.Move({1, 0, 1, 0, -1, 0, -1, 0, 0, 0, 0, 0});  // the intersection is 4, the union 8
  EXPECT_EQ(boxes.Run({0, 3, 0, 2, 0, 1}).size(), 21u);
}

TEST(DetectionOutputTest, HandValuesOfTheNumberThatChangesFromPassToPass) {
  ThreeBoxes boxes("confidence_threshold: 0.5", 2);
  EXPECT_EQ(boxes.Run({0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}).size(), 42u);
  EXPECT_THAT(boxes.Run({0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}), ElementsAre(1, 1, 1, 3, 0, 6, 2));
  EXPECT_EQ(boxes.OutputShape(), Shape({1, 1, 1, 7}));
  EXPECT_EQ(boxes.Run({0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}).size(), 42u);
}

TEST(DetectionOutputTest, HandValuesWhereNothingIsFound) {
  ThreeBoxes boxes("confidence_threshold: 0.5", 2);
  EXPECT_THAT(boxes.Run(std::vector<float>(12, 0.5f)),
              ElementsAre(0, -1, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1));
}

TEST(DetectionOutputTest, HandValuesOfTheSurestOfAnItemByClass) {
  ThreeBoxes boxes("keep_top_k: 3", 1, 3);
  const std::vector<float> rows = boxes.Run({9, 0.1f, 0.8f, 9, 0.3f, 0.7f, 9, 0.6f, 0.2f});
  EXPECT_THAT(rows,
              ElementsAre(0, 1, 0.6f, 6, 0, 9, 2, 0, 2, 0.8f, 0, 0, 3, 2, 0, 2, 0.7f, 3, 0, 6, 2));
}

TEST(DetectionOutputTest, HandValuesOfEqualScoresGoByClassAndPrior) {
  ThreeBoxes boxes("keep_top_k: 2 background_label_id: -1");
  EXPECT_THAT(boxes.Run({1, 1, 1, 1, 1, 1}), ElementsAre(0, 0, 1, 0, 0, 3, 2, 0, 0, 1, 3, 0, 6, 2));
}

TEST(DetectionOutputTest, HandValuesOfScoresThatAreNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ThreeBoxes boxes("");
  EXPECT_THAT(boxes.Run({0, nan, 0, 2, 0, nan}), ElementsAre(0, 1, 2, 3, 0, 6, 2));
  boxes.Move({nan, 0, 0, 0, 0, 0, 0, 0, nan, nan, nan, nan});
  const size_t numbers = boxes.Run({0, 1, 0, 2, 0, 3}).size();
  EXPECT_EQ(numbers % 7, 0u);
  EXPECT_LE(numbers, 21u);
}

TEST(DetectionOutputTest, HandValuesOfAFourthBottomThatIsNotRead) {
  LayerRunner layer(Detect("num_classes: 2"), {{1, 4}, {1, 2}, {1, 2, 4}, {1, 3, 8, 8}},
                    kDetectionOutputTest);
  layer.SetInput(0, {0, 0, 0, 0});
  layer.SetInput(1, {0, 1});
  layer.SetInput(2, {0, 0, 0.5, 1, 1, 1, 1, 1});
  layer.SetInput(3, std::vector<float>(192, 5.0f));
  layer.Forward();
  EXPECT_THAT(layer.Output(), ElementsAre(0, 1, 1, 0, 0, 0.5, 1));
}

TEST(DetectionOutputTest, GoldenValues) { ExpectGoldenFile("layers/shapes/detection_output.txt"); }

TEST(DetectionOutputTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(Detect("num_classes: 2"), {{2, 12}, {2, 6}, {1, 2, 12}}, {},
                     kDetectionOutputTest);
}

TEST(DetectionOutputTest, TakesWhatNamesFilesAndWritesNothing) {
  testing::internal::CaptureStderr();
  ThreeBoxes boxes(
      "save_output_param { output_directory: \"no such folder\" output_format: \"VOC\" "
      "label_map_file: \"labelmap.prototxt\" } visualize: true visualize_threshold: 0.5");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log,
              HasSubstr("layer 'it' (DetectionOutput): save_output_param has no effect: this "
                        "program writes no detection files; read the detections from the top"));
  EXPECT_THAT(log, HasSubstr("visualize has no effect: this program shows no images"));
  EXPECT_EQ(boxes.Run({0, 1, 0, 1, 0, 1}).size(), 21u);
}

TEST(DetectionOutputTest, RefusesBadFields) {
  const auto refusal = [](const std::string& fields) {
    return RefusalOf(Detect(fields), {{1, 12}, {1, 6}, {1, 2, 12}}, kDetectionOutputTest);
  };
  EXPECT_THAT(refusal(""), HasSubstr("num_classes is not given; give the number of classes "
                                     "including the background"));
  EXPECT_THAT(
      refusal("num_classes: 0"),
      HasSubstr("net.prototxt:4:26: layer 'it' (DetectionOutput): num_classes is 0; it must "
                "be at least 1 and below 2^31"));
  EXPECT_THAT(refusal("num_classes: 2 confidence_threshold: nan"),
              HasSubstr("confidence_threshold is nan; it must be a finite number"));
  EXPECT_THAT(refusal("num_classes: 2 nms_param { nms_threshold: -1 }"),
              HasSubstr("nms_threshold is -1; it must not be negative"));
  EXPECT_THAT(refusal("num_classes: 2 nms_param { eta: 1.5 }"),
              HasSubstr("eta is 1.5; it must be above 0 and at most 1"));
}

TEST(DetectionOutputTest, RefusesInputsThatDoNotFit) {
  const std::string two = Detect("num_classes: 2");
  EXPECT_THAT(RefusalOf(two, {{1, 12}, {1, 6}, {2, 12}}, kDetectionOutputTest),
              HasSubstr("bottom 'x2' has shape (2, 12); the third bottom must have the boxes of "
                        "PriorBox layers, (1, 2, boxes * 4)"));
  EXPECT_THAT(RefusalOf(two, {{1, 12}, {1, 9}, {1, 2, 12}}, kDetectionOutputTest),
              HasSubstr("bottom 'x1' has shape (1, 9); for the 3 boxes of bottom 'x2' it must be "
                        "(N, 3 * 2): num_classes per box"));
  EXPECT_THAT(RefusalOf(two, {{1, 24}, {1, 6}, {1, 2, 12}}, kDetectionOutputTest),
              HasSubstr("bottom 'x0' has shape (1, 24); for the 3 boxes of bottom 'x2' it must be "
                        "(N, 3 * 4): 4 per box"));
  EXPECT_THAT(RefusalOf(Detect("num_classes: 2 share_location: false"),
                        {{1, 12}, {1, 6}, {1, 2, 12}}, kDetectionOutputTest),
              HasSubstr("it must be (N, 3 * 8): 4 per box and class"));
  EXPECT_THAT(RefusalOf(two, {{2, 12}, {1, 6}, {1, 2, 12}}, kDetectionOutputTest),
              HasSubstr("bottom 'x1' has 1 items and bottom 'x0' has"));
  EXPECT_THAT(RefusalOf(two + " propagate_down: true propagate_down: false propagate_down: false",
                        {{1, 12}, {1, 6}, {1, 2, 12}}),
              HasSubstr("bottom 'x0' cannot get a gradient from this layer"));
}

}  // namespace
}  // namespace trainer
