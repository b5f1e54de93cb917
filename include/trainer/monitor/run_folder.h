#pragma once
// The files of a run's folder that grow while it trains. None of them stops a run: what cannot be
// written is a warning and tried again.

#include <memory>
#include <string>
#include <vector>

#include "trainer/monitor/observer.h"

namespace trainer {

// Names in the folder.
inline constexpr char kSolverName[] = "solver.prototxt";
inline constexpr char kEnvironmentName[] = "environment.json";
inline constexpr char kMetricsName[] = "metrics.jsonl";
inline constexpr char kMetricsTableName[] = "metrics.csv";
inline constexpr char kFiltersName[] = "filters.png";
inline constexpr char kImagesName[] = "images.png";
// Files that `trainer test --run` and `trainer time` write for reports.
inline constexpr char kConfusionName[] = "confusion.json";
inline constexpr char kWorstName[] = "worst.json";
inline constexpr char kTimesName[] = "time.json";

// A layer of the net as the graph shows it: blobs by name.
struct NetLayer {
  std::string name, type;
  std::vector<std::string> inputs, outputs;
};

// A field of the solver that is set: "base_lr", 0.01.
struct Setting {
  std::string name, value;
  bool is_number = false;
};

// The constant facts of a run.
struct RunFacts {
  std::vector<NetLayer> layers;
  std::vector<Setting> settings;
  std::string solver, net;           // prototxt, for people
  std::vector<std::string> metrics;  // outputs of tests: "test0/accuracy"
};

// Says why a file of the folder cannot be written, once until one can be written again.
void WarnOfRunFolder(const std::string& what);

// metrics.jsonl, one JSON object a line, and metrics.csv with iter,time,name,value. A run that
// resumes from iteration N first removes later lines, which a previous start wrote after its last
// snapshot.
std::unique_ptr<TrainingObserver> MakeMetricsObserver(const std::string& folder);

// TensorBoard's event file of this start: scalars; histograms, filters and the first images where
// the solver shows them; the graph, settings and texts. Also filters.png and images.png.
std::unique_ptr<TrainingObserver> MakeEventsObserver(const std::string& folder,
                                                     const RunFacts& facts);

}  // namespace trainer
