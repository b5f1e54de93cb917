// Tests updates from gradients of a scaled loss.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "param_updater.h"
#include "support/error_of.h"
#include "support/test_device.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kLossScaleCount = 5000;

// Holds a parameter and its updater.
class Updating {
 public:
  Updating(const std::string& fields, std::optional<LossScaleOptions> scale)
      : weights_(*device_, Start()), gradients_(*device_, kLossScaleCount) {
    spec_.file = "solver.prototxt";
    spec_.text = ParseTextString(spec_.file, "base_lr: 1 " + fields, &spec_.proto);
    param_.shape = Shape{static_cast<int64_t>(kLossScaleCount)};
    param_.weight = weights_.data();
    param_.grad = gradients_.data();
    update_.emplace(spec_, MakeUpdateRule(spec_), *device_, std::vector<Param*>{&param_},
                    gradients_.span(), 1, scale);
  }

  std::string Step(int iter, bool bad = false) { return Step(iter, iter, bad); }
  // Runs iteration `iter` with the gradients of batch `batch`, multiplied by the current loss
  // scale. If `bad`, one element is not finite. Returns the note.
  std::string Step(int iter, int batch, bool bad) {
    const float factor = Scale();
    std::vector<float> values(kLossScaleCount);
    for (size_t i = 0; i < kLossScaleCount; ++i) {
      values[i] = factor * std::cos(static_cast<float>(i * (static_cast<size_t>(batch) + 1)));
    }
    if (bad) values[kLossScaleCount - 2] = iter % 2 == 0 ? kInfinity : std::nanf("");
    gradients_.Write(values);
    return update_->Apply({iter, 0.1f, 0.9f, 0.01f});
  }

  float Scale() { return decision() == nullptr ? 1 : decision()->State().factor; }
  LossScaler* decision() { return update_->decision(); }
  std::vector<float> Weights() const { return weights_.Read(); }
  std::vector<float> Gradients() const { return gradients_.Read(); }

 private:
  static std::vector<float> Start() {
    std::vector<float> start(kLossScaleCount);
    for (size_t i = 0; i < kLossScaleCount; ++i) start[i] = std::sin(static_cast<float>(i));
    return start;
  }

  std::unique_ptr<Device> device_ = MakeTestDevice();
  SolverSpec spec_;
  OnDevice<float> weights_, gradients_;
  Param param_;
  std::optional<ParamUpdater> update_;
};

const char* const kLossScaleRules[] = {"type: 'SGD' ",
                                       "type: 'Nesterov' ",
                                       "type: 'AdaGrad' delta: 1e-8 ",
                                       "type: 'RMSProp' rms_decay: 0.9 ",
                                       "type: 'AdaDelta' delta: 1e-6 ",
                                       "type: 'Adam' ",
                                       "type: 'AdamW' ",
                                       "type: 'SAG' ",
                                       "type: 'LARS' trust_coefficient: 0.1 ",
                                       "type: 'SGD' larc: true larc_eta: 0.1 "};

TEST(LossScaleTest, APowerOfTwoChangesNoBitOfAnyRule) {
  for (const std::string rule : kLossScaleRules) {
    for (const std::string clip : {"", "clip_gradients: 20 ", "clip_value: 0.5 "}) {
      Updating plain(rule + clip, std::nullopt), scaled(rule + clip, LossScaleOptions{4096, true});
      for (int iter = 0; iter < 4; ++iter) {
        const std::string note = plain.Step(iter);
        EXPECT_EQ(scaled.Step(iter), note) << rule << clip;
        EXPECT_EQ(note.empty(), clip.find("clip_gradients") == clip.npos) << note;
      }
      EXPECT_TRUE(scaled.Weights() == plain.Weights()) << rule << clip;
    }
  }
}

// The weights, the states and Adam's update count all stay as if the step had not happened.
TEST(LossScaleTest, AStepWithAGradientThatIsNotFiniteMovesNothing) {
  for (const std::string rule : kLossScaleRules) {
    Updating plain(rule, std::nullopt), scaled(rule, LossScaleOptions{1024});
    int done = 0, iter = 0;
    for (const bool bad : {true, false, true, true, false, false}) {
      EXPECT_EQ(scaled.Step(iter++, done, bad).empty(), !bad);
      EXPECT_TRUE(scaled.Gradients() == std::vector<float>(kLossScaleCount))
          << "cleared all the same";
      if (!bad) plain.Step(done++);
      EXPECT_TRUE(scaled.Weights() == plain.Weights()) << rule << iter;
    }
  }
}

TEST(LossScaleTest, AdamCountsTheStepsThatItMade) {
  Updating scaled("type: 'Adam' ", LossScaleOptions{1024});
  for (int iter = 0; iter < 7; ++iter) scaled.Step(iter, iter < 5);
  EXPECT_EQ(scaled.decision()->State().skipped, 5u);
  Updating resumed("type: 'Adam' ", LossScaleOptions{1024});
  resumed.decision()->Restore({1024, 0, 5});
  for (int iter = 5; iter < 7; ++iter) resumed.Step(iter);
  EXPECT_TRUE(resumed.Weights() == scaled.Weights());
}

TEST(LossScaleTest, TheFactorIsHalvedAtOnceAndDoubledAfterAWindow) {
  Updating update("", LossScaleOptions{1024, false, 3});
  std::vector<float> factors;
  for (int iter = 0; iter < 12; ++iter) {
    update.Step(iter, iter == 0 || iter == 3);
    factors.push_back(update.Scale());
  }
  EXPECT_THAT(factors,
              testing::ElementsAre(512, 512, 512, 256, 256, 256, 512, 512, 512, 1024, 1024, 1024));
  EXPECT_EQ(update.decision()->State().skipped, 2u);
  EXPECT_EQ(update.decision()->State().good, 2u);
}

TEST(LossScaleTest, AFixedFactorStays) {
  Updating update("", LossScaleOptions{1000, true, 2});
  for (int iter = 0; iter < 6; ++iter) update.Step(iter, iter % 3 == 0);
  EXPECT_EQ(update.Scale(), 1000);
  update.decision()->Restore({7, 1, 9});
  EXPECT_EQ(update.Scale(), 1000) << "of another run";
  EXPECT_EQ(update.decision()->State().skipped, 9u);
}

TEST(LossScaleTest, TheFactorKeepsWithinItsBounds) {
  Updating small("", LossScaleOptions{kMinLossScale}),
      large("", LossScaleOptions{kMaxLossScale, false, 1});
  small.Step(0, true);
  EXPECT_EQ(small.Scale(), kMinLossScale);
  large.Step(0);
  EXPECT_EQ(large.Scale(), kMaxLossScale);
}

TEST(LossScaleTest, SaysWhatWasSkipped) {
  Updating update("", LossScaleOptions{1024});
  EXPECT_EQ(update.Step(7, true),
            "Iteration 7: gradients are not finite (NaN or infinity), the update is skipped; loss "
            "scale 512, 1 updates skipped so far");
  EXPECT_EQ(update.Step(8), "");
}

TEST(LossScaleTest, ARunThatOnlySkipsEnds) {
  Updating update("", LossScaleOptions{65536});
  int iter = 0;
  const auto [code, message] = ErrorOf([&] {
    for (; iter < 100; ++iter) update.Step(iter, true);
  });
  EXPECT_EQ(code, ErrorCode::kDiverged);
  EXPECT_EQ(iter, 50);
  EXPECT_THAT(message, HasSubstr("iteration 50: the last 50 updates were skipped, because "
                                 "gradients were not finite (NaN or infinity) with loss scale "));
}

}  // namespace
}  // namespace trainer
