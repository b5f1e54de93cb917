#pragma once
// Ranks that train by a strategy, as threads of one process.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "solver/rows_run.h"
#include "support/collective_log.h"
#include "support/thread_window.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/checkpoint/solver_state.h"

namespace trainer {

// A net with running averages, which no update changes.
inline constexpr char kStrategyNet[] = R"(
layer { name: "rows" type: "HDF5Data" top: "x" top: "label" include { phase: TRAIN }
        hdf5_data_param { source: "ROWS" batch_size: 3 shuffle: true } }
layer { name: "test" type: "HDF5Data" top: "x" top: "label" include { phase: TEST }
        hdf5_data_param { source: "ROWS" batch_size: 13 } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
        inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "bn" }
layer { name: "relu1" type: "ReLU" bottom: "bn" top: "bn" }
layer { name: "ip2" type: "InnerProduct" bottom: "bn" top: "ip2"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

// A net without running averages, and without data that ranks share: rank 0 sees what a run alone
// sees.
inline constexpr char kDrawnNet[] = R"(
layer { name: "data" type: "DummyData" top: "x" top: "label"
        dummy_data_param { shape { dim: 4 dim: 6 } shape { dim: 4 }
                           data_filler { type: "gaussian" } data_filler { type: "constant" } } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
        inner_product_param { num_output: 9 weight_filler { type: "xavier" } } }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

struct RankResult {
  SolveResult result = SolveResult::kStopped;
  std::vector<float> weights, losses, tests;
  std::vector<int> iters, snapshots;
  std::vector<std::string> notes;
  uint64_t snapshot_bytes = 0;  // as expected before the first one
  std::string collectives;      // calls of the communicator, one per line
};

inline constexpr int kAll = 1 << 30;  // all ranks on one node

class StrategyRun {
 public:
  SolverSpec Spec(const std::string& fields, const std::string& net = kStrategyNet,
                  float rate = 0.05f) const {
    return folder_.Spec(net, Join("base_lr: ", rate, " random_seed: 3 ", fields));
  }

  // Called on each rank before its first step, with iteration -1; after each step, with the
  // following iteration; and at the end, with iteration kOver.
  static constexpr int kOver = 1 << 30;
  using StepHook = std::function<void(int rank, int iter)>;

  std::vector<RankResult> Train(const SolverSpec& spec, int count, const std::string& snapshot = "",
                                const StepHook& on_step = nullptr) {
    blocks = std::make_unique<SharedBlocks>(count, per_machine);
    std::vector<RankResult> results(static_cast<size_t>(count));
    RunRanks(count, true, snapshot, [&](const SolverOptions& given, ThreadGroup& group) {
      const int rank = group.rank().rank;
      ThreadWindow window(*blocks, rank);
      CollectiveLog log(group);
      SolverOptions options = given;
      options.group = &log;
      options.window = &window;
      if (rank == count - 1) options.signals = signals;
      RankResult& own = results[static_cast<size_t>(rank)];
      own = RunOne(spec, options, rank, [&](int of, int iter) {
        log.Mark(iter == -1 ? "start" : iter == kOver ? "end" : Join("iteration ", iter));
        if (on_step) on_step(of, iter);
      });
      own.collectives = log.text();
    });
    return results;
  }

  std::string operator/(const std::string& name) const { return folder_ / name; }

  // Returns all numbers of the weights in a snapshot.
  std::vector<float> Saved(int iter) const {
    std::vector<float> numbers;
    const caffe::NetParameter model = ReadModel(folder_ / Join("s_iter_", iter, ".caffemodel"));
    for (const caffe::LayerParameter& layer : model.layer()) {
      for (const caffe::BlobProto& blob : layer.blobs()) {
        numbers.insert(numbers.end(), blob.data().begin(), blob.data().end());
      }
    }
    return numbers;
  }
  caffe::SolverState State(int iter) const {
    return ReadState(folder_ / Join("s_iter_", iter, ".solverstate")).state;
  }

  std::unique_ptr<SharedBlocks> blocks;
  int per_machine = 1 << 30;       // ranks of each machine
  SignalWatch* signals = nullptr;  // of the last rank

 private:
  class Observed final : public TrainingObserver {
   public:
    Observed(int rank, const StepHook& on_step, RecordingObserver& records)
        : rank_(rank), on_step_(on_step), records_(records) {}
    void OnIteration(const IterationReport& e) override { records_.OnIteration(e); }
    void OnTest(const TestReport& e) override { records_.OnTest(e); }
    void OnSnapshot(const SnapshotReport& e) override { records_.OnSnapshot(e); }
    void OnNote(const std::string& text) override { records_.OnNote(text); }
    void OnStart(const RunStart&) override {
      if (on_step_) on_step_(rank_, -1);
    }
    void OnEnd(const RunEnd&) override {
      if (on_step_) on_step_(rank_, kOver);
    }
    void OnStep(int iter) override {
      if (on_step_) on_step_(rank_, iter);
    }

   private:
    int rank_;
    const StrategyRun::StepHook& on_step_;
    RecordingObserver& records_;
  };

  static RankResult RunOne(const SolverSpec& spec, const SolverOptions& options, int rank,
                           const StepHook& on_step) {
    const auto device = MakeTestDevice(1);
    RecordingObserver records;
    Observed observer(rank, on_step, records);
    Solver solver(spec, options, *device, observer);
    RankResult result;
    result.snapshot_bytes = solver.SnapshotBytes();
    result.result = solver.Solve();
    result.weights = WeightsOf(solver, *device);
    result.losses = records.losses;
    result.tests = records.tests;
    result.iters = records.iters;
    result.snapshots = records.snapshots;
    result.notes = records.notes;
    return result;
  }

  RowsFolder folder_;
};

}  // namespace trainer
