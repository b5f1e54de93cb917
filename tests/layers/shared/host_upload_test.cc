// Tests that values computed on the host are sent to an asynchronous device without a wait.

#include "shared/host_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/late_device.h"
#include "support/net_text.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;

// A net of layers without inputs.
class MadeUpload {
 public:
  MadeUpload(const std::string& text, const Device& device)
      : spec_(NetFromText(text)), params_(device) {
    net = std::make_unique<Net>(spec_, QuietOptions(caffe::TRAIN), device, params_);
  }
  std::vector<float> Read(const std::string& blob) const {
    const Tensor value = net->Value(blob);
    std::vector<float> host(static_cast<size_t>(value.Count()));
    net->ReadNchw(value, host);
    return host;
  }

 private:
  NetSpec spec_;
  ParamStore params_;

 public:
  std::unique_ptr<Net> net;
};

TEST(UploadTest, TheHostsMemoryIsFreeForTheNextNumbersAndComputationsSeeTheirs) {
  const LateDevice device;
  const OnDevice<float> to(device, size_t{4});
  HostUpload upload;
  upload.Prepare(device, 4 * sizeof(float));
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    const std::span<std::byte> host = upload.Host();
    ASSERT_EQ(host.size(), 4 * sizeof(float));
    std::fill_n(reinterpret_cast<float*>(host.data()), 4, value);
    upload.Send(to.data() + 2, 2 * sizeof(float), 2 * sizeof(float));
    const float before = value - 1;
    EXPECT_THAT(to.Read(), ElementsAre(before, before, value, value));
    upload.Send(to.data(), 0, 2 * sizeof(float));
    EXPECT_THAT(to.Read(), Each(value));
  }
}

TEST(UploadTest, AConstantGoesUpOnce) {
  const LateDevice device;
  const MadeUpload made(
      "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { dim: 3 "
      "dim: "
      "2 dim: 2 dim: 2 } shape { dim: 4 } data_filler { value: 5 } data_filler { value: 6 } } }",
      device);
  device.NewStep();
  made.net->Forward();
  EXPECT_EQ(device.queued_bytes, (24 + 4) * sizeof(float));
  for (int pass = 0; pass < 3; ++pass) {
    device.NewStep();
    made.net->Forward();
    EXPECT_EQ(device.queued_bytes, 0u);
    EXPECT_EQ(device.direct_copies, 0);
  }
  EXPECT_THAT(made.Read("x"), Each(5));
  EXPECT_THAT(made.Read("y"), Each(6));
}

TEST(UploadTest, RandomNumbersAreThoseOfTheHostAndNobodyWaitsForThem) {
  const char* const text =
      "layer { name: 'd' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { dim: 3 "
      "dim: "
      "2 dim: 2 dim: 2 } shape { dim: 4 } data_filler { type: 'gaussian' } data_filler { type: "
      "'uniform' } } }";
  const auto cpu = MakeTestDevice();
  const LateDevice device;
  const MadeUpload near(text, *cpu), late(text, device);
  for (int pass = 0; pass < 4; ++pass) {
    near.net->Forward();
    device.NewStep();
    late.net->Run({.mode = Pass::Mode::kForward});
    EXPECT_EQ(device.waits, 0);
    EXPECT_EQ(device.direct_copies, 0);
    late.net->TakeLoss();
    EXPECT_EQ(late.Read("x"), near.Read("x"));
    EXPECT_EQ(late.Read("y"), near.Read("y"));
  }
}

TEST(UploadTest, AFilterWaitsForItsSelectorAlone) {
  const LateDevice device;
  const MadeUpload made(
      "layer { name: 'd' type: 'Input' top: 'x' top: 's' input_param { shape { dim: 4 dim: 2 } "
      "shape { dim: 4 } } } layer { name: 'f' type: 'Filter' bottom: 'x' bottom: 's' top: 'y' }",
      device);
  EXPECT_FALSE(made.net->RunsAhead()) << "the host must know how many items there are";
  for (const std::vector<float>& selector :
       std::vector<std::vector<float>>{{0, 1, 0, 1}, {1, 1, 1, 0}}) {
    made.net->WriteNchw(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, made.net->Value("x"));
    made.net->WriteNchw(selector, made.net->Value("s"));
    device.NewStep();
    made.net->Run({.mode = Pass::Mode::kForward});
    EXPECT_EQ(device.waits, 1);
    EXPECT_EQ(device.direct_copies, 0);
    made.net->TakeLoss();
    if (selector[0] == 0) {
      EXPECT_THAT(made.Read("y"), ElementsAre(3, 4, 7, 8));
    } else {
      EXPECT_THAT(made.Read("y"), ElementsAre(1, 2, 3, 4, 5, 6));
    }
  }
}

}  // namespace
}  // namespace trainer
