// Tests BatchNorm with a learned factor and offset, and the files of Caffe and NVIDIA Caffe that it
// reads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/layer_runner.h"
#include "support/net_text.h"
#include "support/test_device.h"
#include "trainer/config/blob.h"
#include "trainer/net/weights.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string BatchNormForm(const std::string& fields = "") {
  return "type: \"BatchNorm\"\nbatch_norm_param { scale_bias: true " + fields + " }";
}

TEST(BatchNormFormsTest, HandValues) {
  LayerRunner layer(BatchNormForm(), {{2, 2}});
  ASSERT_EQ(layer.NumParams(), 5);
  EXPECT_THAT(layer.GetParam(3), ElementsAre(1, 1));
  EXPECT_THAT(layer.GetParam(4), ElementsAre(0, 0));
  layer.SetParam(3, {2, 3});
  layer.SetParam(4, {10, 20});
  ExpectNear(layer.Forward({-100, 7, 100, 7}), {8, 20, 12, 20}, 1e-6f);
}

TEST(BatchNormFormsTest, AFillerAloneAsksForTheForm) {
  for (const char* field : {"scale_filler { value: 3 }", "bias_filler { value: 3 }"}) {
    LayerRunner layer(std::string("type: \"BatchNorm\" batch_norm_param { ") + field + " }",
                      {{2, 1}});
    ASSERT_EQ(layer.NumParams(), 5);
    EXPECT_EQ(layer.GetParam(3)[0] + layer.GetParam(4)[0], field[0] == 's' ? 3 : 4);
  }
}

TEST(BatchNormFormsTest, StoresAveragesOfWeightOne) {
  LayerRunner layer(BatchNormForm("moving_average_fraction: 0.75"), {{2, 1, 1, 2}});
  layer.Forward({1, 2, 3, 6});  // mean 3, variance 3.5, unbiased variance 14 / 3
  ExpectNear(layer.GetParam(0), {3}, 1e-6f);
  ExpectNear(layer.GetParam(1), {14.0f / 3}, 1e-6f);
  EXPECT_THAT(layer.GetParam(2), ElementsAre(1));
  layer.Forward({5, 5, 5, 5});
  ExpectNear(layer.GetParam(0), {3.5}, 1e-6f);
  ExpectNear(layer.GetParam(1), {3.5}, 1e-6f);
  EXPECT_THAT(layer.GetParam(2), ElementsAre(1));
}

TEST(BatchNormFormsTest, HandValuesOfTesting) {
  LayerRunner layer(BatchNormForm("eps: 0"), {{1, 2}}, {.phase = caffe::TEST, .training = false});
  layer.SetParam(0, {1, 2});
  layer.SetParam(1, {4, 16});
  layer.SetParam(2, {1});
  layer.SetParam(3, {2, 4});
  layer.SetParam(4, {0, 100});
  ExpectNear(layer.Forward({3, 10}), {2, 108}, 1e-5f);
}

TEST(BatchNormFormsTest, EpsIsAtLeastThatOfNvidia) {
  LayerRunner layer(BatchNormForm("eps: 0"), {{2, 1}});
  ExpectNear(layer.Forward({7, 7}), {0, 0}, 0);
}

TEST(BatchNormFormsTest, GradientMatchesDifferences) {
  for (const char* fields : {"eps: 0.1", "eps: 0.1 use_global_stats: true"}) {
    for (const Shape& shape : {Shape{2, 3, 2, 3}, Shape{6, 3}}) {
      SCOPED_TRACE(fields + shape.ToString());
      LayerRunner layer(BatchNormForm(fields), {shape});
      layer.SetInput(0, LayerRunner::SomeValues(shape.Count(), 1));
      layer.SetParam(1, {1, 2, 3});
      layer.SetParam(2, {1});
      layer.SetParam(3, {0.5, -1, 2});
      layer.ExpectGradient();
    }
  }
}

TEST(BatchNormFormsTest, InPlaceEqualsNotInPlace) {
  ExpectInPlaceEqual(BatchNormForm(), {{2, 3, 4, 5}});
}

TEST(BatchNormFormsTest, OnlyTheStatisticsAreFixed) {
  LayerRunner layer(BatchNormForm() +
                        " param { lr_mult: 0 } param { lr_mult: 0 } param { lr_mult: 0 } "
                        "param { lr_mult: 3 }",
                    {{2, 3}});
  const std::vector<float> rates = {0, 0, 0, 3, 1};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(layer.ParamAt(i).lr_mult, rates[static_cast<size_t>(i)]);
  LayerRunner asked(BatchNormForm() + " param { lr_mult: 1 }", {{2, 3}});
  EXPECT_EQ(asked.ParamAt(0).lr_mult, 0);
}

