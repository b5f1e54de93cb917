#include "trainer/layers/filler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

LayerSpec SomeLayer() {
  caffe::LayerParameter proto;
  proto.set_name("ip");
  proto.set_type("InnerProduct");
  return LayerSpec(proto, {"net.prototxt", 5, 1});
}

caffe::FillerParameter Filler(const std::string& text) {
  caffe::FillerParameter filler;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &filler));
  return filler;
}

std::vector<float> Filled(const std::string& text, const Shape& shape, uint32_t stream = 1,
                          uint32_t pass = 0) {
  std::vector<float> values(static_cast<size_t>(shape.Count()));
  Fill(Filler(text), shape, {9, stream}, pass, SomeLayer(), values);
  return values;
}

struct Moments {
  double mean = 0, std = 0;
};
Moments MomentsOf(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) sum += v;
  const double n = static_cast<double>(values.size()), mean = sum / n;
  for (const float v : values) squares += (v - mean) * (v - mean);
  return {mean, std::sqrt(squares / n)};
}

TEST(FillerTest, HandValuesOfConstant) {
  EXPECT_THAT(Filled("value: 3", {2, 2}), Each(3));
  EXPECT_THAT(Filled("", {2, 2}), Each(0));
}

TEST(FillerTest, UniformKeepsItsBoundsAndMean) {
  const std::vector<float> values = Filled("type: 'uniform' min: -3 max: 1", {40001});
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -3);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 1);
  EXPECT_NEAR(MomentsOf(values).mean, -1, 0.03);
  EXPECT_NEAR(MomentsOf(values).std, 4 / std::sqrt(12.0), 0.02);
}

TEST(FillerTest, GaussianHasItsMomentsAndTails) {
  const std::vector<float> values = Filled("type: 'gaussian' mean: 2 std: 3", {40001});
  EXPECT_NEAR(MomentsOf(values).mean, 2, 0.06);
  EXPECT_NEAR(MomentsOf(values).std, 3, 0.05);
  const auto beyond = [](float v) { return std::fabs(v - 2) > 6; };
  EXPECT_NEAR(static_cast<double>(std::count_if(values.begin(), values.end(), beyond)),
              0.0455 * 40001, 150);
}

TEST(FillerTest, GaussianValuesAreNotCorrelatedInPairs) {
  const std::vector<float> values = Filled("type: 'gaussian'", {40000});
  double sum = 0;
  for (size_t i = 0; i < values.size(); i += 2) sum += values[i] * values[i + 1];
  EXPECT_NEAR(sum / 20000, 0, 0.03);
}

TEST(FillerTest, SparseKeepsThatManyPerOutput) {
  const std::vector<float> values = Filled("type: 'gaussian' sparse: 15", {100, 400});
  const auto zeros = std::count(values.begin(), values.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(zeros), 0.85 * 40000, 300);
}

TEST(FillerTest, PositiveUnitballRowsAddUpToOne) {
  const std::vector<float> values = Filled("type: 'positive_unitball'", {3, 4, 5});
  for (size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_GE(values[row * 20 + i], 0);
      sum += values[row * 20 + i];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(FillerTest, XavierScalesWithTheFan) {
  const std::pair<const char*, double> cases[] = {
      {"type: 'xavier'", 50 * 9},
      {"type: 'xavier' variance_norm: FAN_OUT", 40 * 9},
      {"type: 'xavier' variance_norm: AVERAGE", 45 * 9}};
  for (const auto& [text, fan] : cases) {
    const std::vector<float> values = Filled(text, {40, 50, 3, 3});
    EXPECT_LE(*std::max_element(values.begin(), values.end()), std::sqrt(3 / fan));
    EXPECT_NEAR(MomentsOf(values).std, 1 / std::sqrt(fan), 0.02 / std::sqrt(fan));
  }
}

TEST(FillerTest, MsraScalesWithTheFan) {
  const std::vector<float> values = Filled("type: 'msra'", {40, 50, 3, 3});
  EXPECT_NEAR(MomentsOf(values).std, std::sqrt(2.0 / 450), 0.001);
  EXPECT_NEAR(MomentsOf(values).mean, 0, 0.002);
}

TEST(FillerTest, HandValuesOfBilinear) {
  EXPECT_THAT(Filled("type: 'bilinear'", {1, 1, 4, 4}),
              ElementsAre(0.0625, 0.1875, 0.1875, 0.0625, 0.1875, 0.5625, 0.5625, 0.1875, 0.1875,
                          0.5625, 0.5625, 0.1875, 0.0625, 0.1875, 0.1875, 0.0625));
  EXPECT_THAT(Filled("type: 'bilinear'", {1, 1, 3, 3}),
              ElementsAre(0.25, 0.5, 0.25, 0.5, 1, 0.5, 0.25, 0.5, 0.25));
}

TEST(FillerTest, NumbersDependOnStreamAndPassOnly) {
  const std::string text = "type: 'gaussian'";
  EXPECT_EQ(Filled(text, {100}), Filled(text, {100}));
  EXPECT_NE(Filled(text, {100}), Filled(text, {100}, 2));
  EXPECT_NE(Filled(text, {100}), Filled(text, {100}, 1, 1));
}

std::string RefusalFiller(const std::string& text, const Shape& shape = {2, 2}) {
  try {
    Filled(text, shape);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "";
}

TEST(FillerTest, RefusesBadFillers) {
  EXPECT_THAT(
      RefusalFiller("type: 'xaver'"),
      HasSubstr("net.prototxt:5:1: layer 'ip' (InnerProduct): filler: unknown type 'xaver'. "
                "Did you mean 'xavier'? Known types: constant, uniform, gaussian, "
                "positive_unitball, xavier, msra, bilinear"));
  EXPECT_THAT(RefusalFiller("type: 'gaussian' std: -1"),
              HasSubstr("std is -1; it must be 0 or more"));
  EXPECT_THAT(
      RefusalFiller("type: 'gaussian' sparse: -3"),
      HasSubstr("sparse is -3; it is the number of non-zero output weights per input, so it "
                "must not be negative"));
  EXPECT_THAT(RefusalFiller("type: 'msra' sparse: 3"),
              HasSubstr("sparse works with type \"gaussian\", not with \"msra\"; remove it"));
  EXPECT_THAT(RefusalFiller("type: 'uniform' min: 2 max: 1"), HasSubstr("min 2 is above max 1"));
  EXPECT_THAT(RefusalFiller("value: inf"), HasSubstr("inf is not a finite number"));
  EXPECT_THAT(RefusalFiller("type: 'bilinear'", {1, 1, 3, 4}),
              HasSubstr("bilinear needs a 4-D blob with square kernels, but this blob is 1 1 3 4 "
                        "(12); use kernel_size, or another filler"));
}

}  // namespace
}  // namespace trainer
