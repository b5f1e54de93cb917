#pragma once
// Writes the card of a run.

#include <chrono>
#include <string>
#include <vector>

#include "trainer/monitor/energy_meter.h"
#include "trainer/monitor/observer.h"
#include "trainer/monitor/run_card.h"
#include "trainer/monitor/run_metrics.h"

namespace trainer {

// Writes card.json when the run starts, at each snapshot and at the end. A file that cannot be
// written is a warning, and the next snapshot tries again. Add it to a list later than the observer
// of the metrics, because it reads the results of earlier starts from metrics.jsonl.
class CardObserver final : public TrainingObserver {
 public:
  struct Options {
    std::string folder;
    CardStart start;                // what is known before the training
    bool resumes = false;           // keep the starts that the card in the folder has
    std::string best_output;        // ScoredOutput of the solver
    EnergyMeter* energy = nullptr;  // outlives the observer
  };
  explicit CardObserver(Options options);

  void OnStart(const RunStart& start) override;
  void OnStep(int iter) override { start().last_iter = iter; }
  void OnIteration(const IterationReport& report) override { card_.loss = report.loss; }
  void OnTest(const TestReport& report) override;
  void OnSnapshot(const SnapshotReport& report) override;
  void OnEnd(const RunEnd& end) override;

  // Adds what other ranks have measured during this start, and writes the card again. Leaves out
  // parts of a host that the card has already, because several ranks can share a GPU.
  void AddEnergy(const std::vector<EnergyTotal>& energy);

 private:
  CardStart& start() { return card_.starts.back(); }
  // Reads the results of earlier starts.
  void ReadHistory();
  // Brings the card up to date and writes it.
  void Write();

  const Options options_;
  RunCard card_;
  RunMetrics history_;  // tests and snapshots of all starts
  std::vector<EnergyTotal> others_;
  int64_t records_ = 0;  // of an iteration
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace trainer
