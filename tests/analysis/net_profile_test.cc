// The times of a net's layers, and how they are printed.

#include "trainer/analysis/timing/net_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <vector>

#include "digits_run.h"
#include "support/log_collector.h"
#include "support/net_text.h"
#include "trainer/analysis/timing/profile_report.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/text/json_reader.h"

namespace trainer {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

bool Contains(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern));
}

// The first group of every match.
std::vector<double> NumbersIn(const std::string& text, const std::string& pattern) {
  std::vector<double> numbers;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    numbers.push_back(std::stod((*at)[1]));
  }
  return numbers;
}

NetProfile ProfileModelOf(const DigitsRun& run, caffe::Phase phase = caffe::TRAIN,
                          int iterations = 2) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  ProfileOptions options;
  options.iterations = iterations;
  options.peak = true;
  return ProfileModel(run.LoadNet(), StateOf(phase), *device, options);
}

NetProfile ProfileSolverOf(const DigitsRun& run, const std::vector<std::string>& changes = {}) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  ProfileOptions options;
  options.iterations = 2;
  options.peak = true;
  return ProfileSolver(run.Load(changes), *device, options);
}

TEST(NetProfileTest, PrintsLayersAndTotalsOfANet) {
  const std::string text = ToText(ProfileModelOf(DigitsRun()));
  EXPECT_THAT(text, StartsWith("layer "));
  for (const char* layer : {"digits +Data", "ip +InnerProduct", "loss +SoftmaxWithLoss"}) {
    EXPECT_TRUE(Contains(text, std::string("\n") + layer + R"(( +\d+\.\d{3}){4} +\d+\.\d\n)"))
        << text;
  }
  for (const char* row : {"forward", "backward", "forward and backward", "waiting for data"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + row + " "));
  }
  // GFLOP/s, GB/s and the percentage of the peak, each forward and backward.
  EXPECT_TRUE(Contains(text, R"(\nlayer +GFLOP/s +bwd +GB/s +bwd +peak +bwd\n)"
                             R"((digits .*\n)?ip( +\d+\.\d){4}( +(\d+\.\d%|cache|fewer)){2}\n)"))
      << text;
  EXPECT_TRUE(Contains(text, R"(\nonednn [^\n]*\n    ip\n)")) << text;
  EXPECT_FALSE(Contains(text, R"(\n[^\n]{81})")) << text;
  EXPECT_TRUE(Contains(text, R"(\nPeak of this machine: \d+\.\d GFLOP/s, \d+\.\d GB/s\.\n)"));
  EXPECT_THAT(text, Not(HasSubstr("\nupdate ")));
  EXPECT_THAT(text, HasSubstr("\nImplementations: 'onednn ...' is a kernel of oneDNN"));
}

// 16 images of 784 pixels, 10 outputs with a bias: numbers by hand.
TEST(NetProfileTest, GivesAllFiguresAsJson) {
  const std::string text = ToJson(ProfileSolverOf(DigitsRun())).ToString();
  EXPECT_THAT(text, StartsWith("{\n  \"net\": \"small\",\n  \"iterations\": 2,\n"));
  const auto json = ParseJsonObject(text);
  ASSERT_TRUE(json.has_value()) << text;
  const JsonObject& ip = JsonField(*json, "layers")->list_value().values(1).struct_value();
  EXPECT_EQ(JsonText(ip, "name"), "ip");
  EXPECT_EQ(JsonText(ip, "type"), "InnerProduct");
  const JsonObject& forward = JsonField(ip, "forward")->struct_value();
  EXPECT_EQ(JsonNumber(forward, "flops"), 250880);
  EXPECT_EQ(JsonNumber(forward, "bytes"), 82216);
  EXPECT_GT(JsonNumber(forward, "gflops_per_s"), 0);
  const JsonObject& peak = JsonField(*json, "peak")->struct_value();
  EXPECT_GT(JsonNumber(peak, "gflops_per_s"), 0);
  EXPECT_GT(JsonNumber(peak, "gbytes_per_s"), 0);
  const JsonObject& update = JsonField(*json, "update")->struct_value();
  EXPECT_EQ(JsonNumber(update, "bytes"), 188400);
  EXPECT_NE(JsonField(update, "median_ms"), nullptr);
}

TEST(NetProfileTest, NamesTheDeclinedImplementationsWhereAsked) {
  const NetProfile profile = ProfileModelOf(DigitsRun());
  EXPECT_THAT(ToText(profile, true), HasSubstr("\nImplementations that were not chosen, and why:\n"
                                               "ip\n"
                                               "  onednn sgemm: it adds no bias\n"));
  EXPECT_THAT(ToText(profile), Not(HasSubstr("it adds no bias")));
}

