// A net that no machine could hold is refused with the figure, before anything is allocated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/net_text.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::HasSubstr;

TEST(TooLargeTest, NamesTheFigureAndTheLargestValue) {
  for (const char* type : {"DummyData' dummy_data_param", "Input' input_param"}) {
    const NetSpec spec = NetFromText(std::string("layer { name: 'd' type: '") + type +
                                     " { shape { dim: 1000000 dim: 10 dim: 1000 dim: 1000 } } "
                                     "top: 'x' }");
    const std::unique_ptr<Device> device = MakeCpuDevice(1);
    ParamStore params(*device);
    NetOptions options;
    options.state = StateOf(caffe::TEST);
    options.log = false;
    const auto [code, message] = ErrorOf([&] { Net net(spec, options, *device, params); });
    EXPECT_EQ(code, ErrorCode::kConfig);
    EXPECT_THAT(message, HasSubstr(" MiB and this machine has "));
    EXPECT_THAT(message, HasSubstr("the largest is x (38146972 MiB)"));
  }
}

}  // namespace
}  // namespace trainer
