#include "trainer/inference/predict/prediction_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "inference/digits_net.h"
#include "support/error_of.h"
#include "trainer/inference/predict/image_input_flags.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class PredictionTargetTest : public testing::Test {
 protected:
  PredictionTargetTest() {
    std::filesystem::create_directory(run_);
    WriteText(run_ + "/solver.prototxt", "net_param { " + digits_.text +
                                             "} test_iter: 3 test_interval: 10 base_lr: 1 "
                                             "lr_policy: 'fixed' max_iter: 20");
    WriteText(run_ + "/metrics.jsonl", R"({"event": "start", "iter": 0}
{"event": "snapshot", "iter": 20, "model": ")" +
                                           digits_.weights() + "\"}\n");
  }
  std::pair<ErrorCode, std::string> Refusal(const PredictionTargetOptions& options) const {
    return ErrorOf([&] { ResolvePredictionTarget(options); });
  }
  static Shape InputOf(const PredictionTarget& target, const Device& device) {
    InferenceNet net(target.net, device, {.state = target.state});
    return ImageInput(net.net()).value.shape;
  }

  DigitsNet digits_;
  std::string run_ = digits_.folder() / "run";
};

TEST_F(PredictionTargetTest, ARunHasANetForPredictionsItsWeightsAndItsLabels) {
  const std::string labels = digits_.folder().Write("data/labels.txt", "0\n");
  const PredictionTarget target = ResolvePredictionTarget({.run = run_});
  EXPECT_THAT(target.weights, ElementsAre(digits_.weights()));
  EXPECT_EQ(target.class_names, labels);
  EXPECT_EQ(InputOf(target, *digits_.device), Shape({32, 1, 28, 28}));
  EXPECT_EQ(ResolvePreprocessOptions({}, target.net).scale, 0.00390625f);
  std::filesystem::remove(labels);
  EXPECT_EQ(ResolvePredictionTarget({.run = run_}).class_names, "");
}

TEST_F(PredictionTargetTest, AFolderOfClassesHasTheirNames) {
  for (const char* name : {"photos/cat", "photos/dog"}) {
    std::filesystem::create_directories(digits_.folder() / name);
  }
  digits_.folder().Write("photos/cat/0.pgm", "P5 28 28 255\n" + std::string(28 * 28, 'x'));
  std::string net = Edited(digits_.text, "\"Data\"", "\"ImageData\"");
  net = Edited(net, "data_param { source", "data_param { limit: 1 } image_data_param { source");
  net = Edited(net, "data/test_lmdb\" backend: LMDB", "photos\" is_color: false");
  WriteText(run_ + "/solver.prototxt",
            "net_param { " + net +
                "} test_iter: 3 test_interval: 10 base_lr: 1 lr_policy: 'fixed' max_iter: 20");
  EXPECT_EQ(ResolvePredictionTarget({.run = run_}).class_names, digits_.folder() / "photos");
}

TEST_F(PredictionTargetTest, ARunWithoutItsDataNeedsTheShape) {
  std::filesystem::remove_all(digits_.folder() / "data");
  EXPECT_THAT(Refusal({.run = run_}).second, HasSubstr("--shape="));
  EXPECT_EQ(InputOf(ResolvePredictionTarget({.run = run_, .batch = 2, .shape = Shape({1, 28, 28})}),
                    *digits_.device),
            Shape({2, 1, 28, 28}));
}

TEST_F(PredictionTargetTest, TheBatchReplacesTheFirstDimensionOfTheInput) {
  const std::string deploy = digits_.folder() / "deploy.prototxt";
  PredictionTargetOptions options = {.model = {.file = deploy}, .weights = {digits_.weights()}};
  EXPECT_EQ(InputOf(ResolvePredictionTarget(options), *digits_.device), Shape({3, 1, 28, 28}));
  options.batch = 7;
  EXPECT_EQ(InputOf(ResolvePredictionTarget(options), *digits_.device), Shape({7, 1, 28, 28}));
}

TEST_F(PredictionTargetTest, RefusesWhatIsMissingOrTooMuch) {
  EXPECT_THAT(Refusal({}), Pair(ErrorCode::kUsage,
                                "'trainer predict' needs --model=FILE, or --run=DIR for the "
                                "net and the best weights of a run"));
  EXPECT_THAT(Refusal({.model = {.file = "x"}}),
              Pair(ErrorCode::kUsage, HasSubstr("needs --weights=FILE, or --run=DIR")));
  EXPECT_THAT(Refusal({.model = {.file = "x"}, .run = run_}),
              Pair(ErrorCode::kUsage, HasSubstr("--run and --model cannot both be given")));
  EXPECT_THAT(Refusal({.model = {.file = "x"}, .weights = {"y"}, .shape = Shape({1})}),
              Pair(ErrorCode::kUsage, HasSubstr("--shape is for --run=DIR")));
  EXPECT_THAT(Refusal({.run = digits_.folder() / "none"}),
              Pair(ErrorCode::kNoInput, HasSubstr("none")));
}

}  // namespace
}  // namespace trainer
