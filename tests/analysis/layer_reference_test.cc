// Tests the reference of layer types.

#include "trainer/analysis/summary/layer_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "summary/layer_examples.h"
#include "support/error_of.h"
#include "support/net_text.h"
#include "trainer/config/freeze.h"
#include "trainer/layers/layer.h"

namespace trainer {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

TEST(LayerReferenceTest, ListsEveryTypeWithASentence) {
  const std::string text = "\n" + LayerTypesText();
  for (const char* type :
       {"Convolution", "Data", "InnerProduct", "Pooling", "ReLU", "SoftmaxWithLoss"}) {
    EXPECT_THAT(text, ContainsRegex(std::string("\n") + type + "  +[A-Za-z]"));
  }
}

TEST(LayerReferenceTest, ExplainsATypeWithAnExample) {
  const std::string pooling = LayerReference("Pooling");
  EXPECT_THAT(pooling, StartsWith("Pooling\n\n"));
  EXPECT_THAT(pooling, HasSubstr("\nbottoms: 1\n"));
  EXPECT_THAT(pooling, ContainsRegex("\n +stride +uint32 +1 "));
  EXPECT_THAT(pooling, ContainsRegex(" enum +MAX +MAX [|] AVE [|] STOCHASTIC"));
  const std::string convolution = LayerReference("Convolution");
  EXPECT_THAT(convolution, HasSubstr("\nexample:\n  layer { name: \"conv1\""));
  EXPECT_THAT(convolution, HasSubstr("\nreads:   data (8, 3, 32, 32)\n"
                                     "writes:  conv1 (8, 16, 16, 16)\n"
                                     "stores:  (16, 3, 5, 5), (16)\n"));
}

TEST(LayerReferenceTest, ExplainsTheFieldsThatManyTypesHave) {
  EXPECT_THAT(LayerReference("LayerParameter"),
              ContainsRegex("\n +loss_weight +repeated float\n +[A-Z]"));
  EXPECT_THAT(LayerReference("NetParameter"),
              ContainsRegex("\n +force_backward +bool +false\n +[A-Z]"));
  EXPECT_THAT(LayerReference("transform_param"), StartsWith("TransformationParameter: "));
  EXPECT_THAT(LayerReference("FillerParameter"), HasSubstr("variance_norm"));
}

TEST(LayerReferenceTest, NamesTheNearestType) {
  const auto [code, message] = ErrorOf([] { LayerReference("Poling"); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_THAT(message, HasSubstr("Did you mean 'Pooling'?"));
}

// Compares HasWeights, which reads the type and fields, with the weights that the layers declare.
TEST(LayerReferenceTest, HasWeightsKnowsEveryType) {
  for (const auto& [type, doc] : LayerDocs()) {
    if (type.starts_with("Test")) continue;  // only tests register these types
    const LayerExample example = MakeExample(type);
    const NetSpec net = NetFromText(example.text);
    const auto has_weights = [&](const LayerSpec& layer) {
      return layer.type() == type && HasWeights(layer);
    };
    EXPECT_EQ(std::ranges::any_of(net.layers, has_weights), !example.weights.empty()) << type;
  }
}

}  // namespace
}  // namespace trainer
