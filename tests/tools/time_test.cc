// What `trainer time` prints and logs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "job.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(TimeTest, PrintsLayersAndTotalsOfANet) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunProgram({"time", "--model=net.prototxt", "--iterations=2"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("layer "));
  for (const char* layer : {"digits +Data", "ip +InnerProduct", "loss +SoftmaxWithLoss"}) {
    EXPECT_TRUE(Finds(outcome.out, std::string("\n") + layer + R"(( +\d+\.\d{3}){4} +\d+\.\d\n)"))
        << outcome.out;
  }
  for (const char* row : {"forward", "backward", "forward and backward", "waiting for data"}) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string("\n") + row + " "));
  }
  // GFLOP/s, GB/s and the share of the peak, each forward and backward.
  EXPECT_TRUE(Finds(outcome.out,
                    R"(\nlayer +GFLOP/s +bwd +GB/s +bwd +peak +bwd\n)"
                    R"((digits .*\n)?ip( +\d+\.\d){4}( +(\d+\.\d%|cache|fewer)){2}\n)"))
      << outcome.out;
  EXPECT_TRUE(Finds(outcome.out, R"(\nonednn [^\n]*\n    ip\n)")) << outcome.out;
  EXPECT_FALSE(Finds(outcome.out, R"(\n[^\n]{81})")) << outcome.out;
  EXPECT_TRUE(Finds(outcome.out, R"(\nPeak of this machine: \d+\.\d GFLOP/s, \d+\.\d GB/s\.\n)"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\nupdate ")));
}

// 16 images of 784 pixels, 10 outputs with a bias: numbers by hand.
TEST(TimeTest, GivesAllFiguresAsJson) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunProgram({"time", "--solver=solver.prototxt", "--iterations=2", "--json"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("{\n  \"net\": \"small\",\n  \"iterations\": 2,\n"));
  const std::string work = R"("flops": 250880,\n +"bytes": 82216,\n +"gflops_per_s": \S+,\n)"
                           R"( +"gbytes_per_s": \S+,\n +"percent_of_peak": (\d|null))";
  EXPECT_TRUE(Finds(outcome.out, R"("name": "ip",\n +"type": "InnerProduct",\n[^}]*)" + work))
      << outcome.out;
  EXPECT_TRUE(Finds(outcome.out, R"("peak": \{\n +"gflops_per_s": \d\S+,\n +"gbytes_per_s": \d)"));
  EXPECT_TRUE(Finds(outcome.out, R"("update": \{\n +"median_ms": \S+,\n +"bytes": 188400,)"))
      << outcome.out;
}

TEST(TimeTest, TellsAtVerbosityOneWhichImplementationsDeclined) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunProgram({"time", "--model=net.prototxt", "--iterations=1", "--v=1"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nImplementations that were not chosen, and why:\n"
                                     "ip\n"
                                     "  onednn sgemm: it adds no bias\n"));
  EXPECT_TRUE(Finds(outcome.err, R"(\] matrix product of 16 x 784 times \S.*: onednn matmul\n)"))
      << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("]   declined: onednn sgemm: it adds no bias\n"));
  const Outcome quiet =
      RunProgram({"time", "--model=net.prototxt", "--iterations=1"}, job.options());
  EXPECT_THAT(quiet.out + quiet.err, Not(HasSubstr("declined")));
}

TEST(TimeTest, LogsWhatReadersOfCaffesLogSearchFor) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunProgram({"time", "--model=net.prototxt", "--iterations=2"}, job.options());
  for (const char* line :
       {R"(\] Performing Forward\n)", R"(\] Initial loss: \S+\n)", R"(\] Performing Backward\n)",
        R"(\] \*\*\* Benchmark begins \*\*\*\n)", R"(\] Testing for 2 iterations\.\n)",
        R"(\] Iteration: 2 forward-backward time: \S+ ms\.\n)", R"(\] Average time per layer: \n)",
        R"(\]         ip\tforward: \S+ ms\.\n)", R"(\]         ip\tbackward: \S+ ms\.\n)",
        R"(\] Average Forward pass: \S+ ms\.\n)", R"(\] Average Backward pass: \S+ ms\.\n)",
        R"(\] Average Forward-Backward: \S+ ms\.\n)", R"(\] Total Time: \S+ ms\.\n)",
        R"(\] \*\*\* Benchmark ends \*\*\*\n)"}) {
    EXPECT_TRUE(Finds(outcome.err, line)) << line << " in\n" << outcome.err;
  }
}

