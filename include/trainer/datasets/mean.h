#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

struct MeanResult {
  int64_t records = 0;
  std::string shape;          // "3x256x256"
  std::vector<float> values;  // of each channel
};

// Writes the mean of all records, summed as doubles, to a binaryproto file, as compute_image_mean
// does. Errors: as RecordScan, DatumParser and AtomicFile throw; kData for different shapes.
MeanResult WriteMean(const std::string& set, const std::string& output);

}  // namespace trainer
