#pragma once
// Finds the data sources of a training net and measures how fast they are read.

#include <functional>
#include <string>
#include <vector>

#include "trainer/analysis/input/input_advice.h"
#include "trainer/config/solver_spec.h"
#include "trainer/datasets/read_benchmark.h"

namespace trainer {

// A data layer's source, with functions that find its files and measure it.
struct InputSource {
  std::string layer;
  InputProfile profile;
  double batch = 0;                                 // records per iteration
  std::function<std::vector<std::string>()> files;  // all files of the source
  std::function<std::vector<ReadRate>(const ReadBenchmarkOptions&)> rates;  // measures them
};

// Returns the data layers of the solver's training net that read files. Measures nothing yet.
std::vector<InputSource> FindSources(const SolverSpec& spec);

// Sets where the source is stored, its size, and how fast it is read and decoded by one thread.
// Each measurement takes at most `seconds`. In a list of more than a thousand files, the size is
// estimated from a sample of them.
void ProbeSource(double seconds, InputSource* source);

}  // namespace trainer
