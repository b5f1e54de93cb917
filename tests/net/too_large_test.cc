// A net that no machine could hold is refused with its size, before anything is allocated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/late_device.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/net/compile.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::HasSubstr;

// Returns how planning refuses a net of one blob x of this shape and these layers.
std::pair<ErrorCode, std::string> RefusalOf(const std::string& shape, const std::string& layers) {
  const NetSpec spec =
      NetFromText("layer { name: 'd' type: 'Input' top: 'x' input_param { shape { " + shape +
                  " } } }\n" + layers);
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params(*device);
  NetOptions options;
  options.state = StateOf(caffe::TEST);
  options.log = false;
  return ErrorOf([&] { Compile(spec, options, *device, params); });
}

std::string Refusal(const std::string& shape, const std::string& layers) {
  return RefusalOf(shape, layers).second;
}

// A smaller batch or another machine helps. No machine has more than 32 TiB: such sizes are a
// mistake in the net.
TEST(TooLargeTest, MemoryThatThisMachineLacksIsNoFaultOfTheNet) {
  TRAINER_CPU_ONLY("the memory of this machine is the limit");
  EXPECT_EQ(RefusalOf("dim: 4000000 dim: 1000 dim: 1000", "").first, ErrorCode::kResource);
  EXPECT_EQ(RefusalOf("dim: 1000000 dim: 10 dim: 1000 dim: 1000", "").first, ErrorCode::kConfig);
}

TEST(TooLargeTest, NamesTheFigureTheLargestValueAndItsLayer) {
  TRAINER_CPU_ONLY("the memory of this machine is the limit");
  const std::string message = Refusal("dim: 1000000 dim: 10 dim: 1000 dim: 1000", "");
  EXPECT_THAT(message,
              HasSubstr("net.prototxt:1:1: layer 'd' (Input): the net needs 38146973 MiB"));
  EXPECT_THAT(message, HasSubstr("the device (CPU, 1 thread,"));
  EXPECT_THAT(message, HasSubstr(": values 38146973 MiB (the largest: x 38146973 MiB); this layer "
                                 "needs the largest part, x (38146973 MiB): lower batch_size or "
                                 "make the layer's sizes smaller; of its 1000000 items about "));
}

TEST(TooLargeTest, AdviceIsOfTheCause) {
  TRAINER_CPU_ONLY("the memory of this machine is the limit");
  EXPECT_THAT(Refusal("dim: 1 dim: 10000000 dim: 1000 dim: 1000", ""),
              HasSubstr("make the layer's sizes smaller, because one item of the batch alone is "
                        "too"));
  const std::string weights =
      Refusal("dim: 1 dim: 1000000",
              "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'\n"
              "  inner_product_param { num_output: 1000000 } }");
  EXPECT_THAT(weights, HasSubstr("net.prototxt:2:1: layer 'ip' (InnerProduct): the net needs "));
  EXPECT_THAT(weights, HasSubstr("weights 3814702 MiB; this layer needs the largest part, "
                                 "parameter 0 of shape "));
  EXPECT_THAT(weights, HasSubstr("lower num_output or make the layer's input smaller; batch_size"));
}

// A separate device, most of whose memory other programs use.
class FullDevice final : public LateDevice {
 public:
  size_t AvailableBytes() const override { return size_t{7} << 20; }
  void* Allocate(size_t bytes) const override {
    ADD_FAILURE() << "refused before anything is allocated";
    return LateDevice::Allocate(bytes);
  }
};

TEST(TooLargeTest, NamesNeedRoomAndHoldersOfADevice) {
  const NetSpec spec = NetFromText(
      "layer { name: 'd' type: 'Input' top: 'x' input_param { shape { dim: 64 dim: 16384 } } }\n"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'\n"
      "  inner_product_param { num_output: 16 bias_term: false } }\n"
      "layer { name: 'l' type: 'EuclideanLoss' bottom: 'y' bottom: 'y' top: 'l' }");
  const FullDevice device;
  ParamStore params(device);
  NetOptions options;
  options.state = StateOf(caffe::TRAIN);
  options.training = true;
  options.states_per_weight = 2;
  options.log = false;
  const auto [code, message] = ErrorOf([&] { Net net(spec, options, device, params); });
  EXPECT_EQ(code, ErrorCode::kResource) << "it may be free the next time";
  EXPECT_THAT(message, HasSubstr("layer 'd' (Input): the net needs 9 MiB, but the device"));
  EXPECT_THAT(message, HasSubstr(" has 7 MiB: values 5 MiB (the largest: x 4 MiB, "));
  EXPECT_THAT(message,
              HasSubstr(", weights 1 MiB, their gradients 1 MiB, the update rule's state 2 MiB; "
                        "this layer needs the largest part, x (4 MiB): lower "));
  EXPECT_THAT(message, HasSubstr("of its 64 items about "));
}

// The layer, a shape or the backend may notice that nothing can hold the layer's sizes.
TEST(TooLargeTest, EveryErrorOfPlanningNamesTheLayerAndItsLine) {
  const char* const kLayers[] = {
      "type: 'Tile' tile_param { tiles: 2147483647 }",
      "type: 'Convolution' convolution_param { num_output: 1 kernel_size: 1 pad: 2147483647 }",
      "type: 'Convolution' convolution_param { num_output: 2147483647 kernel_size: 99 pad: 99 }",
      "type: 'Convolution' convolution_param { num_output: 4294967295 kernel_size: 1 }",
      "type: 'Deconvolution' convolution_param { num_output: 9 kernel_size: 9 stride: 2147483647 }",
      "type: 'Im2col' convolution_param { kernel_size: 1 pad: 2147483647 }",
      "type: 'Pooling' pooling_param { kernel_size: 2147483647 pad: 2147483646 }",
      "type: 'InnerProduct' inner_product_param { num_output: 4294967295 }",
      "type: 'Embed' embed_param { num_output: 2147483647 input_dim: 2147483647 }",
      "type: 'Reshape' reshape_param { shape { dim: 9223372036854775807 dim: 9 } }",
      "type: 'SPP' spp_param { pyramid_height: 31 }",
  };
  for (const char* layer : kLayers) {
    SCOPED_TRACE(layer);
    const std::string message =
        Refusal("dim: 64 dim: 4000 dim: 40 dim: 40",
                std::string("layer { name: 'big' bottom: 'x' top: 'y' ") + layer + " }");
    EXPECT_THAT(message,
                testing::ContainsRegex("net.prototxt:2:[0-9]+: layer 'big' \\([A-Za-z0-9]+\\): "));
  }
}

}  // namespace
}  // namespace trainer
