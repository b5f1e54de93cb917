#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "support/net_text.h"
#include "support/test_device.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(InputTest, HandValuesAreZerosUntilTheCallerSetsThem) {
  const NetSpec spec = NetFromText(R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 } } }
    layer { name: "relu" type: "ReLU" bottom: "x" top: "y" })");
  const auto device = MakeTestDevice(1);
  ParamStore params(*device);
  NetOptions options;
  options.log = false;
  Net net(spec, options, *device, params);
  std::vector<float> y(3);
  net.Forward();
  net.ReadNchw(net.Value("y"), y);
  EXPECT_THAT(y, Each(0));
  net.WriteNchw(std::vector<float>{1, -2, 3}, net.Value("x"));
  for (int pass = 0; pass < 2; ++pass) {
    net.Forward();
    net.ReadNchw(net.Value("y"), y);
    EXPECT_THAT(y, ElementsAre(1, 0, 3));
  }
}

TEST(InputTest, OneShapeServesAllTops) {
  LayerRunner input(R"(type: "Input" input_param { shape { dim: 2 dim: 3 } })", {}, {.outputs = 2});
  EXPECT_EQ(input.OutputShape(0), Shape({2, 3}));
  EXPECT_EQ(input.OutputShape(1), Shape({2, 3}));
}

TEST(InputTest, HandValuesOfAnImageAreZeros) {
  LayerRunner input(R"(type: "Input" input_param { shape { dim: 1 dim: 2 dim: 3 dim: 4 } })", {});
  input.Forward();
  EXPECT_THAT(input.Output(), Each(0));
}

TEST(InputTest, RefusesMissingAndBadShapes) {
  EXPECT_THAT(RefusalOf(R"(type: "Input")", {}),
              HasSubstr("layer 'it' (Input): input_param has no shape; give one, or one per top"));
  EXPECT_THAT(RefusalOf(R"(type: "Input" input_param { shape { dim: 2 dim: -1 } })", {}),
              HasSubstr("net.prototxt:3:29: layer 'it' (Input): dim is -1; it must be at least 1"));
}

}  // namespace
}  // namespace trainer
