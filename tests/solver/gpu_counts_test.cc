// What a step of usual nets asks of a GPU, counted by the emulated one: kernels are queued and, but
// for the smallest, do nothing.

#ifdef TRAINER_CUDA_EMULATED

#include <emulated_gpu.h>
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "small_run.h"
#include "support/log_collector.h"
#include "support/source_folder.h"
#include "trainer/backend/gpu.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

struct Model {
  const char* folder;
  std::vector<int64_t> image;  // (C, H, W)
  int recorded;                // kernels, copies and fills of a step
};
void PrintTo(const Model& model, std::ostream* out) { *out << model.folder; }

// The net of models/ on made-up numbers, in batches of 2, without its test phase and with small
// inner products: what is started does not depend on these.
std::string NetText(const Model& model) {
  const std::string path = Join(SourceFolder(), "/models/", model.folder, "/train_test.prototxt");
  caffe::NetParameter net, made;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadFile(path, 1 << 20), &net));
  made = net;
  made.clear_layer();
  for (caffe::LayerParameter layer : net.layer()) {
    if (layer.include_size() > 0 && layer.include(0).phase() == caffe::TEST) continue;
    layer.clear_include();
    if (layer.inner_product_param().num_output() > 1000) {
      layer.mutable_inner_product_param()->set_num_output(32);
    }
    if (layer.type() == "Data") {
      layer.set_type("DummyData");
      layer.clear_data_param();
      layer.clear_transform_param();
      for (int i = 0; i < layer.top_size(); ++i) {
        caffe::BlobShape& shape = *layer.mutable_dummy_data_param()->add_shape();
        shape.add_dim(2);
        for (const int64_t dim : model.image) {
          if (i == 0) shape.add_dim(dim);
        }
      }
    }
    *made.add_layer() = layer;
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(made, &text);
  return text;
}

// While one lives, kernels of a block run, which bring the loss, and no others.
struct OnlySmallKernels {
  OnlySmallKernels() { emulated_gpu::SetMostBlocks(1); }
  ~OnlySmallKernels() { emulated_gpu::SetMostBlocks(~uint64_t{0}); }
};

int RecordedOperations(const LogCollector& log) {
  for (const std::string& line : log.lines) {
    const size_t end = line.find(" kernels, copies and fills");
    if (end != line.npos) return std::stoi(line.substr(line.rfind(' ', end - 1) + 1));
  }
  return -1;
}

class GpuCountsTest : public testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(Of, GpuCountsTest,
                         testing::Values(Model{"lenet", {1, 28, 28}, 38},
                                         Model{"caffenet", {3, 227, 227}, 84},
                                         Model{"googlenet", {3, 224, 224}, 640},
                                         Model{"resnet50", {3, 224, 224}, 669}),
                         [](const auto& model) { return std::string(model.param.folder); });

TEST_P(GpuCountsTest, AStepIsOneGraphAndNoWait) {
  const OnlySmallKernels small;
  const LogCollector log;
  SmallRun run("base_lr: 0.01 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.0005 max_iter: 90",
               NetText(GetParam()), {}, "", MakeGpuDevice({.deterministic = true}));
  for (int i = 0; i < 4; ++i) run.solver->StepAhead();
  constexpr int kSteps = 3;
  emulated_gpu::ResetCounters();
  for (int i = 0; i < kSteps; ++i) run.solver->StepAhead();
  const emulated_gpu::Counters counts = emulated_gpu::Count();
  EXPECT_EQ(counts.graph_launches, kSteps);
  EXPECT_EQ(counts.launches, 0);
  EXPECT_EQ(counts.calls_to_libraries, 0);
  EXPECT_EQ(counts.copies, kSteps) << "losses and faults";
  EXPECT_EQ(counts.fills, 0);
  EXPECT_EQ(counts.allocations + counts.frees, 0);
  EXPECT_EQ(counts.host_allocations + counts.host_frees, 0);
  EXPECT_EQ(counts.synchronizations, kSteps) << "for the loss of the step before";
  EXPECT_EQ(RecordedOperations(log), GetParam().recorded);
}

}  // namespace
}  // namespace trainer

#endif