TEST(NetProfileTest, LogsWhatReadersOfCaffesLogSearchFor) {
  const LogCollector log;
  LogProfile(ProfileModelOf(DigitsRun()));
  std::string text;
  for (const std::string& line : log.lines) text += "] " + line + "\n";
  for (const char* line :
       {R"(\] Performing Forward\n)", R"(\] Initial loss: \S+\n)", R"(\] Performing Backward\n)",
        R"(\] \*\*\* Benchmark begins \*\*\*\n)", R"(\] Testing for 2 iterations\.\n)",
        R"(\] Iteration: 2 forward-backward time: \S+ ms\.\n)", R"(\] Average time per layer: \n)",
        R"(\]         ip\tforward: \S+ ms\.\n)", R"(\]         ip\tbackward: \S+ ms\.\n)",
        R"(\] Average Forward pass: \S+ ms\.\n)", R"(\] Average Backward pass: \S+ ms\.\n)",
        R"(\] Average Forward-Backward: \S+ ms\.\n)", R"(\] Total Time: \S+ ms\.\n)",
        R"(\] \*\*\* Benchmark ends \*\*\*\n)"}) {
    EXPECT_TRUE(Contains(text, line)) << line << " in\n" << text;
  }
}

TEST(NetProfileTest, MeasuresTheUpdateOfASolverAndSavesNothing) {
  const DigitsRun run;
  const std::string text = ToText(ProfileSolverOf(run, {"snapshot=1"}));
  EXPECT_THAT(text, HasSubstr("\nupdate "));
  EXPECT_THAT(text, HasSubstr("\ntraining iteration "));
  EXPECT_THAT(run.folder().Names(), ElementsAre("data", "net.prototxt", "solver.prototxt"));
}

TEST(NetProfileTest, TheUpdateIsAnIterationLessAllItsPasses) {
  EXPECT_EQ(ProfileSolverOf(DigitsRun(), {"iter_size=3"}).passes_per_step, 3);
  NetProfile profile;
  profile.passes_per_step = 3;
  profile.pass.Add(10);
  profile.step.Add(34);
  EXPECT_EQ(profile.UpdateMs(), 4);
}

TEST(NetProfileTest, TotalsAreTheSumsOfTheLayersAndNoPeakIsAboveAHundred) {
  const std::string text = ToText(ProfileModelOf(DigitsRun(), caffe::TRAIN, 3));
  const std::string layer = R"((?:^|\n)(?:digits|ip|loss) +\w+ +\S+ +(\d+\.\d+))";
  const std::vector<double> layers = NumbersIn(text, layer);
  ASSERT_THAT(layers, SizeIs(3)) << text;
  const std::vector<double> whole = NumbersIn(text, R"(\nforward +\S+ +(\d+\.\d+))");
  ASSERT_THAT(whole, SizeIs(1)) << text;
  EXPECT_NEAR(layers[0] + layers[1] + layers[2], whole[0], 0.0021);  // each is rounded
  EXPECT_THAT(NumbersIn(text, R"((\d+\.\d)%)"), Each(Le(100)));
}

// A ReLU that the convolution computes has no time of its own. Winograd's convolutions have no
// percentage of the peak, since they compute fewer products.
TEST(NetProfileTest, NamesTheLayerThatComputesAFusedOneAndReportsNoRateAboveThePeak) {
  DigitsRun run;
  run.net = Edited(run.net, R"(layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "data")",
                   R"(layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "conv2" type: "Convolution" bottom: "conv" top: "conv2"
  convolution_param { num_output: 64 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv2")");
  const std::string text = ToText(ProfileSolverOf(run));
  EXPECT_TRUE(Contains(text, R"(\nrelu +ReLU \(in conv\) *\n)")) << text;
  const double peak = NumbersIn(text, R"(\nPeak of this machine: (\S+) GFLOP/s)").at(0);
  const std::string row = R"(\n(?:conv|conv2|ip) +(\S+) +\S+ +\S+ +\S+ +\d+\.\d% )";
  EXPECT_THAT(NumbersIn(text, row), Each(Le(peak + 0.1))) << text;
  EXPECT_FALSE(Contains(text, R"(100\.0% of its)")) << text;
}

TEST(NetProfileTest, ATestNetHasNoBackwardPass) {
  const std::string text = ToText(ProfileModelOf(DigitsRun(), caffe::TEST));
  EXPECT_TRUE(Contains(text, R"(\nbackward +0\.000 +0\.000\n)")) << text;
}

TEST(NetProfileTest, ASolverForMeasuringTakesPlainSteps) {
  const SolverSpec spec = WithoutTestsAndSnapshots(
      DigitsRun().Load({"patience=2", "keep_best=1", "strategy=local", "unfreeze_at=3"}), 50);
  EXPECT_TRUE(spec.tests.empty());
  EXPECT_EQ(spec.proto.snapshot() + spec.proto.display() + spec.proto.patience(), 0);
  EXPECT_FALSE(spec.proto.snapshot_after_train());
  EXPECT_EQ(spec.proto.strategy(), "synchronous");
  EXPECT_EQ(spec.proto.max_iter(), 50);
  EXPECT_EQ(spec.proto.unfreeze_at(), 0) << "the net stays the same";
}

}  // namespace
}  // namespace trainer
