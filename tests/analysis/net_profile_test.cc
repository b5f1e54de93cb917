// Tests the times of a net's layers, and how they are printed.

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

using testing::ContainsRegex;
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

// Returns the first group of every match.
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
  // The columns are GFLOP/s, GB/s and the percentage of the peak, each forward and backward.
  EXPECT_TRUE(Contains(text, R"(\nlayer +GFLOP/s +bwd +GB/s +bwd +peak +bwd\n)"
                             R"((digits .*\n)?ip( +\d+\.\d){4}( +(\d+\.\d%|cache|fewer)){2}\n)"))
      << text;
  EXPECT_TRUE(Contains(text, R"(\nonednn [^\n]*\n    ip\n)")) << text;
  EXPECT_FALSE(Contains(text, R"(\n[^\n]{81})")) << text;
  EXPECT_TRUE(Contains(text, R"(\nPeak of this machine: \d+\.\d GFLOP/s, \d+\.\d GB/s\.\n)"));
  EXPECT_THAT(text, Not(HasSubstr("\nupdate ")));
  EXPECT_THAT(text, HasSubstr("\nImplementations: 'onednn ...' is a kernel of oneDNN"));
}

// The figures of 16 images of 784 pixels and 10 outputs with a bias are worked out by hand.
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
  const JsonObject& shares = JsonField(*json, "percent_of_step")->struct_value();
  EXPECT_GE(JsonNumber(shares, "arithmetic", -1), 0);
  EXPECT_GT(JsonNumber(shares, "memory"), 0);
  EXPECT_NEAR(
      JsonNumber(shares, "arithmetic") + JsonNumber(shares, "memory") + JsonNumber(shares, "rest"),
      100, 1e-6);
  const JsonObject& update = JsonField(*json, "update")->struct_value();
  EXPECT_EQ(JsonNumber(update, "bytes"), 188400);
  EXPECT_NE(JsonField(update, "median_ms"), nullptr);
}

TEST(NetProfileTest, NamesTheDeclinedImplementationsWhereAsked) {
  const NetProfile profile = ProfileModelOf(DigitsRun());
  EXPECT_THAT(ToText(profile, true),
              ContainsRegex("\nImplementations that were not chosen, and why:\n"
                            "ip\n"
                            "  own product: [^\n]+\n"
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
  EXPECT_NEAR(layers[0] + layers[1] + layers[2], whole[0], 0.0021);  // each time is rounded
  EXPECT_THAT(NumbersIn(text, R"((\d+\.\d)%)"), Each(Le(100)));
}

// A ReLU that the convolution computes has no separate time. Winograd convolutions compute fewer
// products, so they have no percentage of the peak.
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
}

// The net has two images: conv in two groups with stride 2, (4, 8, 8) -> (6, 4, 4); an in-place
// ReLU; pooling to (6, 2, 2); ip, 24 -> 5.
constexpr char kFourLayers[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
  dummy_data_param { shape { dim: 2 dim: 4 dim: 8 dim: 8 } shape { dim: 2 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "y"
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 stride: 2 group: 2 } }
layer { name: "relu" type: "ReLU" bottom: "y" top: "y" }
layer { name: "pool" type: "Pooling" bottom: "y" top: "p"
  pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "p" top: "z"
  inner_product_param { num_output: 5 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "z" bottom: "label" top: "loss" }
)";

// Returns the profile of one pass without fusion.
NetProfile ProfileOfText(const std::string& text) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  ProfileOptions options;
  options.iterations = 1;
  options.memory = BufferReuse::kSeparate;
  return ProfileModel(NetFromText(text), StateOf(caffe::TRAIN), *device, options);
}

void ExpectCost(const OpCost& cost, double flops, double bytes) {
  EXPECT_EQ(cost.flops, flops);
  EXPECT_EQ(cost.bytes, bytes);
}

TEST(NetProfileTest, CountsTheWorkOfEachLayer) {
  constexpr double kX = 2 * 4 * 8 * 8 * 4, kY = 2 * 6 * 4 * 4 * 4, kP = 2 * 6 * 2 * 2 * 4;  // bytes
  constexpr double kZ = 2 * 5 * 4, kConv = (6 * 2 * 9 + 6) * 4, kIp = (5 * 24 + 5) * 4;
  constexpr double kConvFlops = 2. * (2 * 6 * 4 * 4) * (2 * 9), kIpFlops = 2. * 2 * 24 * 5;
  const std::vector<LayerProfile> layers = ProfileOfText(kFourLayers).layers;
  ASSERT_THAT(layers, SizeIs(6));
  ExpectCost(layers[1].forward_cost, kConvFlops, kX + kY + kConv);
  ExpectCost(layers[1].backward_cost, kConvFlops, kX + kY + kConv);  // without the gradient of x
  ExpectCost(layers[2].forward_cost, 0, 2 * kY);
  ExpectCost(layers[2].backward_cost, 0, 3 * kY);  // two gradients and the output
  ExpectCost(layers[3].forward_cost, 0, kY + kP);
  ExpectCost(layers[3].backward_cost, 0, kY + kP);
  ExpectCost(layers[4].forward_cost, kIpFlops, kP + kZ + kIp);
  ExpectCost(layers[4].backward_cost, 2 * kIpFlops, 2 * kP + kZ + 2 * kIp);
}

TEST(NetProfileTest, CountsNoProductForWeightsThatDoNotLearn) {
  const std::string fixed = "param { lr_mult: 0 } param { lr_mult: 0 } ";
  const std::vector<LayerProfile> frozen_ip =
      ProfileOfText(Edited(kFourLayers, "inner_product_param", fixed + "inner_product_param"))
          .layers;
  EXPECT_EQ(frozen_ip[4].backward_cost.flops, 2 * 2 * 24 * 5);
  const std::vector<LayerProfile> frozen_conv =
      ProfileOfText(Edited(kFourLayers, "convolution_param", fixed + "convolution_param")).layers;
  ExpectCost(frozen_conv[1].backward_cost, 0, 0);
  EXPECT_EQ(frozen_conv[4].backward_cost.flops, 2 * 2 * 24 * 5);
}

// "ip1" times "ip2", transposed: (4, 5) and (4, 5) -> (4, 4). If ip2 does not learn, only the
// gradient of ip1 is computed.
TEST(NetProfileTest, CountsAProductForTheGradientOfEachBottomThatLearns) {
  const std::string text = R"(
layer { name: "data" type: "DummyData" top: "x1" top: "x2"
  dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 dim: 6 } } }
