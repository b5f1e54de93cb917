// Convolutions with a fused ReLU that drops NaN, as cuDNN's may: which layers use it, and that a
// run still reports NaN.

#ifdef TRAINER_CUDA_EMULATED

#include <emulated_gpu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "small_run.h"
#include "support/error_of.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

constexpr int kDroppedNanBatch = 4, kBadBatch = 2;

class DroppedNanTest : public testing::Test {
 protected:
  // Writes 4 x 4 images; one image of batch kBadBatch contains a NaN.
  DroppedNanTest() {
    constexpr int kPictures = 6 * kDroppedNanBatch, kPixels = 16;
    std::vector<float> pixels, labels;
    for (int i = 0; i < kPictures * kPixels; ++i) {
      pixels.push_back(static_cast<float>(i * i % 19) / 10 - 1);
    }
    for (int i = 0; i < kPictures; ++i) labels.push_back(static_cast<float>(i % 4));
    pixels[kBadBatch * kDroppedNanBatch * kPixels + 5] = NAN;
    Hdf5Appender file(folder_ / "rows.h5");
    file.Append("a0", std::vector<int64_t>{kPictures, 1, 4, 4}, pixels);
    file.Append("label", std::vector<int64_t>{kPictures}, labels);
    file.Flush();
    WriteText(folder_ / "list.txt", folder_ / "rows.h5");
  }
  ~DroppedNanTest() override {
    run_.reset();
    emulated_gpu::Reset();
  }

  // Creates a run with three convolutions, each with a ReLU; the first one does not learn.
  SmallRun& Start(bool library_keeps, const std::string& type) {
    run_.reset();
    emulated_gpu::Reset({.fused_relu_keeps_nan = library_keeps});
    std::string net = Join("default_forward_type: ", type, R"(
layer { name: "rows" type: "HDF5Data" top: "a0" top: "label"
        hdf5_data_param { source: ")",
                           folder_ / "list.txt", "\" batch_size: ", kDroppedNanBatch, " } }\n");
    for (int i = 1; i <= 3; ++i) {
      net += Join("layer { name: \"conv", i, "\" type: \"Convolution\" bottom: \"a", i - 1,
                  "\" top: \"a", i, "\" param { lr_mult: ", i == 1 ? 0 : 1,
                  " } param { lr_mult: 0 } convolution_param { num_output: 4 kernel_size: 3 pad: 1 "
                  "weight_filler { type: \"msra\" } } }\n",
                  "layer { name: \"relu", i, "\" type: \"ReLU\" bottom: \"a", i, "\" top: \"a", i,
                  "\" }\n");
    }
    net += R"(
layer { name: "ip" type: "InnerProduct" bottom: "a3" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
    run_ = std::make_unique<SmallRun>(
        "base_lr: 0.01 lr_policy: \"fixed\" display: 1 max_iter: 4 test_iter: 1 test_interval: 90 "
        "test_initialization: false ",
        net, SolverOptions(), "", MakeGpuDevice({.deterministic = true}));
    return *run_;
  }

  // Returns for each convolution whether its call includes bias and ReLU ("with") or not ("apart").
  static std::vector<std::string> FusionsOf(const Net& net) {
    std::vector<std::string> found;
    for (const Node& node : net.graph().nodes) {
      if (node.spec.type() != "Convolution") continue;
      const std::string name = node.layer->kernel();
      found.push_back(name.find("with bias and ReLU") != name.npos    ? "with"
                      : name.find("bias and ReLU apart") != name.npos ? "apart"
                                                                      : name);
    }
    return found;
  }

 private:
  TempFolder folder_;
  std::unique_ptr<SmallRun> run_;
};

TEST_F(DroppedNanTest, ReluIsPartOfACallThatDropsNanWhereGradientsTellOfIt) {
  for (const std::string type : {"FLOAT", "BFLOAT16", "FLOAT16"}) {
    EXPECT_THAT(FusionsOf(Start(true, type).solver->train_net()),
                ElementsAre("with", "with", "with"));
    const std::string learns = type == "FLOAT16" ? "with" : "apart";
    EXPECT_THAT(FusionsOf(Start(false, type).solver->train_net()),
                ElementsAre("apart", learns, learns))
        << type;
  }
}

TEST_F(DroppedNanTest, ABatchWithNanIsLeftOutOrEndsTheRun) {
  SmallRun& dropping = Start(false, "FLOAT16");
  dropping.Solve();
  EXPECT_THAT(dropping.observer.notes,
              Contains(HasSubstr(Join("Iteration ", kBadBatch,
                                      ": gradients are not finite (NaN or infinity), the update "
                                      "is skipped"))));
  for (const float weight : dropping.Weights()) EXPECT_TRUE(std::isfinite(weight));
  SmallRun& keeping = Start(true, "FLOAT16");
  EXPECT_EQ(ErrorOf([&] { keeping.Solve(); }).first, ErrorCode::kDiverged);
}

}  // namespace
}  // namespace trainer

#endif
