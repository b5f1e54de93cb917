// A deploy net like SSD: heads on two feature maps, their boxes and the detections.

#include <gtest/gtest.h>

#include "net/memory_modes.h"
#include "support/golden.h"
#include "support/layer_runner.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

class SsdNetTest : public testing::TestWithParam<BufferReuse> {};
INSTANTIATE_TEST_SUITE_P(In, SsdNetTest, AllMemoryModes(), NameOfMode);

std::vector<float> HashValues(uint32_t stream, int64_t count, double bound) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(HashWeight(stream, static_cast<uint32_t>(i), bound));
  }
  return values;
}

TEST_P(SsdNetTest, FindsWhatTheGoldenNetFinds) {
  const GoldenCase golden = ReadGolden("nets/ssd_net.txt").at(0);
  const NetSpec spec = NetFromText(golden.Text("net"));
  const std::unique_ptr<Device> device = MakeTestDevice(2);
  ParamStore params(*device);
  NetOptions options;
  options.state = StateOf(caffe::TEST);
  options.memory = GetParam();
  options.training = false;
  options.log = false;
  Net net(spec, options, *device, params);
  uint32_t stream = 200;
  for (const Param* param : net.params()) {
    const double bound = golden.Number(Join("bound_", stream - 200));
    params.Import(*param, HashValues(stream++, param->count(), bound), param->weight);
  }
  const Tensor data = net.Value("data");
  const std::vector<float> pixels = HashValues(199, data.Count(), golden.Number("bound_data"));
  net.WriteNchw(pixels, data);
  const GoldenTensor& wanted = golden.Tensor("y");
  for (int pass = 0; pass < 2; ++pass) {
    net.Forward();
    ASSERT_EQ(net.outputs().size(), 1u);
    const Tensor& found = net.outputs()[0].value;
    ASSERT_EQ(found.shape, Shape(wanted.dims));
    std::vector<float> rows(static_cast<size_t>(found.Count()));
    net.ReadNchw(found, rows);
    ExpectNear(rows, wanted.values, 1e-4f);
  }
}

}  // namespace
}  // namespace trainer
