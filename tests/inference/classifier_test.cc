#include "trainer/inference/predict/classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "inference/digits_net.h"
#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr float kScale = 0.00390625f;

class ClassifierTest : public testing::Test {
 protected:
  ClassifierTest() { net_.LoadWeights(std::vector<std::string>{digits_.weights()}); }

  std::vector<ImageScores> Classify(const std::vector<std::string>& paths,
                                    const PreprocessOptions& options = {.scale = kScale}) {
    Classifier classifier(net_.net(), "", options);
    std::vector<ImageScores> images;
    ImagePaths source(paths, "");
    classifier.Run(source, threads_, [&](const ImageScores& image) { images.push_back(image); });
    return images;
  }

  DigitsNet digits_;
  NetSpec spec_ = digits_.LoadDeploy();
  int threads_ = 2;
  InferenceNet net_{spec_, *digits_.device, {.state = StateOf(caffe::TEST)}};
};

TEST_F(ClassifierTest, GivesTheNetsScoresInOrder) {
  const std::vector<std::string> paths = digits_.WriteImages(5);  // in batches of 3
  const std::vector<ImageScores> images = Classify(paths);
  ASSERT_EQ(images.size(), 5u);
  const NetSpec spec = digits_.Load();
  InferenceNet test(spec, *digits_.device,
                    {.state = StateOf(caffe::TEST), .memory = BufferReuse::kSeparate});
  test.LoadWeights(std::vector<std::string>{digits_.weights()});
  test.net().Forward();
  std::vector<float> expected(16 * 10);
  test.net().ReadNchw(test.net().Value("ip"), expected);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(images[i].path, paths[i]);
    double total = 0;
    for (size_t c = 0; c < 10; ++c) total += std::exp(expected[i * 10 + c]);
    for (size_t c = 0; c < 10; ++c) {
      EXPECT_NEAR(images[i].scores[c], std::exp(expected[i * 10 + c]) / total, 1e-5);
    }
  }
}

TEST_F(ClassifierTest, OversamplingTakesTheMeanOfTenCrops) {
  const std::vector<std::string> paths = digits_.WriteImages(2);
  const auto scores = [&](int size) {
    PreprocessOptions options;
    options.scale = kScale;
    options.oversample = true;
    options.height = options.width = size;
    return Classify(paths, options)[1].scores;
  };
  const std::vector<float> crops = scores(32);
  EXPECT_NEAR(std::accumulate(crops.begin(), crops.end(), 0.0), 1, 1e-5);
  EXPECT_NE(scores(28)[0], crops[0]) << "the image and its mirror image alone";
}

TEST_F(ClassifierTest, AnImageThatCannotBeReadDoesNotStopTheOthers) {
  const std::vector<std::string> good = digits_.WriteImages(2);
  const std::string bad = digits_.folder().Write("bad.jpg", "no image");
  const std::vector<ImageScores> images = Classify({good[0], bad, "none.png", good[1]});
  ASSERT_EQ(images.size(), 4u);
  EXPECT_EQ(images[0].scores.size(), 10u);
  EXPECT_EQ(images[0].exit_code, 0);
  EXPECT_EQ(images[1].exit_code, 65);
  EXPECT_THAT(images[1].error, HasSubstr("bad.jpg: the file is not an image"));
  EXPECT_EQ(images[2].exit_code, 66);
  EXPECT_THAT(images[2].error, HasSubstr("none.png"));
  EXPECT_EQ(images[3].scores.size(), 10u);
  EXPECT_THAT(ToJson(images[1], 5, {}).ToString(), HasSubstr("\"exit_code\": 65"));
}

TEST_F(ClassifierTest, TheOrderAndTheScoresDoNotDependOnTheThreads) {
  std::vector<std::string> paths = digits_.WriteImages(7);
  paths.insert(paths.begin() + 3, "none.png");
  std::vector<ImageScores> expected = Classify(paths);
  for (const int threads : {1, 5}) {
    threads_ = threads;
    const std::vector<ImageScores> images = Classify(paths);
    ASSERT_EQ(images.size(), 8u);
    for (size_t i = 0; i < images.size(); ++i) {
      EXPECT_EQ(images[i].path, paths[i]);
      EXPECT_EQ(images[i].scores, expected[i].scores);
    }
  }
}

// The first image waits for a full batch; the bad ones after it must not wait without a limit.
TEST_F(ClassifierTest, ManyBadImagesDoNotWaitForAFullBatch) {
  const std::vector<std::string> good = digits_.WriteImages(2);
  std::vector<std::string> paths(3000, "none.png");
  paths.front() = good[0];
  paths.back() = good[1];
  const uint32_t before = net_.net().passes();
  EXPECT_EQ(Classify(paths).size(), 3000u);
  EXPECT_EQ(net_.net().passes() - before, 2u);
}

// An error of the net is not the error of the image that filled the batch.
TEST_F(ClassifierTest, AnErrorOfTheNetEndsTheRun) {
  const NodeHook fails = [](const Net&, NodeId, Direction, const std::function<void()>&) {
    throw Error(ErrorCode::kResource, "no memory");
  };
  net_.net().AddHook(&fails);
  const std::vector<std::string> paths = digits_.WriteImages(4);
  EXPECT_THAT(ErrorOf([&] { Classify(paths); }),
              testing::Pair(ErrorCode::kResource, HasSubstr("no memory")));
  net_.net().RemoveHook(&fails);
  EXPECT_EQ(Classify(paths).size(), 4u);
}

TEST_F(ClassifierTest, PrintsAsCaffesExampleDoes) {
  const ImageScores image = {"a.png", "", 0, {0.25f, NAN, 0.5f, 0.25f}};
  EXPECT_THAT(TopClasses(image.scores, 9), ElementsAre(2, 0, 3, 1));
  EXPECT_EQ(ToText(image, 2, {"nil", "unit", "pair", "three"}),
            "---------- Prediction for a.png ----------\n0.5000 - \"pair\"\n0.2500 - \"nil\"\n");
  EXPECT_THAT(ToText(image, 1, {}), HasSubstr("0.5000 - \"class 2\"\n"));
  EXPECT_THAT(ToJson(image, 1, {"nil", "unit", "pair", "three"}).ToLine(),
              HasSubstr(R"("answers": [{"class": 2, "name": "pair", "score": 0.5}])"));
}

TEST_F(ClassifierTest, RefusesAnOutputWithoutScoresOfImages) {
  const auto refused = [](InferenceNet& net, const std::string& output, ErrorCode code,
                          const std::string& part) {
    const auto [thrown, message] = ErrorOf([&] { Classifier(net.net(), output, {}); });
    EXPECT_EQ(thrown, code);
    EXPECT_THAT(message, HasSubstr(part));
  };
  refused(net_, "prop", ErrorCode::kUsage, "the net has no output 'prop'. Did you mean 'prob'?");
  const NetSpec spec = digits_.Load();
  InferenceNet test(spec, *digits_.device, {.state = StateOf(caffe::TEST)});
  refused(test, "", ErrorCode::kConfig, "has 0 inputs");
  const NetSpec sum = NetFromText(R"(
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 3 dim: 1 dim: 28 dim: 28 } } }
layer { name: "sum" type: "Reduction" bottom: "data" top: "sum" })");
  InferenceNet scalar(sum, *digits_.device, {.state = StateOf(caffe::TEST)});
  refused(scalar, "", ErrorCode::kConfig, "output 'sum' has the shape");
}

}  // namespace
}  // namespace trainer
