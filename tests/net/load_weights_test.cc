// The weights of a file that a training net loads, and the messages about the others.

#include "trainer/net/load_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/log_collector.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// A net of inner products ip1 (`hidden` outputs) and ip2 (`classes`), on rows of `width` numbers.
struct TwoProducts {
  TwoProducts(int width, int hidden, int classes)
      : spec(NetFromText(Join("layer { name: 'x' type: 'DummyData' top: 'x' dummy_data_param "
                              "{ shape { dim: 2 dim: ",
                              width, " } } }", Product("ip1", "x", hidden),
                              Product("ip2", "ip1", classes)))) {
    static uint64_t seed = 0;
    NetOptions options = QuietOptions(caffe::TRAIN);
    options.seed = ++seed;  // each net starts with other weights
    net = std::make_unique<Net>(spec, options, *device, params);
  }
  static std::string Product(const std::string& name, const std::string& bottom, int outputs) {
    return Join("layer { name: '", name, "' type: 'InnerProduct' bottom: '", bottom, "' top: '",
                name, "' inner_product_param { num_output: ", outputs,
                " weight_filler { type: 'gaussian' } } }");
  }
  std::vector<float> Numbers(size_t param) const {
    return WeightOf(*device, *net->params()[param]);
  }

  NetSpec spec;
  std::unique_ptr<Device> device = MakeTestDevice(1);
  ParamStore params{*device};
  std::unique_ptr<Net> net;
};

// Returns the lines that loading logs.
std::vector<std::string> Load(const TwoProducts& from, const TwoProducts& to,
                              const std::vector<std::string>& reset = {}) {
  const LogCollector log;
  Net* const nets[] = {to.net.get()};
  WeightLoader loading(nets);
  loading.ForTraining(reset);
  loading.Copy(WeightsOf(*from.net), "w.caffemodel");
  loading.Finish();
  return log.lines;
}

TEST(LoadWeightsTest, ALastLayerOfAnotherSizeStartsAnewAndSaysSo) {
  const TwoProducts from(3, 4, 1000);
  const TwoProducts to(3, 4, 10);
  const std::vector<float> fresh = to.Numbers(2);
  EXPECT_THAT(
      Load(from, to),
      ElementsAre("Loaded 1 layer from w.caffemodel",
                  "transferred 2 of 4 blobs; ip2: 1000 -> 10 (initialised by the fillers)"));
  EXPECT_EQ(to.Numbers(0), from.Numbers(0));
  EXPECT_EQ(to.Numbers(2), fresh);
}

TEST(LoadWeightsTest, ALastLayerOfTheSameSizeIsLoadedUnlessReset) {
  const TwoProducts from(3, 4, 10);
  const TwoProducts to(3, 4, 10);
  const std::vector<float> fresh = to.Numbers(2);
  EXPECT_THAT(Load(from, to, {"ip2"}),
              Contains("transferred 2 of 4 blobs; ip2: reset (initialised by the fillers)"));
  EXPECT_EQ(to.Numbers(2), fresh);
  EXPECT_THAT(Load(from, to), ElementsAre("Loaded 2 layers from w.caffemodel"));
  EXPECT_EQ(to.Numbers(2), from.Numbers(2));
}

TEST(LoadWeightsTest, APatternResetsSeveralLayers) {
  const TwoProducts from(3, 4, 10);
  const TwoProducts to(5, 4, 10);
  EXPECT_THAT(Load(from, to, {"/ip[12]/"}),
              Contains("transferred 0 of 4 blobs; ip1: reset, ip2: reset (initialised by the "
                       "fillers)"));
}

TEST(LoadWeightsTest, AnotherLayerOfAnotherSizeIsRefusedWithAdvice) {
  const TwoProducts from(3, 4, 10);
  const TwoProducts to(5, 4, 10);
  const auto [code, text] = ErrorOf([&] { Load(from, to); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(text, HasSubstr("w.caffemodel: layer 'ip1', blob 0: its shape is 4 3 (12) in the "
                              "file and 4 5 (20) in the net ("));
  EXPECT_THAT(text, HasSubstr("net.prototxt:1:92). "));
  EXPECT_THAT(text, HasSubstr("Use the net of this file, or train the layer from scratch with "
                              "--reset=ip1"));
  // The last layer has other inputs, too.
  const TwoProducts wider(3, 6, 10);
  EXPECT_THAT(ErrorOf([&] { Load(from, wider); }).second, HasSubstr("--reset=ip1"));
  EXPECT_THAT(Load(from, wider, {"ip1"}),
              Contains("transferred 0 of 4 blobs; ip1: reset, ip2: 10 4 (40) -> 10 6 (60) "
                       "(initialised by the fillers)"));
}

TEST(LoadWeightsTest, ALayerToResetMustExist) {
  const TwoProducts net(3, 4, 10);
  const auto [code, text] = ErrorOf([&] { Load(net, net, {"ip3"}); });
  EXPECT_EQ(code, ErrorCode::kUsage);
  EXPECT_EQ(text,
            "--reset=ip3: there is no layer 'ip3'. Did you mean 'ip1'? The layers with weights are "
            "ip1, ip2");
}

TEST(LoadWeightsTest, ALaterFileMayHaveTheLastLayer) {
  const TwoProducts first(3, 4, 1000);
  const TwoProducts second(3, 4, 10);
  const TwoProducts to(3, 4, 10);
  const LogCollector log;
  Net* const nets[] = {to.net.get()};
  WeightLoader loading(nets);
  loading.ForTraining({});
  loading.Copy(WeightsOf(*first.net), "1.caffemodel");
  loading.Copy(WeightsOf(*second.net), "2.caffemodel");
  loading.Finish();
  EXPECT_THAT(log.lines,
              ElementsAre("Loaded 1 layer from 1.caffemodel", "Loaded 2 layers from 2.caffemodel"));
  EXPECT_EQ(to.Numbers(2), second.Numbers(2));
}

// Two of the files have ip1, and none has ip2 in the size of the net.
TEST(LoadWeightsTest, TheCountCoversAllFilesAndEachBlobOnce) {
  const TwoProducts from(3, 4, 1000);
  const TwoProducts to(3, 4, 10);
  const auto file_with = [&](const std::string& name) {
    caffe::NetParameter file = WeightsOf(*from.net);
    for (int i = file.layer_size(); i-- > 0;) {
      if (file.layer(i).name() != name) file.mutable_layer()->DeleteSubrange(i, 1);
    }
    return file;
  };
  const LogCollector log;
  Net* const nets[] = {to.net.get()};
  WeightLoader loading(nets);
  loading.ForTraining({});
  loading.Copy(file_with("ip2"), "1.caffemodel");
  loading.Copy(file_with("ip1"), "2.caffemodel");
  loading.Copy(WeightsOf(*from.net), "3.caffemodel");
  loading.Finish();
  EXPECT_THAT(
      log.lines,
      ElementsAre("Loaded 0 layers from 1.caffemodel", "Loaded 1 layer from 2.caffemodel",
                  "Loaded 1 layer from 3.caffemodel",
                  "transferred 2 of 4 blobs; ip2: 1000 -> 10 (initialised by the fillers)"));
}

}  // namespace
}  // namespace trainer
