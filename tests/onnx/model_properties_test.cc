#include "trainer/onnx/model_properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/exported.h"
#include "support/error_of.h"
#include "trainer/base/text/text.h"
#include "trainer/onnx/fine_tune.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::Pair;

constexpr char kClassifier[] = R"(# To prepare images as its training did: trainer predict )"
                               R"(--mean_value=104,117,123 --scale=0.5
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 6 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
)";

std::vector<std::pair<std::string, std::string>> PropertiesOf(const onnx::ModelProto& model) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& property : model.metadata_props()) {
    all.emplace_back(property.key(), property.value());
  }
  return all;
}

TEST(ModelPropertiesTest, AClassifierHasThePropertiesOfBothFamilies) {
  Exported exported(kClassifier);
  Net& net = exported.net->net();
  EXPECT_EQ(CountClasses(net, exported.graph()), 2);
  ModelDescription description;
  description.labels = {"tabby cat", "it's"};
  description.images = ResolveImagePreparation(net, exported.spec, {}, "");
  AddModelProperties(net, description, &exported.result.model);
  EXPECT_THAT(PropertiesOf(exported.result.model),
              ElementsAre(Pair("task", "classify"), Pair("model_info model_type", "Classification"),
                          Pair("names", "{0: 'tabby cat', 1: 'it\\'s'}"),
                          Pair("model_info labels", "tabby_cat it's"), Pair("imgsz", "[8, 6]"),
                          Pair("batch", "2"), Pair("channels", "3"), Pair("stride", "1"),
                          Pair("model_info resize_type", "standard"),
                          Pair("model_info reverse_input_channels", "NO"),
                          Pair("model_info mean_values", "104 117 123"),
                          Pair("model_info scale_values", "2 2 2")));
}

// MakeFineTuneNet compares the means with kTorchvisionMean.
TEST(ModelPropertiesTest, MeansAndScaleAreReadBackAsTheyWere) {
  const std::string net = kClassifier;
  Exported exported(
      Join("# To prepare images as its training did: trainer predict "
           "--mean_value=103.53,116.28,123.675",
           net.substr(net.find('\n'))));
  ModelDescription description;
  description.images = ResolveImagePreparation(exported.net->net(), exported.spec, {}, "");
  AddModelProperties(exported.net->net(), description, &exported.result.model);
  const std::optional<PixelScaling> pixels = ReadPixelScaling(exported.result.model);
  ASSERT_TRUE(pixels.has_value());
  EXPECT_THAT(pixels->means, ElementsAreArray(kTorchvisionMean));
  EXPECT_EQ(pixels->scale, 1);
}

TEST(ModelPropertiesTest, WithThePreprocessingInsideTheInputArePixels) {
  Exported exported(kClassifier);
  Net& net = exported.net->net();
  const ModelDescription description = {
      .images = ResolveImagePreparation(net, exported.spec, {}, "rgb"), .is_inside = true};
  EXPECT_THAT(description.images.preprocessing.mean, ElementsAre(104, 117, 123));
  EXPECT_EQ(description.images.preprocessing.scale, 0.5f);
  onnx::ModelProto model;
  AddModelProperties(net, description, &model);
  EXPECT_THAT(PropertiesOf(model),
              testing::IsSupersetOf({Pair("model_info reverse_input_channels", "YES"),
                                     Pair("Image.BitmapPixelFormat", "Rgb8"),
                                     Pair("Image.NominalPixelRange", "NominalRange_0_255")}));
}

TEST(ModelPropertiesTest, ANetWithoutImagesHasFewProperties) {
  Exported exported(R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "y" type: "TanH" bottom: "data" top: "y" }
layer { name: "z" type: "AbsVal" bottom: "data" top: "z" })");
  Net& net = exported.net->net();
  AddModelProperties(net, {}, &exported.result.model);
  EXPECT_THAT(PropertiesOf(exported.result.model), IsEmpty());
  const auto [code, message] =
      ErrorOf([&] { ResolveImagePreparation(net, exported.spec, {}, "bgr"); });
  EXPECT_EQ(code, ErrorCode::kConfig) << message;
}

}  // namespace
}  // namespace trainer
