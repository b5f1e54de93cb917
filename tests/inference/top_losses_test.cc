#include "trainer/inference/evaluate/top_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inference/small_net.h"
#include "trainer/inference/predict/blob_source.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;

// Adds batches of three images of 2 x 2 pixels, whose pixels all equal the record's number.
class TopLossesTest : public testing::Test {
 protected:
  void Add(const std::vector<Prediction>& predictions, int64_t labels = 3) {
    std::vector<float> numbers;
    for (int i = 0; i < 12; ++i) numbers.push_back(static_cast<float>(3 * batch_ + i / 4));
    ++batch_;
    const Tensor images = InputBlobs(*net_.net)[0].value;
    net_.net->WriteNchw(numbers, images);
    worst_.Add(*net_.net, images, labels, predictions);
  }
  std::vector<int64_t> Records() const {
    std::vector<int64_t> records;
    for (const TopLoss& image : worst_.images()) records.push_back(image.record);
    return records;
  }

  SmallNet net_{
      "layer { name: 'in' type: 'Input' top: 'x' input_param { "
      "shape { dim: 3 dim: 1 dim: 2 dim: 2 } } }"};
  TopLosses worst_{3};
  int batch_ = 0;
};

TEST_F(TopLossesTest, KeepsTheHighestLossesOfAllBatchesInOrder) {
  Add({{0, 1, 2, 0.5, 0.9}, {1, 1, 2, 2, 0.9}, {2, 1, 1, 0.1, 0.9}});
  EXPECT_THAT(Records(), ElementsAre(1, 0, 2));
  Add({{0, 1, 2, 1, 0.9}, {2, 0, 2, 3, 0.9}});  // record 4, with an ignored label, does not count
  EXPECT_THAT(Records(), ElementsAre(5, 1, 3));
  for (const TopLoss& image : worst_.images()) {
    EXPECT_EQ(image.shape, Shape({1, 1, 2, 2}));
    EXPECT_THAT(image.values, Each(static_cast<float>(image.record)));
  }
  EXPECT_EQ(worst_.images()[0].prediction.predicted, 2);
}

TEST_F(TopLossesTest, LabelsOfPixelsHaveNoImageEach) {
  Add({{0, 1, 2, 0.5, 0.9}}, 12);
  EXPECT_THAT(Records(), ElementsAre());
}

TEST_F(TopLossesTest, NoneAreKeptWhereNoneAreAskedFor) {
  worst_ = TopLosses(0);
  Add({{0, 1, 2, 0.5, 0.9}});
  EXPECT_THAT(Records(), ElementsAre());
}

TEST(FindImagesTest, FindsWhatADataLayerGivesOutAsImages) {
  const SmallNet net(
      "layer { name: 'rows' type: 'Input' top: 'r' input_param { shape { dim: 3 dim: 4 } } } "
      "layer { name: 'in' type: 'Input' top: 'y' top: 'x' input_param { "
      "shape { dim: 3 } shape { dim: 3 dim: 3 dim: 5 dim: 5 } } }");
  const std::optional<Tensor> images = FindImages(*net.net, nullptr);
  ASSERT_TRUE(images.has_value());
  EXPECT_EQ(images->shape, Shape({3, 3, 5, 5}));
  const SmallNet rows(
      "layer { name: 'rows' type: 'Input' top: 'r' input_param { shape { dim: 3 dim: 4 } } }");
  EXPECT_FALSE(FindImages(*rows.net, nullptr).has_value());
}

}  // namespace
}  // namespace trainer
