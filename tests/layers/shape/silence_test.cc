#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"
#include "support/net_text.h"
#include "support/test_device.h"

namespace trainer {
namespace {

TEST(SilenceTest, HandValuesKeepInputsOutOfTheNetsOutputs) {
  const NetSpec spec = NetFromText(R"(
    layer { name: "in" type: "Input" top: "a" top: "b" top: "c"
            input_param { shape { dim: 2 } } }
    layer { name: "quiet" type: "Silence" bottom: "a" bottom: "c" })");
  const auto device = MakeTestDevice(1);
  ParamStore params(*device);
  NetOptions options;
  options.log = false;
  Net net(spec, options, *device, params);
  EXPECT_EQ(net.Forward(), 0);
  ASSERT_EQ(net.outputs().size(), 1u);
  EXPECT_EQ(net.outputs()[0].name, "b");
}

TEST(SilenceTest, HandValuesOfImagesAreReadAndLeft) {
  LayerRunner layer(R"(type: "Silence")", {{1, 2, 1, 2}}, {.outputs = 0});
  layer.SetInput(0, {1, 2, 3, 4});
  layer.Forward();
  layer.Backward({});
  EXPECT_THAT(layer.InputGradient(), testing::Each(0));
}

TEST(SilenceTest, RefusesATop) {
  EXPECT_THAT(RefusalOf(R"(type: "Silence")", {{2}}),
              testing::HasSubstr("layer 'it' (Silence): it needs no tops, but 1 is"));
}

}  // namespace
}  // namespace trainer
