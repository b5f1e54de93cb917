#include "trainer/inference/export/export_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "inference/digits_net.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ExportNetTest : public testing::Test {
 protected:
  std::string Export(ExportOptions options = {}) const {
    options.spec.state = StateOf(caffe::TEST);
    return ToText(ExportNet(digits_.Load(), *digits_.device, options));
  }
  void ExpectRefused(const ExportOptions& options, ErrorCode code, const std::string& part) const {
    const auto [thrown, message] = ErrorOf([&] { Export(options); });
    EXPECT_EQ(thrown, code) << message;
    EXPECT_THAT(message, HasSubstr(part));
  }

  DigitsNet digits_;
};

TEST_F(ExportNetTest, DataBecomesAnInputAndTheLossProbabilities) {
  const std::string text = Export({.spec = {}, .batch = 3, .shape = {}});
  EXPECT_EQ(text, R"(# To prepare images as its training did: trainer predict --scale=0.00390625
name: "small"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param {
    shape {
      dim: 3
      dim: 1
      dim: 28
      dim: 28
    }
  }
}
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "data"
  top: "ip"
  inner_product_param {
    num_output: 10
  }
}
layer {
  name: "prob"
  type: "Softmax"
  bottom: "ip"
  top: "prob"
}
)");
  const NetSpec spec = LoadNet(digits_.folder().Write("exported.prototxt", text));
  InferenceNet net(spec, *digits_.device, {.state = StateOf(caffe::TEST)});
  net.LoadWeights(std::vector<std::string>{digits_.weights()});
  ASSERT_EQ(net.net().outputs().size(), 1u);
  EXPECT_EQ(net.net().outputs()[0].value.shape, Shape({3, 10}));
}

TEST_F(ExportNetTest, AShapeThatIsGivenNeedsNoData) {
  std::filesystem::remove_all(digits_.folder() / "data");
  EXPECT_THAT(Export({.spec = {}, .shape = ParseItemShape("1,28,28")}), HasSubstr("dim: 28"));
  ExpectRefused({}, ErrorCode::kNoInput, "give the shape of one item");
  EXPECT_THAT(ErrorOf([] { ParseItemShape("1,x"); }).second,
              HasSubstr("'x' is not a positive whole number"));
}

TEST_F(ExportNetTest, ANetWithDataForTrainingAloneIsExported) {
  const std::string with_tests = Export();
  digits_.text = Edited(digits_.text, "phase: TEST", "phase: TRAIN");
  EXPECT_EQ(Export(), with_tests);
}

TEST_F(ExportNetTest, KeepsTheMainLossOrTheNamedOutputs) {
  digits_.text += R"(layer { name: "side" type: "InnerProduct" bottom: "data" top: "side"
                        inner_product_param { num_output: 10 } }
                layer { name: "side_loss" type: "SoftmaxWithLoss" bottom: "side" bottom: "label"
                        top: "side_loss" loss_weight: 0.3 })";
  const std::string main = Export();
  EXPECT_THAT(main, HasSubstr("\"ip\""));
  EXPECT_THAT(main, Not(HasSubstr("side")));
  const std::string side = Export({.spec = {.state = {}, .outputs = {"side"}}, .shape = {}});
  EXPECT_THAT(side, HasSubstr("\"side\""));
  EXPECT_THAT(side, Not(HasSubstr("\"ip\"")));
  ExpectRefused({.spec = {.state = {}, .outputs = {"syde"}}, .shape = {}}, ErrorCode::kConfig,
                "Did you mean 'side'?");
}

TEST_F(ExportNetTest, EachLossOfScoresHasTheLayerOfItsProbabilities) {
  const std::string original = digits_.text;
  digits_.text = Edited(original, "SoftmaxWithLoss", "SoftmaxFocalLoss");
  const std::string focal = Export();
  EXPECT_THAT(focal, HasSubstr("type: \"Softmax\""));
  EXPECT_THAT(focal, Not(HasSubstr("Loss")));
}

TEST_F(ExportNetTest, TheCommentSaysHowImagesArePreprocessed) {
  digits_.text = Edited(digits_.text, "scale: 0.00390625", "crop_size: 24 mean_value: 30");
  EXPECT_THAT(Export(), StartsWith("# To prepare images as its training did: trainer predict "
                                   "--resize=28,28 --mean_value=30\n"));
  digits_.text = Edited(digits_.text, "crop_size: 24 mean_value: 30", "mirror: true");
  EXPECT_THAT(Export(), StartsWith("# Images go in as they are: pixels from 0 to 255\n"));
  digits_.text = Edited(digits_.text, "mirror: true", "crop_size: 24");
  std::filesystem::remove_all(digits_.folder() / "data");
  EXPECT_THAT(Export({.spec = {}, .shape = Shape({1, 24, 24})}),
              HasSubstr("--resize=H,W (H,W: the size of the data set's images)"));
  digits_.text = Edited(digits_.text, "type: \"Data\"", "type: \"HDF5Data\"");
  EXPECT_THAT(Export({.spec = {}, .shape = Shape({1, 24, 24})}), StartsWith("name: \"small\""));
}

}  // namespace
}  // namespace trainer
