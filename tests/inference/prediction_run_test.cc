#include "trainer/inference/predict/prediction_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "inference/digits_net.h"
#include "support/error_of.h"
#include "trainer/storage/array_file.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::Truly;

class PredictionRunTest : public testing::Test {
 protected:
  DigitsNet digits_;
  NetSpec spec_ = digits_.LoadDeploy();
  InferenceNet net_{spec_, *digits_.device, {.state = StateOf(caffe::TEST)}};
};

TEST_F(PredictionRunTest, ArraysHaveTheScoresOfEachImageAndNanForABadOne) {
  net_.LoadWeights(std::vector<std::string>{digits_.weights()});
  Classifier classifier(net_.net(), "", {.scale = 0.00390625f});
  std::vector<std::string> images = digits_.WriteImages(2);
  images.insert(images.begin() + 1, digits_.folder().Write("bad.jpg", "no image"));
  std::vector<std::vector<float>> expected;
  ImagePaths once(images, "");
  classifier.Run(once, 1, [&](const ImageScores& image) { expected.push_back(image.scores); });

  ImagePaths paths(images, "");
  const std::string out = digits_.folder() / "p.npz";
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunPredictions(classifier, paths, {.out = out}), 65);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("bad.jpg"));
  const std::unique_ptr<ArrayFile> file = OpenArrayFile(out);
  const std::unique_ptr<StoredArray> scores = file->Array("scores");
  ASSERT_THAT(scores->dims(), ElementsAre(3, 10));
  std::vector<float> row(10), codes(3);
  for (const int64_t i : {0, 2}) {
    scores->ReadRows(i, 1, row);
    EXPECT_EQ(row, expected[static_cast<size_t>(i)]);
  }
  scores->ReadRows(1, 1, row);
  EXPECT_THAT(row, Each(Truly([](float value) { return std::isnan(value); })));
  file->Array("exit_code")->ReadRows(0, 3, codes);
  EXPECT_THAT(codes, ElementsAre(0, 65, 0));
}

// A different bias at each place of the batch makes scores depend on the place, as rounding does.
TEST_F(PredictionRunTest, AResumedFileIsThatOfOneRun) {
  const NetSpec spec = LoadNet(digits_.folder().Write("places.prototxt", R"(name: "places"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 3 dim: 1 dim: 28 dim: 28 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "place" type: "Bias" bottom: "ip" top: "scores"
  bias_param { axis: 0 num_axes: 1 filler { type: "gaussian" } } }
)"));
  InferenceNet net(spec, *digits_.device, {.state = StateOf(caffe::TEST), .seed = 7});
  Classifier classifier(net.net(), "", {.scale = 0.00390625f});
  std::vector<std::string> images = digits_.WriteImages(7);
  images.insert(images.begin() + 2, digits_.folder().Write("bad.jpg", "no image"));
  const std::string out = digits_.folder() / "p.csv";
  const auto run = [&] {
    ImagePaths paths(images, "");
    EXPECT_EQ(RunPredictions(classifier, paths, {.out = out, .continues = true}), 65);
    return ReadText(out);
  };
  const std::string whole = run();
  EXPECT_EQ(std::ranges::count(whole, '\n'), 9);
  for (size_t end = whole.find('\n'); end != std::string::npos; end = whole.find('\n', end + 1)) {
    digits_.folder().Write("p.csv", whole.substr(0, end + 1));
    EXPECT_EQ(run(), whole) << "after " << end + 1 << " bytes";
  }
}

TEST_F(PredictionRunTest, AFileOfOtherWeightsIsNotContinued) {
  net_.LoadWeights(std::vector<std::string>{digits_.weights()});
  Classifier classifier(net_.net(), "", {.scale = 0.00390625f});
  const std::vector<std::string> images = digits_.WriteImages(3);
  const std::string out = digits_.folder() / "p.jsonl";
  const auto run = [&] {
    ImagePaths paths(images, "");
    return RunPredictions(classifier, paths, {.out = out, .continues = true});
  };
  EXPECT_EQ(run(), 0);
  const std::string whole = ReadText(out);
  digits_.folder().Write("p.jsonl", whole.substr(0, whole.find('\n') + 1));
  InferenceNet other(spec_, *digits_.device, {.state = StateOf(caffe::TEST), .seed = 8});
  Classifier untrained(other.net(), "", {.scale = 0.00390625f});
  ImagePaths paths(images, "");
  EXPECT_THAT(ErrorOf([&] { RunPredictions(untrained, paths, {.out = out, .continues = true}); }),
              Pair(ErrorCode::kUsage, HasSubstr("p.jsonl: its answer for '" + images[0] +
                                                "' is not that of this net")));
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(ReadText(out), whole) << "the refused run has changed nothing";
}

TEST(PredictionRunOptionsTest, RefusesWhatContradictsItself) {
  const auto refused = [](const PredictionRunOptions& options, const std::string& part) {
    EXPECT_THAT(ErrorOf([&] { CheckPredictionOptions(options); }),
                Pair(ErrorCode::kUsage, HasSubstr(part)));
  };
  refused({.continues = true}, "--resume continues a file; name it with --out=FILE");
  refused({.out = "p.csv", .json = true}, "--json prints the answers and --out writes");
  refused({.out = "p.txt"}, "--out=p.txt: the name must end in .csv");
  refused({.out = "p.npz", .continues = true}, "--resume cannot continue an .npz file");
}

}  // namespace
}  // namespace trainer