TEST(TimeTest, MeasuresTheUpdateOfASolverAndSavesNothing) {
  Job job;
  job.solver = Edited(job.solver, "snapshot: 10", "snapshot: 1");
  job.Write();
  const Outcome outcome =
      RunProgram({"time", "--solver=solver.prototxt", "--iterations=2"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nupdate "));
  EXPECT_THAT(outcome.out, HasSubstr("\ntraining iteration "));
  EXPECT_THAT(job.Files("snap"), ElementsAre());
}

// The figures of one column of the layers' table, or of one row of the totals.
std::vector<double> FiguresIn(const std::string& text, const std::string& pattern) {
  std::vector<double> figures;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    figures.push_back(std::stod((*at)[1]));
  }
  return figures;
}

TEST(TimeTest, TheTotalsAreTheSumsOfTheLayersAndNoPeakIsAboveAHundred) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunProgram({"time", "--model=net.prototxt", "--iterations=3"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string layer = R"((?:^|\n)(?:digits|ip|loss) +\w+ +\S+ +(\d+\.\d+))";
  const std::vector<double> layers = FiguresIn(outcome.out, layer);
  ASSERT_EQ(layers.size(), 3u) << outcome.out;
  const std::vector<double> whole = FiguresIn(outcome.out, R"(\nforward +\S+ +(\d+\.\d+))");
  ASSERT_EQ(whole.size(), 1u) << outcome.out;
  EXPECT_NEAR(layers[0] + layers[1] + layers[2], whole[0], 0.0021);  // each is rounded
  for (const double percent : FiguresIn(outcome.out, R"((\d+\.\d)%)")) EXPECT_LE(percent, 100);
  EXPECT_THAT(outcome.out, HasSubstr("\nImplementations: 'onednn ...' is a kernel of oneDNN"));
}

// A ReLU that the convolution computes has no time of its own, and Winograd's convolutions no share
// of the peak of the products that they save.
TEST(TimeTest, NamesTheLayerThatComputesAFusedOneAndReportsNoRateAboveThePeak) {
  Job job;
  job.net = Edited(job.net, "layer {\n  name: \"ip\"\n  type: \"InnerProduct\"\n  bottom: \"data\"",
                   R"(layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "conv2" type: "Convolution" bottom: "conv" top: "conv2"
  convolution_param { num_output: 64 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer {
  name: "ip"
  type: "InnerProduct"
  bottom: "conv2")");
  job.Write();
  const Outcome outcome =
      RunProgram({"time", "--solver=solver.prototxt", "--iterations=3"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.out, R"(\nrelu +ReLU \(in conv\) *\n)")) << outcome.out;
  const double peak = FiguresIn(outcome.out, R"(\nPeak of this machine: (\S+) GFLOP/s)").at(0);
  const std::string row = R"(\n(?:conv|conv2|ip) +(\S+) +\S+ +\S+ +\S+ +\d+\.\d% )";
  for (const double rate : FiguresIn(outcome.out, row)) EXPECT_LE(rate, peak + 0.1) << outcome.out;
  EXPECT_FALSE(Finds(outcome.out, R"(100\.0% of its)")) << outcome.out;
}

TEST(TimeTest, ATestNetHasNoBackwardPass) {
  const Job job;
  job.Write();
  const Outcome outcome =
      RunProgram({"time", "--model=net.prototxt", "--phase=TEST", "--iterations=2"}, job.options());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(Finds(outcome.out, R"(\nbackward +0\.000 +0\.000\n)")) << outcome.out;
}

}  // namespace
}  // namespace trainer
