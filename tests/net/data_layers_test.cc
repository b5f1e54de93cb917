#include "trainer/net/data_layers.h"

#include <gtest/gtest.h>

#include "support/net_text.h"
#include "support/test_device.h"

namespace trainer {
namespace {

bool Shares(const std::string& text, caffe::Phase phase = caffe::TEST) {
  const std::unique_ptr<Device> device = MakeTestDevice();
  const NetSpec spec = NetFromText(text);
  ParamStore params(*device);
  Net net(spec, QuietOptions(phase), *device, params);
  return ShardTestBatches(net, {0, 2, 3});
}

constexpr char kTwoInputs[] = R"(
layer { name: "in" type: "DummyData" top: "x" top: "pick"
        dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 }
                           data_filler { type: "gaussian" } data_filler { value: 1 } } }
)";

TEST(ShardTestBatchesTest, NeedsANetThatComputesEachBatchIndependently) {
  EXPECT_TRUE(Shares(kTwoInputs));
  EXPECT_TRUE(Shares(std::string(kTwoInputs) +
                     "layer { name: 'bn' type: 'BatchNorm' bottom: 'x' top: 'bn' }"));
  EXPECT_FALSE(Shares(kTwoInputs, caffe::TRAIN)) << "layers learn from batches";
  EXPECT_FALSE(Shares(std::string(kTwoInputs) +
                      "layer { name: 'f' type: 'Filter' bottom: 'x' bottom: 'pick' top: 'f' }"));
  EXPECT_FALSE(Shares(std::string(kTwoInputs) + R"(
layer { name: "out" type: "HDF5Output" bottom: "x" bottom: "pick"
        hdf5_output_param { file_name: "none.h5" } })"));
  EXPECT_FALSE(Shares(R"(
layer { name: "in" type: "DummyData" top: "x" top: "cont"
        dummy_data_param { shape { dim: 2 dim: 3 dim: 4 } shape { dim: 2 dim: 3 } } }
layer { name: "rnn" type: "RNN" bottom: "x" bottom: "cont" top: "y"
        recurrent_param { num_output: 2 weight_filler { type: "xavier" } } })"));
}

}  // namespace
}  // namespace trainer
