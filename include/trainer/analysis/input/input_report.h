#pragma once
// Diagnoses whether reading data slows down a training run.

#include <string>
#include <vector>

#include "trainer/analysis/input/input_advice.h"
#include "trainer/backend/device/device.h"
#include "trainer/config/solver_spec.h"
#include "trainer/net/net.h"

namespace trainer {

// The measurements of all sources of a training net, and the advice that follows from them.
struct InputDiagnosis {
  struct Source {
    std::string layer;
    InputProfile profile;
  };
  std::vector<Source> sources;
  HostResources host;
  double iteration_seconds = 0;  // without waiting for data
  std::vector<InputAdvice> advice;
};

// How long to measure.
struct DiagnosisOptions {
  double seconds = 2;   // the longest time of each reading measurement
  int iterations = 10;  // to measure
  BufferReuse memory = BufferReuse::kShared;
};

// Measures how fast the sources of the solver's training net are read and decoded, and how many
// records per second the net consumes. Writes no files. Throws as the readers of the sets do.
InputDiagnosis DiagnoseInput(SolverSpec spec, const Device& device,
                             const DiagnosisOptions& options = {});

// Returns the resources, tables of sources and rates, and the numbered advice.
std::string ToText(const InputDiagnosis& diagnosis);

}  // namespace trainer
