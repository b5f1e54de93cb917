#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::HasSubstr;

std::string Log(const std::string& fields) { return "type: \"Log\"\nlog_param { " + fields + " }"; }

TEST(LogTest, HandValues) {
  LayerRunner layer(Log("base: 2 scale: 3 shift: 1"), {{3}});
  ExpectNear(layer.Forward({0, 1, 5}), {0, 2, 4}, 1e-6f);
}

TEST(LogTest, GradientMatchesDifferences) {
  LayerRunner layer(Log("base: 10 scale: 0.5 shift: 2"), {{2, 3, 2, 2}});
  layer.SetInput(0, LayerRunner::SomeValues(24, 1));
  layer.ExpectGradient();
}

TEST(LogTest, GoldenValues) { ExpectGoldenFile("layers/activations/log.txt"); }

TEST(LogTest, InPlaceEqualsNotInPlace) { ExpectInPlaceEqual(Log("shift: 3"), {{2, 3, 4, 5}}); }

TEST(LogTest, RefusesBadBases) {
  EXPECT_THAT(
      RefusalOf(Log("base: 1"), {{2}}),
      HasSubstr("net.prototxt:4:13: layer 'it' (Log): base is 1; it must be above 0 and not "
                "1, or -1 for e"));
  EXPECT_THAT(RefusalOf(Log("base: -3"), {{2}}), HasSubstr("base is -3"));
}

TEST(LogTest, Bf16IsNearF32) {
  ExpectBf16Near(R"(type: "Log" log_param { shift: 2 })", {{2, 3, 5, 6}});
}

}  // namespace
}  // namespace trainer
