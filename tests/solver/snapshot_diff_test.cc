#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_run.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/checkpoint/snapshot_files.h"

namespace trainer {
namespace {

constexpr float kRate = 0.5f;
constexpr char kSnapshotDiffFields[] = "base_lr: 0.5 lr_policy: 'fixed' max_iter: 3 snapshot: 1 ";

// Returns the data or gradients of all blobs of a file, concatenated.
std::vector<float> Numbers(const SmallRun& run, int iter, bool diff) {
  std::vector<float> all;
  const auto model = ReadModel(run.PathOf(NamesFor("s", iter).model));
  for (const caffe::LayerParameter& layer : model.layer()) {
    for (const caffe::BlobProto& blob : layer.blobs()) {
      const auto& from = diff ? blob.diff() : blob.data();
      all.insert(all.end(), from.begin(), from.end());
    }
  }
  return all;
}

TEST(SnapshotDiffTest, HoldsTheGradientsOfTheLastIteration) {
  SmallRun run(std::string(kSnapshotDiffFields) + "snapshot_diff: true");
  run.Solve();
  for (const int iter : {2, 3}) {
    // Without momentum and decay a step is the rate times the gradient.
    const std::vector<float> before = Numbers(run, iter - 1, false);
    const std::vector<float> after = Numbers(run, iter, false), diff = Numbers(run, iter, true);
    ASSERT_EQ(diff.size(), after.size());
    float largest = 0;
    for (size_t i = 0; i < diff.size(); ++i) {
      EXPECT_NEAR(diff[i], (before[i] - after[i]) / kRate, 1e-5f);
      largest = std::max(largest, std::abs(diff[i]));
    }
    EXPECT_GT(largest, 1e-3f);
  }
}

TEST(SnapshotDiffTest, ChangesNoWeightAndIsLeftOutUnlessAsked) {
  SmallRun plain(kSnapshotDiffFields),
      with(std::string(kSnapshotDiffFields) + "snapshot_diff: true iter_size: 1");
  plain.Solve();
  with.Solve();
  EXPECT_EQ(plain.Weights(), with.Weights());
  EXPECT_THAT(Numbers(plain, 3, true), testing::IsEmpty());
}

}  // namespace
}  // namespace trainer
