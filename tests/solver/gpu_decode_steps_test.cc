// Steps on pictures that nvJPEG decodes and that stay on the GPU, which is emulated.

#ifdef TRAINER_CUDA_EMULATED

#include <emulated_gpu.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "datum.pb.h"
#include "small_run.h"
#include "trainer/backend/gpu.h"
#include "trainer/base/text.h"
#include "trainer/dataset/db_writer.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

constexpr int kGpuDecodeStepsBatch = 4, kCrop = 20;

class GpuDecodeStepsTest : public testing::Test {
 protected:
  GpuDecodeStepsTest() {
    const auto writer = CreateDb("LMDB", folder_.path() + "/db");
    for (int record = 0; record < 10; ++record) {
      Image image{3, 32, 40, {}};
      for (int i = 0; i < 3 * 32 * 40; ++i) {
        image.pixels.push_back(static_cast<uint8_t>(i / 7 * (record + 3)));
      }
      caffe::Datum datum;
      datum.set_encoded(true);
      datum.set_label(record % 3);
      datum.set_data(EncodeImage(image, "jpg"));
      writer->Put(Join("0", record), datum.SerializeAsString());
    }
    writer->Commit();
  }
  ~GpuDecodeStepsTest() override {
    EXPECT_THAT(emulated_gpu::Problems(), testing::IsEmpty());
    emulated_gpu::Reset();
  }

  SmallRun Run(const std::string& fields, const std::string& transform = "") const {
    GpuOptions gpu;
    gpu.deterministic = true;
    gpu.decode_jpegs = true;
    return SmallRun(
        "base_lr: 0.01 lr_policy: 'fixed' momentum: 0.9 max_iter: 100 " + fields,
        Join("layer { name: 'd' type: 'Data' top: 'x' top: 'y' transform_param { crop_size: ",
             kCrop, " mirror: true scale: 0.01 ", transform,
             " } data_param { backend: LMDB threads: 1 prefetch: 2 batch_size: ",
             kGpuDecodeStepsBatch, " source: '", folder_.path(),
             "/db' } } layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip' "
             "inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } } "
             "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' }"),
        {}, "", MakeGpuDevice(gpu));
  }

  TempFolder folder_;
};

// A decoding thread waits for its pictures, once for those of a call, which begins with a fill; the
// iteration waits for the loss of the step before and for the copies of the batch before.
TEST_F(GpuDecodeStepsTest, AllocateNothingAndWaitForNothingElse) {
  SmallRun run = Run("");
  for (int i = 0; i < 6; ++i) run.solver->StepAhead();
  constexpr int kSteps = 20;
  emulated_gpu::ResetCounters();
  for (int i = 0; i < kSteps; ++i) run.solver->StepAhead();
  const emulated_gpu::Counters counts = emulated_gpu::Count();
  EXPECT_EQ(counts.allocations + counts.frees, 0);
  EXPECT_EQ(counts.host_allocations + counts.host_frees, 0);
  EXPECT_EQ(counts.graph_launches, kSteps);
  EXPECT_GT(counts.decoded_pictures, kGpuDecodeStepsBatch * (kSteps - 6));
  EXPECT_LE(counts.synchronizations, 2 * kSteps + counts.fills + 1);
  EXPECT_LT(counts.bus_bytes, kGpuDecodeStepsBatch * kCrop * kCrop * 3 * kSteps / 2) << "pixels";
}

TEST_F(GpuDecodeStepsTest, LearnWhatPicturesTeachThatComeToTheHost) {
  for (const std::string fields : {"", "iter_size: 3", "virtual_ranks: 4"}) {
    for (const uint64_t seed : {1, 2}) {
      emulated_gpu::SetSeed(seed);
      SmallRun stays = Run(fields),
               comes = Run(fields, "random_erasing_param { probability: 1e-30 }");
      for (int i = 0; i < 7; ++i) {
        stays.solver->StepAhead();
        comes.solver->StepAhead();
      }
      EXPECT_EQ(stays.Weights(), comes.Weights()) << fields << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace trainer

#endif
