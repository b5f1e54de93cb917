// State that layers keep from pass to pass is saved and restored.

#include "trainer/net/layer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

struct Recurrent {
  explicit Recurrent(int outputs = 3)
      : spec(NetFromText(Join(R"(
layer { name: "data" type: "DummyData" top: "x" top: "cont"
  dummy_data_param { shape { dim: 2 dim: 4 dim: 5 } shape { dim: 2 dim: 4 }
    data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "y"
  recurrent_param { num_output: )",
                              outputs, R"( weight_filler { type: "xavier" } } })"))) {
    NetOptions options;
    options.state = StateOf(caffe::TEST);
    options.log = false;
    net = std::make_unique<Net>(spec, options, *device, params);
  }
  std::vector<float> Pass() const {
    net->Forward();
    std::vector<float> y(24);
    net->ReadNchw(net->Value("y"), y);
    return y;
  }

  NetSpec spec;
  std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params{*device};
  std::unique_ptr<Net> net;
};

TEST(StatesTest, ARecurrentNetGoesOnFromASnapshotBitForBit) {
  const Recurrent whole, resumed;
  whole.Pass();
  whole.Pass();
  const auto states = SaveLayerStates(*whole.net);
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].layer, "lstm");
  EXPECT_THAT(Restore(*resumed.net, whole.net->passes(), states), testing::IsEmpty());
  const std::vector<float> third = whole.Pass();
  EXPECT_EQ(resumed.Pass(), third);
  const Recurrent forgetful;
  EXPECT_THAT(Restore(*forgetful.net, 2, {}), testing::ElementsAre("lstm"))
      << "the layers whose state is missing";
  EXPECT_NE(forgetful.Pass(), third);
}

TEST(StatesTest, AStateForAnotherNumberOfVirtualRanksIsRefused) {
  const Recurrent net;
  std::vector<LayerState> states = SaveLayerStates(*net.net);
  states[0].other_virtual_ranks.push_back(states[0].bytes);
  const auto [code, text] = ErrorOf([&] { Restore(*net.net, 1, states); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(text, testing::HasSubstr("the snapshot has the states of 2 virtual ranks for this "
                                       "layer, but this run has 1; use the number of ranks of"));
}

TEST(StatesTest, AStateOfAnotherSizeIsRefused) {
  const Recurrent small(2), large(3);
  const auto [code, text] = ErrorOf([&] { Restore(*large.net, 1, SaveLayerStates(*small.net)); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(text,
              testing::HasSubstr(
                  "layer 'lstm' (LSTM): the snapshot has 64 bytes for the state of this layer, but "
                  "the layer needs 96: batch_size or num_output has changed; use the net of the"));
}

}  // namespace
}  // namespace trainer
