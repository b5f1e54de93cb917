#include "trainer/inference/generative/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generative/feedback_sampler.h"
#include "inference/small_net.h"
#include "inference/small_rbm.h"
#include "support/error_of.h"
#include "support/temp_folder.h"
#include "trainer/hdf5/reader.h"
#include "trainer/image/image.h"
#include "trainer/inference/generative/parzen_likelihood.h"
#include "trainer/inference/generative/sample_sheet.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kDoubling[] =
    "layer { name: 'in' type: 'Input' top: 'x' top: 'bias' input_param { shape { dim: 2 dim: 4 } "
    "shape { dim: 3 } } } "
    "layer { name: 'twice' type: 'Power' bottom: 'x' top: 'y' power_param { scale: 2 shift: 1 } }";

TEST(SamplerTest, RbmChainsStartWhereTheyAreTold) {
  SmallRbm small(4, 3);
  small.net.WriteNchw(std::vector<float>(16, 1), small.net.Value("x"));
  SamplingOptions options;
  options.count = 10;
  options.steps = 5;
  for (const char* start : {"random", "zeros", "data"}) {
    options.start = start;
    const auto sampler = MakeSampler(small.net, options);
    const SampleSet samples = DrawSamples(*sampler, options);
    EXPECT_THAT(samples.dims, ElementsAre(10, 4)) << start;
    EXPECT_EQ(samples.values.size(), 40u);
    for (const float mean : samples.values) EXPECT_TRUE(mean >= 0 && mean <= 1) << mean;
  }
  options.start = "data";
  EXPECT_THAT(MakeSampler(small.net, options)->dims(), ElementsAre(4, 4)) << "a chain per record";
}

TEST(SamplerTest, OutputsBecomeInputs) {
  const SmallNet net(kDoubling);
  SamplingOptions options;
  options.blob = "y";
  options.feed = {"y:x"};
  options.start = "zeros";
  options.steps = 3;  // values 1, 3, 7
  options.every = 2;  // value 31
  options.count = 3;
  const auto sampler = MakeSampler(*net.net, options);
  const SampleSet samples = DrawSamples(*sampler, options);
  EXPECT_THAT(samples.dims, ElementsAre(3, 4));
  const std::span<const float> values(samples.values);
  EXPECT_THAT(values.first(8), Each(7));
  EXPECT_THAT(values.subspan(8), Each(31)) << "the first sample of the next batch";
}

TEST(SamplerTest, RefusesEdgesThatDoNotFit) {
  const SmallNet net(kDoubling);
  const auto refused = [&](const std::string& blob, const std::string& feed,
                           const std::string& start, const std::string& part) {
    SamplingOptions options;
    options.blob = blob;
    options.feed = {feed};
    options.start = start;
    const auto [code, message] = ErrorOf([&] { MakeSampler(*net.net, options); });
    EXPECT_EQ(code, ErrorCode::kUsage);
    EXPECT_THAT(message, HasSubstr(part));
  };
  refused("", "y:x", "zeros", "the net has no RBM layer; name the blob with the samples");
  refused("z", "y:x", "zeros", "--blob: the net has no blob 'z'");
  refused("y", "y", "zeros", "--feed: 'y' is not of the form OUTPUT:INPUT");
  refused("y", "z:x", "zeros", "--feed: the net has no blob 'z'");
  refused("y", "x:y", "zeros", "--feed: 'y' is not a top of an Input layer");
  refused("y", "y:bias", "zeros", "--feed: 'y' has 8 numbers, but 'bias' has 3");
  refused("y", "y:x", "data", "--start=data needs a net with RBM layers");
}

TEST(SampleSheetTest, DrawsFlatSamplesAsSquares) {
  EXPECT_THAT(SampleImageDims({5, 784}, ""), ElementsAre(5, 1, 28, 28));
  EXPECT_THAT(SampleImageDims({5, 3, 8, 9}, ""), ElementsAre(5, 3, 8, 9));
  EXPECT_THAT(SampleImageDims({5, 6}, "1,2,3"), ElementsAre(5, 1, 2, 3));
  EXPECT_THAT(ErrorOf([] {
                SampleImageDims({5, 784}, "1,2,3");
              }).second,
              HasSubstr("--shape=1,2,3 does not fit a sample: C*H*W must be 784"));
  EXPECT_THAT(ErrorOf([] {
                SampleImageDims({5, 6}, "");
              }).second,
              HasSubstr("a sample has 6 numbers, which is not a square image"));
}

TEST(SampleSheetTest, WritesAnImageAndSamplesWhoseLikelihoodCanBeMeasured) {
  const TempFolder folder;
  const SampleSet samples = {{2, 4}, {0, 0, 0, 0, 1, 1, 1, 1}};
  WriteSampleSheet(folder / "sheet.png", samples, "");
  Image sheet;
  DecodeImage(ReadText(folder / "sheet.png"), ColorMode::kAsStored, {}, "sheet", &sheet);
  EXPECT_EQ(sheet.channels, 1);
  EXPECT_GE(sheet.width, 4);
  WriteSamples(folder / "samples.h5", samples, false);
  EXPECT_EQ(ErrorOf([&] { WriteSamples(folder / "samples.h5", samples, false); }).first,
            ErrorCode::kCannotCreate);
  WriteSamples(folder / "samples.h5", samples, true);
  EXPECT_THAT(Hdf5Reader(folder / "samples.h5").Array("samples").dims(), ElementsAre(2, 4));

  const SmallNet net(kDoubling);
  ParzenLikelihoodOptions options;
  options.samples = folder / "samples.h5";
  options.blob = "x";
  options.iterations = 4;
  options.validation = 2;
  const ParzenLikelihood zeros = MeasureParzenLikelihood(*net.net, options);
  EXPECT_EQ(zeros.records, 4);
  EXPECT_NEAR(zeros.sigma, 0.05, 1e-9) << "the data are a sample, so the narrowest is the best";
  EXPECT_THAT(ToText(zeros), HasSubstr("the mean of 4 records"));
  EXPECT_THAT(ToJson(zeros).ToLine(), HasSubstr("\"records\": 4"));
  const auto refused = [&](ParzenLikelihoodOptions wrong, ErrorCode code, const std::string& part) {
    const auto [thrown, message] = ErrorOf([&] { MeasureParzenLikelihood(*net.net, wrong); });
    EXPECT_EQ(thrown, code);
    EXPECT_THAT(message, HasSubstr(part));
  };
  refused({.samples = options.samples, .blob = "", .sigma = ""}, ErrorCode::kUsage,
          "--blob is missing");
  refused({.samples = options.samples, .blob = "bias", .sigma = ""}, ErrorCode::kData,
          "its samples have 4 numbers each, but the records of --blob have 1");
  refused({.samples = options.samples, .blob = "x", .sigma = "wide"}, ErrorCode::kUsage,
          "--sigma='wide' is not a number above 0");
  refused({.samples = options.samples, .blob = "x", .sigma = "", .iterations = 10},
          ErrorCode::kUsage, "--iterations must be larger than --validation");
}

}  // namespace
}  // namespace trainer
