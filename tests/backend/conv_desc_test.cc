#include <gmock/gmock.h>

#include "backend/conv_images.h"
#include "backend/plan_testing.h"
#include "trainer/backend/device/device.h"
#include "trainer/backend/primitives/conv.h"
#include "trainer/base/error/error.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ConvDescTest, RoundsTheOutputDown) {
  const ConvDesc desc = ImageConv(2, 3, 11, 12, 5, 3, 2, 1, 1, 2);
  EXPECT_EQ(desc.Out(), (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(desc.OutShape(), (Shape{2, 5, 5, 5}));
  EXPECT_EQ(desc.WeightShape(), (Shape{5, 3, 3, 3}));
  EXPECT_EQ(desc.Macs(), 2 * 5 * 25 * 27);
}

TEST(ConvDescTest, RefusesAKernelThatDoesNotFit) {
  const Device* const device = &MetaDevice();
  EXPECT_THAT([&] { device->NewConv(ImageConv(1, 1, 3, 3, 1, 5)); },
              ThrowsMessage<Error>(HasSubstr("a kernel of 5 with dilation 1 does not fit into a "
                                             "height of 3 padded by 0")));
}

TEST(ConvDescTest, RefusesGroupsThatDoNotDivide) {
  const Device* const device = &MetaDevice();
  EXPECT_THAT([&] { device->NewConv(ImageConv(1, 4, 3, 3, 6, 1, 1, 0, 3)); },
              ThrowsMessage<Error>(HasSubstr("3 groups do not divide 4 input channels")));
}

TEST(ConvDescTest, RefusesLengthsBelowTheirLeast) {
  const Device* const device = &MetaDevice();
  ConvDesc desc = ImageConv(1, 1, 3, 3, 1, 2);
  desc.stride[1] = 0;
  EXPECT_THAT([&] { device->NewConv(desc); },
              ThrowsMessage<Error>(HasSubstr("the stride along the width is 0; it must be at least "
                                             "1")));
  desc = ImageConv(0, 1, 3, 3, 1, 2);
  EXPECT_THAT([&] { device->NewConv(desc); }, ThrowsMessage<Error>(HasSubstr("the batch is 0")));
  desc = ImageConv(1, 1, 3, 3, 1, 2);
  desc.pad[0] = -1;
  EXPECT_THAT([&] { device->NewConv(desc); },
              ThrowsMessage<Error>(HasSubstr("the pad along the height is -1")));
}

TEST(ConvDescTest, RefusesOtherNumbersOfAxes) {
  const Device* const device = &MetaDevice();
  ConvDesc desc = ImageConv(1, 1, 3, 3, 1, 2);
  desc.pad = {0};
  EXPECT_THAT([&] { device->NewConv(desc); },
              ThrowsMessage<Error>(HasSubstr("have 2, 2, 2, 1 and 2 spatial axes")));
  desc.kernel = {};
  EXPECT_THAT([&] { device->NewConv(desc); },
              ThrowsMessage<Error>(HasSubstr("over no spatial axis; at least 1 is needed")));
}

TEST(ConvPlanRefusalTest, NamesATensorOfAnotherShape) {
  const Device* const device = &MetaDevice();
  const ConvDesc desc = ImageConv(2, 16, 8, 8, 16, 3);
  const auto plan = device->NewConv(desc);
  const Values x = Values::Of({2, 16, 8, 9}, {}), weight = Values::Of(desc.WeightShape(), {});
  const Values y = Values::Of(desc.OutShape(), {}), bias = Values::Of({16}, {});
  GuardedBytes scratch(plan->ScratchBytes());
  EXPECT_THAT([&] { plan->Forward(x, weight.f32(), bias.f32(), y, scratch.span()); },
              ThrowsMessage<Error>(HasSubstr("convolution (input) planned for 2 16 8 8 (2048) f32 "
                                             "got 2 16 8 9 (2304) f32")));
}

TEST(ConvPlanRefusalTest, SaysWhenScratchIsTooSmall) {
  const Device* const device = &MetaDevice();
  const ConvDesc desc = ImageConv(2, 16, 8, 8, 16, 3);
  const auto plan = device->NewConv(desc);
  const Values x = Values::Of(desc.InShape(), {}), dy = Values::Of(desc.OutShape(), {});
  const Values dweight = Values::Of(desc.WeightShape(), {});
  EXPECT_THAT([&] { plan->BackwardWeight(x, dy, dweight.f32(), nullptr, {}); },
              ThrowsMessage<Error>(HasSubstr("bytes of scratch and got 0")));
}

}  // namespace
}  // namespace trainer
