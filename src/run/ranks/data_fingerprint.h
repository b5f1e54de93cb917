#pragma once
// Fingerprints of the data that the layers of a net read.

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/solver_spec.h"

namespace trainer {

// Describes a file or database that a layer names.
struct DataFingerprint {
  std::string path;         // as the layer gives it
  std::string opened;       // the path that was opened
  bool is_source = false;   // false: a mean file
  int64_t records = -1;     // -1: unknown without reading the whole set
  uint32_t batch_size = 0;  // 0: the layer has none
  std::string content;      // one line, equal for copies; or why it cannot be read
  bool is_read = true;      // false: `content` says why it cannot be read
};

// Returns a fingerprint of each file or database that a layer's parameters name as `source` or
// `mean_file`, in the order of the layers. Throws nothing for a source that cannot be read: its
// `content` then says why.
std::vector<DataFingerprint> FingerprintData(const NetUse& use);

// Returns a line for the log, which says how many iterations an epoch has; "" if the number of
// records is unknown.
std::string DescribeEpoch(const DataFingerprint& print, uint64_t records_of_an_iteration);

}  // namespace trainer
