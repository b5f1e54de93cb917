// Trains the same nets on the CPU and on a GPU, emulated or real.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "small_run.h"
#include "support/log_collector.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::Each;
using testing::FloatNear;
using testing::Pointwise;

// LeNet with smaller images and fewer channels.
constexpr char kLeNet[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" hdf5_data_param { source: "ROWS" batch_size: 8 } }
layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1" param { lr_mult: 1 } param { lr_mult: 2 }
        convolution_param { num_output: 6 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
        pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2" param { lr_mult: 1 } param { lr_mult: 2 }
        convolution_param { num_output: 12 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
        pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1" param { lr_mult: 1 } param { lr_mult: 2 }
        inner_product_param { num_output: 30 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" param { lr_mult: 1 } param { lr_mult: 2 }
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

// Layers that LeNet lacks: normalisations, fused sums, an average pool, dropout.
constexpr char kBothDevicesNormNet[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" hdf5_data_param { source: "ROWS" batch_size: 8 } }
layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1"
        convolution_param { num_output: 6 kernel_size: 3 pad: 1 bias_term: false weight_filler { type: "msra" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "bn1" }
layer { name: "scale1" type: "Scale" bottom: "bn1" top: "scale1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "scale1" top: "scale1" }
layer { name: "lrn" type: "LRN" bottom: "scale1" top: "lrn" lrn_param { local_size: 3 alpha: 0.1 } }
layer { name: "pool1" type: "Pooling" bottom: "lrn" top: "pool1"
        pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
        convolution_param { num_output: 6 kernel_size: 3 pad: 1 group: 2 weight_filler { type: "msra" } } }
layer { name: "bn2" type: "BatchNorm" bottom: "conv2" top: "bn2" }
layer { name: "sum" type: "Eltwise" bottom: "bn2" bottom: "pool1" top: "sum" }
layer { name: "relu2" type: "ReLU" bottom: "sum" top: "sum" }
layer { name: "drop" type: "Dropout" bottom: "sum" top: "sum" dropout_param { dropout_ratio: 0.2 } }
layer { name: "ip" type: "InnerProduct" bottom: "sum" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

// cifar10_quick with smaller images and fewer channels.
constexpr char kQuick[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" hdf5_data_param { source: "ROWS" batch_size: 8 } }
layer { name: "conv1" type: "Convolution" bottom: "x" top: "conv1" param { lr_mult: 1 } param { lr_mult: 2 }
        convolution_param { num_output: 6 pad: 2 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
        pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "pool1" top: "pool1" }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2" param { lr_mult: 1 } param { lr_mult: 2 }
        convolution_param { num_output: 6 pad: 2 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
        pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1" param { lr_mult: 1 } param { lr_mult: 2 }
        inner_product_param { num_output: 12 weight_filler { type: "xavier" } } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" param { lr_mult: 1 } param { lr_mult: 2 }
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

class BothDevicesTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kSide = 14, kImages = 40;

  void SetUp() override {
    if (FindGpus().gpus.empty()) GTEST_SKIP() << "there is no GPU, not even an emulated one";
    cpu_ = MakeCpuDevice(2);
    gpu_ = MakeGpuDevice({.deterministic = true});
    WriteRows();
  }

  // Writes images with one bright quarter, whose number is the label.
  void WriteRows() {
    std::vector<float> images, labels;
    for (int n = 0; n < kImages; ++n) {
      const int label = n * 7 % 4;
      for (int i = 0; i < kSide * kSide; ++i) {
        const int quarter = i / (kSide * kSide / 2) * 2 + (i % kSide) / (kSide / 2);
        const float noise = static_cast<float>((n * 131 + i * i * 17) % 97) / 97;
        images.push_back(noise + (quarter == label ? 0.5f : 0.0f));
      }
      labels.push_back(static_cast<float>(label));
    }
    Hdf5Appender file(folder_ / "rows.h5");
    file.Append("x", std::vector<int64_t>{kImages, 1, kSide, kSide}, images);
    file.Append("label", std::vector<int64_t>{kImages}, labels);
    file.Flush();
    WriteText(folder_ / "list.txt", folder_ / "rows.h5");
  }

  std::string SnapshotOf(const std::string& name, int iter) const {
    return folder_ / Join(name, "_iter_", iter, ".solverstate");
  }

  // Records each loss and loss scale (0 without one), and the number of steps skipped so far.
  struct LossObserver final : TrainingObserver {
    void OnIteration(const IterationReport& e) override {
      losses.push_back(e.loss);
      factors.push_back(e.loss_scale);
      skipped = static_cast<size_t>(e.skipped_steps);
    }
    std::vector<float> losses, factors;
    size_t skipped = 0;
  };

  // Returns the losses of a run up to `max_iter`, which names its snapshots `name`.
  std::vector<float> Train(const Device& device, const std::string& name, int max_iter,
                           const std::string& fields, const std::string& snapshot = "") {
    std::string net = net_head_ + GetParam();
    net.replace(net.find("ROWS"), 4, folder_ / "list.txt");
    WriteText(folder_ / "net.prototxt", net);
    WriteText(
        folder_ / "solver.prototxt",
        Join("net: '", folder_ / "net.prototxt", "' snapshot_prefix: '", folder_ / name,
             "' random_seed: 5 lr_policy: 'fixed' display: 1 max_iter: ", max_iter, " ", fields));
    const SolverSpec spec = LoadSolver(folder_ / "solver.prototxt");
    observer_ = {};
    SolverOptions options;
    options.snapshot = snapshot;
    Solver solver(spec, options, device, observer_);
    EXPECT_EQ(solver.Solve(), SolveResult::kFinished);
    return observer_.losses;
  }

  TempFolder folder_;
  std::unique_ptr<Device> cpu_, gpu_;
  std::string net_head_;   // of the next run
  LossObserver observer_;  // of the last run
};
constexpr const char* kNetNames[] = {"LeNet", "NormNet", "Quick"};
INSTANTIATE_TEST_SUITE_P(On, BothDevicesTest, testing::Values(kLeNet, kBothDevicesNormNet, kQuick),
                         [](const auto& net) { return std::string(kNetNames[net.index]); });

constexpr float kRounding = 2e-3f;  // differences in the last place grow with every step

TEST_P(BothDevicesTest, LossesAreEqualButForRounding) {
  for (const std::string fields :
       {"base_lr: 0.02 momentum: 0.9 weight_decay: 0.0005 ", "type: 'Adam' base_lr: 0.002 "}) {
    const std::vector<float> cpu = Train(*cpu_, "cpu", 40, fields);
    const std::vector<float> gpu = Train(*gpu_, "gpu", 40, fields);
    ASSERT_EQ(cpu.size(), 41u);  // the last one follows the last update
    EXPECT_LT(cpu.back(), cpu.front()) << "it learns";
    EXPECT_THAT(gpu, Pointwise(FloatNear(kRounding), cpu)) << fields;
  }
}

TEST_P(BothDevicesTest, ASnapshotOfOneIsResumedOnTheOther) {
  const std::string fields = "base_lr: 0.02 momentum: 0.9 snapshot: 15 ";
  const std::vector<float> whole = Train(*cpu_, "cpu", 30, fields);
  Train(*gpu_, "gpu", 15, fields);
  for (const bool gpu_first : {true, false}) {
    const std::vector<float> rest = Train(gpu_first ? *cpu_ : *gpu_, "rest", 30, fields,
                                          SnapshotOf(gpu_first ? "gpu" : "cpu", 15));
    ASSERT_EQ(rest.size(), 16u);
    EXPECT_THAT(
        rest, Pointwise(FloatNear(kRounding), std::vector<float>(whole.begin() + 15, whole.end())))
        << (gpu_first ? "from the GPU to the CPU" : "from the CPU to the GPU");
  }
}

// With a rate this small, the losses of the two devices diverge slowly.
const std::string kSmallSteps = "base_lr: 0.005 momentum: 0.9 snapshot: 25 ";
const std::string kInF16 = kSmallSteps + "default_forward_type: FLOAT16 ";
const std::string kFixed = "loss_scale: 128 ";  // so that no step is skipped
constexpr float kRoundingOfF16 = 2e-2f;

TEST_P(BothDevicesTest, InF16AGpuLearnsWhatF32Learns) {
  const std::vector<float> cpu = Train(*cpu_, "cpu", 50, kSmallSteps);
  const std::vector<float> gpu = Train(*gpu_, "gpu", 50, kInF16 + kFixed);
  EXPECT_THAT(observer_.factors, Each(128));
  EXPECT_EQ(observer_.skipped, 0u);
  EXPECT_LT(cpu.back(), cpu.front()) << "it learns";
  EXPECT_THAT(gpu, Pointwise(FloatNear(kRoundingOfF16), cpu));
}

TEST_P(BothDevicesTest, ASnapshotInF16IsResumedInAnyTypeOfTheOther) {
  const std::vector<float> whole = Train(*cpu_, "cpu", 50, kSmallSteps);
  const std::vector<float> wanted(whole.begin() + 25, whole.end());
  Train(*gpu_, "gpu", 25, kInF16 + kFixed);
  for (const char* type : {"", "default_forward_type: BFLOAT16 "}) {
    const LogCollector log;
    EXPECT_THAT(Train(*cpu_, "rest", 50, kSmallSteps + type, SnapshotOf("gpu", 25)),
                Pointwise(FloatNear(*type == 0 ? kRoundingOfF16 : 8 * kRoundingOfF16), wanted))
        << "on the CPU, " << type;
    EXPECT_THAT(log.lines, Contains("The run of the snapshot had loss scale 128, because its "
                                    "gradients were FLOAT16; this run needs no loss scale"));
  }
  const LogCollector log;
  EXPECT_THAT(Train(*gpu_, "rest", 50, kInF16 + kFixed, SnapshotOf("cpu", 25)),
              Pointwise(FloatNear(kRoundingOfF16), wanted));
  EXPECT_THAT(log.lines,
              Contains("The run of the snapshot had no loss scale; this run needs one, because "
                       "its gradients are FLOAT16, and starts with loss scale 128"));
}

// The huge loss scale makes gradients infinite.
TEST_P(BothDevicesTest, AfterAnOverflowInF16TheStepIsSkippedTheFactorHalvedAndTheRunGoesOn) {
  net_head_ = "global_grad_scale: 1073741824 global_grad_scale_adaptive: true\n";
  const std::vector<float> losses = Train(*gpu_, "gpu", 50, kInF16);
  const size_t skipped = observer_.skipped;
  EXPECT_GT(skipped, 3u);
  EXPECT_LT(skipped, 30u);
  EXPECT_EQ(observer_.factors.back(), std::ldexp(1073741824.0f, -static_cast<int>(skipped)));
  EXPECT_LT(losses.back(), losses[skipped]) << "it learns";
  EXPECT_THAT(losses, Each(testing::Lt(10.0f)));  // this also rejects NaN
}

TEST_P(BothDevicesTest, ARunInF16GoesOnBitForBit) {
  const std::vector<float> whole = Train(*gpu_, "whole", 50, kInF16);
  const std::vector<float> rest = Train(*gpu_, "rest", 50, kInF16, SnapshotOf("whole", 25));
  EXPECT_EQ(rest, std::vector<float>(whole.begin() + 25, whole.end()));
}

TEST_P(BothDevicesTest, PartsOfABatchAreComputedAlike) {
  const std::string fields = "base_lr: 0.02 momentum: 0.9 iter_size: 2 virtual_ranks: 4 ";
  const std::vector<float> cpu = Train(*cpu_, "cpu", 12, fields);
  EXPECT_THAT(Train(*gpu_, "gpu", 12, fields), Pointwise(FloatNear(kRounding), cpu));
}

TEST_P(BothDevicesTest, AGpuRepeatsItselfBitForBit) {
  const std::string fields = "base_lr: 0.02 momentum: 0.9 ";
  const std::vector<float> first = Train(*gpu_, "first", 10, fields);
  EXPECT_EQ(Train(*gpu_, "second", 10, fields), first);
}

}  // namespace
}  // namespace trainer
