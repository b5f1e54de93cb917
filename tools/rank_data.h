#pragma once
// What the layers of a net read, as one rank finds it.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"

namespace trainer {

// A file or database that a layer names.
struct SourceFacts {
  std::string path;         // as the layer has it
  bool is_source = false;   // else a mean
  int64_t records = -1;     // -1: not known without reading all of it
  uint32_t batch_size = 0;  // of the layer; 0: it has none
  std::string content;      // on one line; equal for copies, in samples, or why it cannot be read
};

std::vector<SourceFacts> DescribeSources(const NetUse& use);

// A line for the log, or "" where the number of records is not known.
std::string DescribeEpoch(const SourceFacts& facts, uint64_t records_of_an_iteration);

}  // namespace trainer
