#pragma once
// A solver on a small net, for tests.

#include <memory>
#include <string>
#include <vector>

#include "support/temp_folder.h"
#include "support/test_device.h"
#include "trainer/solver/solver.h"

namespace trainer {

// Records the reports of a run.
class RecordingObserver final : public TrainingObserver {
 public:
  void OnIteration(const IterationReport& e) override {
    losses.push_back(e.loss);
    iters.push_back(e.iter);
    hyper.push_back(e.rate);
    for (const ReportedValue& value : e.outputs) outputs.push_back(value.value);
  }
  void OnTest(const TestReport& e) override {
    for (const ReportedValue& value : e.outputs) tests.push_back(value.value);
  }
  void OnSnapshotStart(const SnapshotReport& e) override { begun.push_back(e.iter); }
  void OnSnapshot(const SnapshotReport& e) override { snapshots.push_back(e.iter); }
  void OnEnd(const RunEnd& e) override { end = e; }
  void OnNote(const std::string& text) override {
    const bool of_machine = text.starts_with("Other programs use this run's cores");
    if (!of_machine) notes.push_back(text);
  }
  std::vector<float> losses, hyper, outputs, tests;
  std::vector<int> iters;
  RunEnd end;
  std::vector<int> begun, snapshots;  // being written; on disk
  std::vector<std::string> notes;     // except notes about a busy machine
};

// Returns a net with data, dropout and a test phase. A batch has `batch` records of 6 numbers.
std::string SmallNet(int batch = 8);

// Returns the weights of all parameters, concatenated.
std::vector<float> WeightsOf(Solver& solver, const Device& device);

// Owns a solver of `fields`, plus net, random_seed and snapshot_prefix, on `net`.
class SmallRun {
 public:
  explicit SmallRun(const std::string& fields, const std::string& net = SmallNet(),
                    const SolverOptions& options = {}, const std::string& folder = "",
                    std::unique_ptr<Device> on = MakeTestDevice(2));

  SolveResult Solve() { return solver->Solve(); }
  std::vector<float> Weights() const { return WeightsOf(*solver, *device); }
  std::string PathOf(const std::string& name) const { return folder_path + "/" + name; }

  std::unique_ptr<TempFolder> own_folder;
  std::string folder_path;
  std::unique_ptr<Device> device;
  RecordingObserver observer;
  SolverSpec spec;
  std::unique_ptr<Solver> solver;
};

}  // namespace trainer
