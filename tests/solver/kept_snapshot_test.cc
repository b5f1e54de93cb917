// A snapshot from an earlier version of the program: the current version must continue from it as
// the earlier one did. tests/solver/kept_snapshot/README.md says how the files were made.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_run.h"
#include "support/source_folder.h"
#include "support/test_device.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::FloatNear;
using testing::Pointwise;

class KeptSnapshotTest : public testing::Test {
 protected:
  static std::string Kept(const std::string& name) {
    return SourceFolder() + "/tests/solver/kept_snapshot/" + name;
  }
  // Resumes a solver from the kept iteration 10 and lets it write its own files elsewhere.
  KeptSnapshotTest() : spec_(LoadSolver(Kept("solver.prototxt"))) {
    spec_.proto.set_snapshot_prefix(Own("kept"));
    SolverOptions options;
    options.snapshot = Kept("kept_iter_10.solverstate");
    solver_ = std::make_unique<Solver>(spec_, options, *device_, observer_);
  }
  std::string Own(const std::string& name) const { return folder_ / name; }

  static std::vector<float> Weights(const std::string& file) {
    std::vector<float> all;
    const caffe::NetParameter model = ReadModelAsWritten(file);
    for (const caffe::LayerParameter& layer : model.layer()) {
      for (const caffe::BlobProto& blob : layer.blobs()) {
        all.insert(all.end(), blob.data().begin(), blob.data().end());
      }
    }
    EXPECT_GT(all.size(), 100u) << file;
    return all;
  }
  static std::vector<float> History(const caffe::SolverState& state) {
    std::vector<float> all;
    for (const caffe::BlobProto& blob : state.history()) {
      all.insert(all.end(), blob.data().begin(), blob.data().end());
    }
    return all;
  }
  // Returns the fields that do not depend on the processor's order of sums: all but weights,
  // arrays, losses and states.
  static std::string Places(caffe::SolverState state) {
    state.clear_history();
    state.clear_recent_losses();
    for (auto* text : {state.mutable_learned_net(), state.mutable_averaged_net()}) {
      *text = text->substr(text->rfind('/') + 1);
    }
    state.clear_model_crc32c();
    state.clear_averaged_crc32c();
    state.clear_model_bytes();
    state.clear_averaged_bytes();
    state.clear_file_bytes();
    state.clear_crc32c();
    state.clear_best();     // the earlier version saved it only for keep_best
    state.clear_threads();  // the earlier version did not save it
    for (caffe::NetProgress& net : *state.mutable_progress()) {
      for (caffe::LayerProgress& layer : *net.mutable_layers()) {
        if (layer.layer() == "lstm") layer.clear_state();
      }
    }
    return state.DebugString();
  }

  TempFolder folder_;
  SolverSpec spec_;
  RecordingObserver observer_;
  std::unique_ptr<Device> device_ = MakeTestDevice(2);
  std::unique_ptr<Solver> solver_;
};

TEST_F(KeptSnapshotTest, IsWrittenAgainAsItWasRead) {
  solver_->Snapshot();
  for (const char* model : {"kept_iter_10.caffemodel", "kept_iter_10.averaged.caffemodel"}) {
    EXPECT_THAT(Weights(Own(model)), ElementsAreArray(Weights(Kept(model)))) << model;
  }
  const caffe::SolverState kept = ReadState(Kept("kept_iter_10.solverstate")).state;
  const caffe::SolverState own = ReadState(Own("kept_iter_10.solverstate")).state;
  EXPECT_EQ(Places(own), Places(kept));
  EXPECT_THAT(History(own), ElementsAreArray(History(kept)));
  EXPECT_THAT(own.recent_losses(), ElementsAreArray(kept.recent_losses()));
  EXPECT_EQ(own.progress(0).layers(1).state(), kept.progress(0).layers(1).state());
}

// The bound is 1e-3 because other processors add in another order: a bias that batch norm cancels
// has a gradient of rounding errors only. On the processor that made the files, the numbers are
// equal.
TEST_F(KeptSnapshotTest, GoesOnAsTheProgramDidThatWroteIt) {
  constexpr float bound = 1e-3f;
  solver_->Solve();
  for (const char* model : {"kept_iter_20.caffemodel", "kept_iter_20.averaged.caffemodel"}) {
    EXPECT_THAT(Weights(Own(model)), Pointwise(FloatNear(bound), Weights(Kept(model)))) << model;
  }
  const caffe::SolverState kept = ReadState(Kept("kept_iter_20.solverstate")).state;
  const caffe::SolverState own = ReadState(Own("kept_iter_20.solverstate")).state;
  EXPECT_EQ(Places(own), Places(kept));
  EXPECT_THAT(History(own), Pointwise(FloatNear(bound), History(kept)));
  EXPECT_THAT(own.recent_losses(),
              Pointwise(FloatNear(TestsOnGpu() ? 10 * bound : bound), kept.recent_losses()));
}

}  // namespace
}  // namespace trainer
