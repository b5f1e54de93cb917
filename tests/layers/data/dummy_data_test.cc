#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Each;
using testing::HasSubstr;

std::string Dummy(const std::string& fields) {
  return "type: \"DummyData\"\ndummy_data_param { " + fields + " }";
}

TEST(DummyDataTest, HandValuesOfConstantsStay) {
  LayerRunner data(Dummy("shape { dim: 2 dim: 3 } shape { dim: 4 } data_filler { value: 5 }"), {},
                   {.outputs = 2});
  for (uint32_t pass = 0; pass < 3; ++pass) {
    data.Forward(pass);
    EXPECT_THAT(data.Output(0), Each(5));
    EXPECT_THAT(data.Output(1), Each(5));
  }
  EXPECT_EQ(data.OutputShape(0), Shape({2, 3}));
  EXPECT_EQ(data.OutputShape(1), Shape({4}));
}

TEST(DummyDataTest, HandValuesWithoutAFillerAreZeros) {
  LayerRunner data(Dummy("num: 1 channels: 2 height: 3 width: 4"), {});
  data.Forward();
  EXPECT_THAT(data.Output(), Each(0));
  EXPECT_EQ(data.OutputShape(), Shape({1, 2, 3, 4}));
}

TEST(DummyDataTest, RandomFillersDrawNewNumbersAtEveryPass) {
  LayerRunner data(Dummy("shape { dim: 50 } data_filler { type: 'gaussian' }"), {}, {.outputs = 2});
  data.Forward(0);
  const std::vector<float> first = data.Output(0);
  EXPECT_NE(data.Output(1), first) << "each top has its own numbers";
  data.Forward(1);
  EXPECT_NE(data.Output(0), first);
  data.Forward(0);
  EXPECT_EQ(data.Output(0), first);
}

TEST(DummyDataTest, RefusesBadShapes) {
  EXPECT_THAT(RefusalOf(Dummy(""), {}),
              HasSubstr("dummy_data_param has no shape; give one, or one per top"));
  EXPECT_THAT(RefusalOf(Dummy("shape { dim: 2 } shape { dim: 2 }"), {}, {.outputs = 3}),
              HasSubstr("net.prototxt:4:20: layer 'it' (DummyData): shape is given 2 times for 3 "
                        "tops; give one, or one per top"));
  EXPECT_THAT(RefusalOf(Dummy("shape { dim: 0 }"), {}),
              HasSubstr("dim is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Dummy("shape { dim: 1000000000 dim: 1000000000 }"), {}),
              HasSubstr("is larger than any memory"));
  EXPECT_THAT(RefusalOf(Dummy("num: 1 channels: 2 height: 3"), {}),
              HasSubstr("width is not given; write num, channels, height and width, or shape"));
  EXPECT_THAT(RefusalOf(Dummy("num: 1 channels: 0 height: 3 width: 1"), {}),
              HasSubstr("channels is 0; it must be at least 1"));
  EXPECT_THAT(RefusalOf(Dummy("num: 1 shape { dim: 2 }"), {}),
              HasSubstr("shape and num are both given; keep shape"));
}

TEST(DummyDataTest, RefusesBadFillers) {
  EXPECT_THAT(RefusalOf(Dummy("shape { dim: 2 } data_filler { type: 'gausian' }"), {}),
              HasSubstr("filler: unknown type 'gausian'. Did you mean 'gaussian'?"));
  EXPECT_THAT(RefusalOf(Dummy("shape { dim: 2 } data_filler {} data_filler {}"), {}),
              HasSubstr("data_filler is given 2 times for 1 top; give one, or one per top"));
}

}  // namespace
}  // namespace trainer