layer { name: "ip1" type: "InnerProduct" bottom: "x1" top: "a" inner_product_param { num_output: 5 } }
layer { name: "ip2" type: "InnerProduct" bottom: "x2" top: "b" inner_product_param { num_output: 5 } }
layer { name: "product" type: "MatMul" bottom: "a" bottom: "b" top: "y"
  matmul_param { transpose_b: true } }
layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 }
)";
  constexpr double kFlops = 2 * 4 * 4 * 5;
  const LayerProfile both = ProfileOfText(text).layers.at(3);
  EXPECT_EQ(both.name, "product");
  EXPECT_EQ(both.forward_cost.flops, kFlops);
  EXPECT_EQ(both.backward_cost.flops, 2 * kFlops);
  const std::string frozen = Edited(text, R"(bottom: "x2")", R"(bottom: "x2" param { lr_mult: 0 }
  param { lr_mult: 0 })");
  EXPECT_EQ(ProfileOfText(frozen).layers.at(3).backward_cost.flops, kFlops);
}

TEST(NetProfileTest, EndsWithTheSharesOfAStep) {
  const std::string sentence =
      R"(, (\d+) % is arithmetic at SGEMM's rate \(\d+ GFLOP/s\),\n)"
      R"((\d+) % is memory traffic at \d+\.\d GB/s, and (\d+) % is the rest\.\n$)";
  const std::string step = ToText(ProfileSolverOf(DigitsRun()));
  std::smatch found;
  ASSERT_TRUE(
      std::regex_search(step, found, std::regex(R"(\n\nOf \d+\.\d{3} ms per step)" + sentence)))
      << step;
  EXPECT_EQ(std::stoi(found[1]) + std::stoi(found[2]) + std::stoi(found[3]), 100);
  const std::string pass = ToText(ProfileModelOf(DigitsRun()), true);
  EXPECT_TRUE(Contains(pass, R"(\n\nOf \d+\.\d{3} ms per pass)" + sentence)) << pass;
  EXPECT_THAT(ToText(ProfileOfText(kFourLayers)), Not(HasSubstr("SGEMM's rate"))) << "no peak";
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
