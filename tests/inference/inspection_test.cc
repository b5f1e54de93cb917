#include "trainer/inference/inspect/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "inference/digits_net.h"
#include "support/error_of.h"
#include "trainer/base/text/table.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/prediction_target.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

class InspectionTest : public testing::Test {
 protected:
  // Inspects the first digit with the net in deploy.prototxt.
  InspectionPage InspectDigit(InspectionOptions options = {.image = ""}) {
    const PredictionTarget target = Target();
    InferenceNet net(target.net, *digits_.device,
                     {.state = target.state, .memory = BufferReuse::kSeparate, .seed = 3});
    if (has_weights_) net.LoadWeights(target.weights);
    if (options.image.empty()) options.image = digits_.WriteImages(1)[0];
    return Inspect(net, options);
  }
  PredictionTarget Target() const {
    return ResolvePredictionTarget({.model = {.file = digits_.folder() / "deploy.prototxt"},
                                    .weights = {digits_.weights()},
                                    .batch = 1});
  }
  // Replaces deploy.prototxt. The weights then come from the fillers.
  void UseNet(const std::string& layers) {
    has_weights_ = false;
    digits_.folder().Write("deploy.prototxt", R"(name: "small"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 1 dim: 28 dim: 28 } } }
)" + layers);
  }

  DigitsNet digits_;
  bool has_weights_ = true;
};

TEST_F(InspectionTest, ShowsInputAnswersFiltersAndOutputs) {
  const InspectionPage page = InspectDigit({.image = "", .top = 2});
  EXPECT_EQ(page.title, "small: 0.pgm");
  ASSERT_THAT(page.input, SizeIs(2));
  EXPECT_EQ(page.input[0].image.width, 30);
  EXPECT_THAT(page.input[0].caption[1], StartsWith("from 0 to "));
  EXPECT_EQ(page.input[1].image.width, 28);
  EXPECT_EQ(page.input[1].caption[0], "saliency of " + page.answers[0].first);
  EXPECT_EQ(page.note, "");
  ASSERT_THAT(page.filters, SizeIs(1));
  EXPECT_EQ(page.filters[0].caption[0], "ip (InnerProduct)");
  EXPECT_EQ(page.filters[0].caption[1], "10 x 1 x 28 x 28");
  EXPECT_EQ(page.filters[0].image.width, 1 + 4 * 29);
  ASSERT_THAT(page.outputs, SizeIs(2));
  EXPECT_EQ(page.outputs[0].caption[0], "ip (InnerProduct)");
  EXPECT_EQ(page.outputs[1].caption[0], "prob (Softmax)");
  EXPECT_EQ(page.outputs[1].caption[1], "10");
}

TEST_F(InspectionTest, TheAnswersAreThoseOfPredict) {
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
  const InspectionPage page = InspectDigit({.image = "", .names = names});
  const PredictionTarget target = Target();
  InferenceNet net(target.net, *digits_.device, {.state = target.state});
  net.LoadWeights(target.weights);
  Classifier classifier(net.net(), "", {});
  ImagePaths paths(digits_.WriteImages(1), "");
  classifier.Run(paths, 1, [&](const ImageScores& image) {
    const std::vector<size_t> best = TopClasses(image.scores, 5);
    ASSERT_THAT(page.answers, SizeIs(5));
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(page.answers[i].first, names[best[i]]);
      EXPECT_EQ(page.answers[i].second, Fixed(static_cast<double>(image.scores[best[i]]), 4));
    }
  });
}

TEST_F(InspectionTest, LayersInPlaceAreShownAndViewsAreNot) {
  UseNet(R"(
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 5 kernel_size: 4 stride: 4 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "drop" type: "Dropout" bottom: "conv" top: "conv" }
layer { name: "flat" type: "Flatten" bottom: "conv" top: "flat" }
layer { name: "map" type: "Convolution" bottom: "conv" top: "map"
  convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: "xavier" } } }
layer { name: "silence" type: "Silence" bottom: "flat" }
)");
  const InspectionPage page = InspectDigit();
  std::vector<std::string> captions;
  for (const PageImage& one : page.outputs) captions.push_back(one.caption[0]);
  EXPECT_THAT(captions, ElementsAre("conv (Convolution)", "relu (ReLU), blob conv",
                                    "flat (Flatten)", "map (Convolution)"));
  EXPECT_THAT(page.outputs[1].caption[2], HasSubstr(" % zeros"));
  EXPECT_EQ(page.outputs[0].image.width, 1 + 3 * 22) << "five maps of 7 x 7, thrice as large";
  ASSERT_THAT(page.filters, SizeIs(1)) << "without those of 1 x 1";
  EXPECT_THAT(page.answers[0].first, testing::MatchesRegex("[01], [0-6], [0-6]"));
}

TEST_F(InspectionTest, ShowsTheChosenLayers) {
  const InspectionPage page = InspectDigit({.image = "", .layers = {"/p.*/", "prob"}});
  ASSERT_THAT(page.outputs, SizeIs(1));
  EXPECT_EQ(page.outputs[0].caption[0], "prob (Softmax)");
  EXPECT_THAT(page.filters, SizeIs(1));
  const auto [code, message] = ErrorOf([&] {
    InspectDigit({.image = "", .layers = {"ip", "conv"}});
  });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(message, StartsWith("--layers=conv: "));
}

TEST_F(InspectionTest, SaysWhyThereIsNoSaliency) {
  UseNet(R"(
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "top" type: "ArgMax" bottom: "ip" top: "top" }
)");
  const InspectionPage page = InspectDigit();
  EXPECT_THAT(page.input, SizeIs(1));
  EXPECT_THAT(page.note, HasSubstr("has no gradient"));
}

TEST_F(InspectionTest, AnImageThatCannotBeReadIsAnError) {
  const auto [code, message] = ErrorOf([&] { InspectDigit({.image = "none.png"}); });
  EXPECT_EQ(code, ErrorCode::kNoInput);
  EXPECT_THAT(message, HasSubstr("none.png"));
}

}  // namespace
}  // namespace trainer