// Writes files for a net of one BatchNorm with 2 channels.
class BatchNormFilesTest : public testing::Test {
 protected:
  std::vector<std::vector<float>> Load(const std::vector<std::vector<float>>& blobs,
                                       const std::string& fields = "scale_bias: true") {
    caffe::NetParameter file;
    caffe::LayerParameter& layer = *file.add_layer();
    layer.set_name("bn");
    for (const std::vector<float>& values : blobs) {
      const int64_t dims[] = {static_cast<int64_t>(values.size())};
      WriteBlob(dims, values, layer.add_blobs());
    }
    const NetSpec spec = NetFromText(R"(
      layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 2 } } }
      layer { name: "bn" type: "BatchNorm" bottom: "x" top: "y"
              batch_norm_param { )" + fields +
                                     " } }");
    const auto device = MakeTestDevice(1);
    ParamStore params(*device);
    NetOptions options;
    options.log = false;
    Net net(spec, options, *device, params);
    CopyWeights(file, "f.caffemodel", net);
    std::vector<std::vector<float>> loaded;
    const caffe::NetParameter held = WeightsOf(net);
    for (const caffe::BlobProto& blob : held.layer(1).blobs()) {
      loaded.emplace_back(blob.data().begin(), blob.data().end());
    }
    return loaded;
  }

  const std::vector<std::vector<float>> want_ = {{1, 2}, {3, 4}, {1}, {5, 6}, {7, 8}};
};

TEST_F(BatchNormFilesTest, FiveBlobsAreTakenAsTheyAre) {
  EXPECT_EQ(Load({{1, 2}, {3, 4}, {1}, {5, 6}, {7, 8}}), want_);
}

TEST_F(BatchNormFilesTest, TheOldOrderIsSeenByTheSingleNumberAtItsEnd) {
  EXPECT_EQ(Load({{5, 6}, {7, 8}, {1, 2}, {3, 4}, {1}}), want_);
  EXPECT_EQ(Load({{5, 6}, {7, 8}, {2, 4}, {6, 8}, {2}}), want_);
}

TEST_F(BatchNormFilesTest, SumsBecomeAverages) {
  EXPECT_EQ(Load({{2, 4}, {6, 8}, {2}, {5, 6}, {7, 8}}), want_);
}

TEST_F(BatchNormFilesTest, ThreeBlobsHadTheFactorOneAndTheOffsetZero) {
  const std::vector<std::vector<float>> want = {{1, 2}, {3, 4}, {1}, {1, 1}, {0, 0}};
  EXPECT_EQ(Load({{2, 4}, {6, 8}, {2}}), want);
  EXPECT_EQ(Load({{1, 2}, {3, 4}, {1}}), want);
}

TEST_F(BatchNormFilesTest, NothingStoredStaysNothing) {
  EXPECT_EQ(Load({{0, 0}, {0, 0}, {0}})[2], std::vector<float>{0});
}

TEST_F(BatchNormFilesTest, RefusesALearnedFactorForALayerWithout) {
  const auto [code, text] = ErrorOf([&] { Load(want_, ""); });
  EXPECT_EQ(code, ErrorCode::kData);
  EXPECT_THAT(text, HasSubstr("f.caffemodel: layer 'bn' has 5 blobs in the file (statistics and a "
                              "learned scale and bias), but this BatchNorm ("));
  EXPECT_THAT(text, HasSubstr("net.prototxt:3:7) has no scale and bias; write scale_bias: true in "
                              "its batch_norm_param and remove the Scale layer after it, if there "
                              "is one"));
}

TEST_F(BatchNormFilesTest, RefusesOtherCountsAndShapes) {
  EXPECT_THAT(ErrorOf([&] {
                Load({{1, 2}});
              }).second,
              HasSubstr("layer 'bn' has 1 blob in the file and 5 in the net"));
  EXPECT_THAT(ErrorOf([&] {
                Load({{1, 2, 3}, {1, 2, 3}, {1}});
              }).second,
              HasSubstr("layer 'bn', blob 0: its shape is 3 (3) in the file and"));
  EXPECT_THAT(ErrorOf([&] {
                Load({{1, 2}, {1, 2}, {1, 2}});
              }).second,
              HasSubstr("layer 'bn', blob 2: its shape is 2 (2) in the file and"));
}

}  // namespace
}  // namespace trainer
